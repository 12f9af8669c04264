"""TLS between all nodes: connections work as without it, and both ends get a clear error for a bad certificate."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.client import Credentials, connect
from gapless.errors import ConfigError, ConnectError
from gapless.overlay import chain
from gapless.runtime import wire
from gapless.runtime.address import split_address
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.http_endpoint import HttpEndpoint
from gapless.runtime.tls import client_context
from gapless.security.certificates import Authority
from gapless.security.identity import certificate_uri

from .local import QUICK, local
from .logged import logged
from .secure import Secure, secure, until


@pytest.mark.parametrize("runner", [run, asyncio.run])
def test_a_network_with_certificates_does_what_one_without_does(tmp_path: Path, runner: Any) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path) as network:
            async with (
                connect(network.at("b0"), name="ann", credentials=network.admin) as ann,
                connect(network.at("b2"), name="bob", credentials=network.admin) as bob,
            ):
                await ann.advertise("TRUE")
                subscription = await bob.subscribe("n > 0")
                assert await ann.publish_many([({"n": number}, b"x" * 1000) for number in range(1, 2001)]) == 2000
                got: list[object] = []
                while len(got) < 2000:
                    got += [event.attributes["n"] for event in await subscription.take(256)]
                assert got == list(range(1, 2001))
            versions = {
                link.connection._transport.get_extra_info("ssl_object").version()  # type: ignore[union-attr]
                for broker in network.brokers.values()
                for link in broker.links.links.values()
                if link.connection is not None
            }
            assert versions == {"TLSv1.3"}

    runner(main())


def test_a_client_fails_over_from_one_broker_to_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            secure(chain(3), tmp_path) as network,
            connect(network.at("b1"), credentials=network.admin) as client,
            connect(network.at("b2"), credentials=network.admin) as other,
        ):
            await other.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            await network.crash("b1")
            event = await other.publish({"n": 1})
            async with asyncio.timeout(30):
                assert [got.id for got in await subscription.take()] == [event.id]

    run(main())


async def _refused(network: Secure, credentials: Credentials | Path | None, url: str = "") -> str:
    with pytest.raises(ConnectError) as caught:
        async with connect(url or network.at("b0"), credentials=credentials, timeout_s=10):
            pass
    return str(caught.value)


def _bad_server(network: Secure, how: str) -> None:
    place = network.directory / "brokers" / "b0.pem"
    uri = certificate_uri(network.config.network.name, "broker", "b0")
    authority = Authority.make("another") if how == "another authority" else network.authority
    hosts = ["elsewhere.example"] if how == "another name" else ["127.0.0.1"]
    authority.issue(
        place, place.with_suffix(".key"), uri=uri, name="b0", hosts=hosts, days=-1 if how == "expired" else 1
    )


@pytest.mark.parametrize(
    ("how", "to_client", "to_broker"),
    [
        ("expired", "the certificate of 127.0.0.1:.* has expired; the broker there needs a new one",
         "it does not accept this certificate: it has expired"),
        ("another name", "the certificate of 127.0.0.1:.* is for another name; is the address right?",
         "it does not accept this certificate: it is for another name"),
        ("another authority", "was signed by an authority that is not trusted here; set the right authority",
         "it does not accept this certificate: the authority that signed it is not trusted there"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("runner", [run, asyncio.run])
def test_errors_in_a_brokers_certificate_are_reported(
    tmp_path: Path, how: str, to_client: str, to_broker: str, runner: Any
) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            await network.crash("b0")
            _bad_server(network, how)
            with logged() as log:
                await network.start("b0")
                with pytest.raises(ConnectError, match=to_client):
                    async with connect(network.at("b0"), credentials=network.admin):
                        pass
                await until(lambda: f"refused: {to_broker}" in log.text)
                assert ("the certificate of this broker has expired" in log.text) == (how == "expired")

    runner(main())


@pytest.mark.parametrize(
    ("how", "to_client", "to_broker"),
    [
        ("expired", "does not accept this certificate: it has expired", "its certificate has expired"),
        ("another authority", "does not accept this certificate: the authority that signed it is not trusted there",
         "its certificate was signed by an authority that is not trusted here"),
        ("none", "authenticate with a certificate or token", "authenticate with a certificate or token"),
        ("nobody", "user 'nobody' does not exist or was revoked", "user 'nobody' does not"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("runner", [run, asyncio.run])
def test_errors_in_a_clients_certificate_are_reported(
    tmp_path: Path, how: str, to_client: str, to_broker: str, runner: Any
) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            shown = {
                "expired": network.certified("admin", days=-1),
                "another authority": network.certified("admin", authority=Authority.make("another")),
                "none": Credentials(authority=tmp_path / "authority.pem"),
                "nobody": network.certified("nobody"),
            }[how]
            with logged() as log:
                assert to_client in await _refused(network, shown)
                await until(lambda: f"refused: {to_broker}" in log.text)
                assert "address=127.0.0.1" in log.text

    runner(main())


def test_clear_text_on_a_port_with_tls_is_reported(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            with logged() as log:
                message = await _refused(network, None, network.at("b0").replace("+tls", ""))
                assert "broker 'b0' accepts only TLS; write gapless+tls://" in message
                await until(lambda: "refused: it does not use TLS" in log.text)

    run(main())


def test_tls_on_a_port_with_clear_text_is_reported(tmp_path: Path) -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            with logged() as log, pytest.raises(ConnectError) as caught:
                async with connect(network.url.replace("gapless:", "gapless+tls:"), timeout_s=10):
                    pass
            assert "does not use TLS; write gapless:// if that is intended" in str(caught.value)
            assert "the peer uses TLS, but this port accepts only clear text" in log.text

    run(main())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_versions_before_1_2_are_turned_away(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            context = client_context(tmp_path / "authority.pem")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            context.set_ciphers("ALL:@SECLEVEL=0")
            with logged() as log:
                with pytest.raises(ssl.SSLError):
                    await asyncio.open_connection(*split_address(network.config.addresses["b0"]), ssl=context)
                await until(lambda: "it supports only versions of TLS before 1.2" in log.text)

    run(main())


def test_a_silent_peer_on_a_tls_port_is_disconnected(tmp_path: Path) -> None:
    async def main() -> None:
        quick = msgspec.structs.replace(QUICK, hello_ms=200)
        async with secure(1, tmp_path, f=0, runtime=quick) as network:
            reader, writer = await asyncio.open_connection(*split_address(network.config.addresses["b0"]))
            assert await asyncio.wait_for(reader.read(), 30) == b""
            writer.close()
            assert network.brokers["b0"].links.counters.refused["silent"] == 1

    run(main())


def test_credentials_travel_through_tls_only(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match=r"credentials require TLS; write gapless\+tls"):
            async with connect("gapless://127.0.0.1:1", credentials=Credentials(token="ann:secret")):
                pass

    run(main())


# ---- brokers --------------------------------------------------------------------------------------------------


async def _greet(network: Secure, credentials: Credentials, role: str, name: str) -> wire.Refusal | None:
    context = client_context(*(Path(x) for x in (credentials.authority, credentials.certificate, credentials.key)))
    host, port = split_address(network.config.addresses["b0"])
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    config = network.config
    try:
        writer.write(
            wire.greeting(role, name, protocol="gapless", network=config.fingerprint, incarnation=1 << 60, boot=1)
        )
        length, kind = wire.HEADER.unpack(await asyncio.wait_for(reader.readexactly(5), 30))
        body = await reader.readexactly(length - 1)
        return wire.decode_refusal(memoryview(body)) if kind == wire.REFUSAL else None
    finally:
        writer.close()


def test_only_a_broker_is_accepted_as_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path) as network:
            brokers = tmp_path / "brokers"
            b1 = Credentials(
                authority=tmp_path / "authority.pem", certificate=brokers / "b1.pem", key=brokers / "b1.key"
            )
            admin = network.certified("admin")
            refusal = await _greet(network, admin, "broker", "b1")
            assert refusal is not None
            assert (refusal.code, "has no broker certificate" in refusal.reason) == ("denied", True)
            refusal = await _greet(network, b1, "broker", "b2")
            assert refusal is not None
            assert "is broker 'b1' of this network" in refusal.reason
            refusal = await _greet(network, b1, "client", "b1-client")
            assert refusal is not None
            assert "a broker's certificate does not authenticate a user" in refusal.reason
            assert await _greet(network, b1, "probe", "b1") is None

    run(main())


def test_a_certificate_for_a_broker_that_the_network_does_not_have_gives_no_rights(tmp_path: Path) -> None:
    """A broker was removed from the network file. Its certificate is still valid, but does not grant even the right to
    read the status."""

    async def main() -> None:
        async with secure(chain(2), tmp_path, users={}, http=["b0"]) as network:
            removed = network.certified("b7", kind="broker")
            for role, name in (("probe", "probe"), ("broker", "b1"), ("client", "b7:x")):
                refusal = await _greet(network, removed, role, name)
                assert refusal is not None
                assert "there is no broker 'b7' in the network's file" in refusal.reason
            endpoint = HttpEndpoint(network.brokers["b0"])
            await endpoint.start()
            assert "401 Unauthorized" in await _get(network, endpoint.port, "/status", removed)
            endpoint.stop()

    run(main())


def test_a_broker_closes_a_connection_answered_by_another_broker_than_dialled(tmp_path: Path) -> None:
    """The certificate is valid for the host and from the right authority, but belongs to another broker."""

    async def main() -> None:
        async with secure(chain(3), tmp_path) as network:
            await network.crash("b1")
            place = tmp_path / "brokers" / "b1.pem"
            uri = certificate_uri("local", "broker", "b2")
            network.authority.issue(place, place.with_suffix(".key"), uri=uri, name="b2", hosts=["127.0.0.1"])
            impostor = Broker(network.config, "b1")
            with logged() as log:
                starting = asyncio.create_task(impostor.start())
                try:
                    await until(lambda: "does not have a certificate of broker 'b1'" in log.text)
                finally:
                    starting.cancel()
                    await impostor.crash()
            assert network.brokers["b0"].links.links["b1"].connection is None

    run(main())


# ---- at run time ----------------------------------------------------------------------------------------------


async def _serial(network: Secure) -> str:
    host, port = split_address(network.config.addresses["b0"])
    context = client_context(network.directory / "authority.pem")
    _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    serial = str(writer.get_extra_info("peercert")["serialNumber"])
    writer.close()
    return serial


def test_changed_certificates_are_reloaded_without_interruption(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network, connect(network.url, credentials=network.admin) as client:
            await client.advertise("TRUE")
            before = await _serial(network)
            place = tmp_path / "brokers" / "b0.pem"
            uri = certificate_uri("local", "broker", "b0")
            network.authority.issue(place, place.with_suffix(".key"), uri=uri, name="b0", hosts=["127.0.0.1"])
            async with asyncio.timeout(30):
                while await _serial(network) == before:
                    await asyncio.sleep(0.1)
            await client.publish({"n": 1})
            assert network.brokers["b0"].links.detector.absences["lost"] == 0

    run(main())


def test_an_invalid_file_is_ignored_on_reload(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            before = await _serial(network)
            (tmp_path / "brokers" / "b0.pem").write_text("no certificate", encoding="utf-8")
            with logged() as log:
                assert not await broker_security.reload("the test says so")
            assert "reload failed, keeping the previous configuration" in log.text
            assert "b0.pem: the file contains no certificate in PEM format" in log.text
            assert await _serial(network) == before
            assert broker_security.failed_reloads == 1

    run(main())


def test_a_certificate_that_expires_soon_is_in_the_log_and_in_the_metrics(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, http=["b0"]) as network:
            await network.crash("b0")
            place = tmp_path / "brokers" / "b0.pem"
            uri = certificate_uri("local", "broker", "b0")
            network.authority.issue(place, place.with_suffix(".key"), uri=uri, name="b0", hosts=["127.0.0.1"], days=7)
            with logged() as log:
                broker = await network.start("b0")
                assert "the certificate of this broker expires soon" in log.text
            endpoint = HttpEndpoint(broker)
            await endpoint.start()
            try:
                text = await _get(network, endpoint.port, "/metrics", network.certified("admin"))
                line = next(
                    line for line in text.splitlines()
                    if line.startswith('gapless_certificate_expiry_timestamp_seconds{kind="certificate"}')
                )  # fmt: skip
                assert endpoint_expiry(broker) == pytest.approx(float(line.split()[1]))
            finally:
                endpoint.stop()

    run(main())


def endpoint_expiry(broker: Broker) -> float:
    assert broker.broker_security is not None
    return broker.broker_security.expiries["certificate"]


# ---- HTTP -----------------------------------------------------------------------------------------------------


async def _get(network: Secure, port: int, path: str, shown: Credentials | None = None, header: str = "") -> str:
    files = (shown.certificate, shown.key) if shown is not None and shown.certificate else ()
    context = client_context(network.directory / "authority.pem", *(Path(file) for file in files))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
    text = (await asyncio.wait_for(reader.read(), 30)).decode()
    writer.close()
    return text


def test_http_supports_tls_and_authenticates_status_requests(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": {"status": True}, "bob": {"status": False}}
        async with secure(1, tmp_path, f=0, http=["b0"], users=users) as network:
            endpoint = HttpEndpoint(network.brokers["b0"])
            await endpoint.start()
            try:
                port = endpoint.port
                assert "200 OK" in await _get(network, port, "/healthz")
                asked = await _get(network, port, "/status")
                assert "401 Unauthorized" in asked
                assert 'WWW-Authenticate: Bearer realm="gapless"\r\n' in asked
                with logged() as log:
                    wrong = "Authorization: Bearer ann:x\r\n"
                    asked = await _get(network, port, "/status", header=wrong)
                    assert 'WWW-Authenticate: Bearer realm="gapless", error="invalid_token"\r\n' in asked
                    assert 'peer="user ann (not proved)"  address=127.0.0.1:' in log.text
                ann = f"Authorization: Bearer {network.token('ann')}\r\n"
                for header in (ann, ann.lower().replace(network.token("ann").lower(), network.token("ann"))):
                    assert '"broker":"b0"' in await _get(network, port, "/status", header=header)
                assert "gapless_up 1" in await _get(network, port, "/metrics", network.certified("ann"))
                message = await _get(network, port, "/metrics", network.certified("bob"))
                assert "403 Forbidden" in message
                assert "user bob may not see the status of brokers" in message
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert b"this port speaks HTTPS" in await asyncio.wait_for(reader.read(), 30)
                writer.close()
            finally:
                endpoint.stop()

    run(main())

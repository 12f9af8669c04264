"""Clients authenticate by certificate, token or signed token, under their own names only."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519

from gapless.client import Client, Credentials, connect
from gapless.errors import ConnectError, DeniedError
from gapless.overlay import chain
from gapless.runtime import wire
from gapless.runtime.address import split_address
from gapless.runtime.event_loop import run
from gapless.runtime.tls import client_context
from gapless.security.identity import Identity
from tests.security.test_signed_tokens import KEY, pem, signed

from .logged import logged
from .secure import Secure, secure, until

EVERYTHING = {"publish": ["TRUE"], "subscribe": ["TRUE"]}


async def _denied(network: Secure, credentials: Credentials) -> str:
    with pytest.raises(DeniedError) as caught:
        async with connect(network.at("b0"), credentials=credentials):
            pass
    return str(caught.value)


async def _works(client: Client) -> None:
    await client.advertise("TRUE")
    subscription = await client.subscribe("TRUE")
    event = await client.publish({"n": 1})
    async with asyncio.timeout(30):
        assert [got.id for got in await subscription.take()] == [event.id]


def test_a_user_is_known_by_certificate_by_token_or_by_signed_token(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "keys.pem").write_text(pem(KEY), encoding="utf-8")
        users = {"ann": {**EVERYTHING, "signed_token": True}}
        issuer = {"keys": "keys.pem", "audience": "shop"}
        async with secure(1, tmp_path, f=0, users=users, signed_tokens=issuer) as network:
            for shown in (network.certified("ann"), network.by_token("ann"), network.with_token(signed())):
                async with connect(network.at("b0"), name="desk", credentials=shown) as client:
                    assert client.name.startswith("ann:desk-")
                    await _works(client)

    run(main())


def test_an_unknown_user_gets_the_reason(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "keys.pem").write_text(pem(KEY), encoding="utf-8")
        users: dict[str, Any] = {
            "ann": EVERYTHING,
            "bob": {**EVERYTHING, "disabled": True},
            "eve": {**EVERYTHING, "certificate": False},
        }
        issuer = {"keys": "keys.pem", "audience": "shop"}
        async with secure(1, tmp_path, f=0, users=users, signed_tokens=issuer) as network:
            right = network.token("ann")
            assert "the token is invalid" in await _denied(network, network.with_token(right + "x"))
            assert "the token is invalid" in await _denied(network, network.with_token("zoe:secret"))
            assert "the token is invalid" in await _denied(network, network.by_token("bob"))
            assert "user 'bob' does not exist" in await _denied(network, network.certified("bob"))
            assert "user 'eve' may not authenticate with a certificate" in await _denied(
                network, network.certified("eve")
            )
            assert "user 'ann' may not authenticate with signed tokens" in await _denied(
                network, network.with_token(signed())
            )
            assert "it has expired" in await _denied(network, network.with_token(signed(exp=1)))
            counters = network.brokers["b0"].links.counters
            assert counters.refused["denied"] == 7

    run(main())


def test_a_static_token_that_expires_ends_the_connection_and_opens_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            later = time.time() + 3_600
            network.set_expiry("ann", later)
            await network.reload()
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            who = broker_security.prove({}, network.token("ann"))
            assert isinstance(who, Identity)
            assert who.expires == pytest.approx(later)  # the connection ends at that time, as with a signed token
            client = await connect(network.at("b0"), credentials=network.by_token("ann"))
            subscription = await client.subscribe("TRUE")
            network.set_users({"ann": EVERYTHING})
            network.set_expiry("ann", time.time())
            await network.reload()
            with pytest.raises(ConnectError, match="the token has expired; ask an operator"):
                await asyncio.wait_for(subscription.take(), 30)
            await client.close()
            assert "the token has expired" in await _denied(network, network.by_token("ann"))

    run(main())


def test_a_token_that_was_taken_back_counts_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            old = network.by_token("ann")
            async with connect(network.at("b0"), credentials=old) as client:
                await _works(client)
            network.tokens.clear()
            network.set_users({"ann": EVERYTHING})
            await network.reload()
            assert "the token is invalid or revoked" in await _denied(network, old)

    run(main())


def test_many_guesses_neither_queue_nor_block_other_users(tmp_path: Path) -> None:
    """Each guess is answered at once, so nothing queues up, and the right token counts whatever came before it."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            guesses = [broker_security.prove({}, f"ann:{number}") for number in range(10_000)]
            assert {guess.code for guess in guesses if isinstance(guess, wire.Refusal)} == {"denied"}
            assert not any(isinstance(guess, Identity) for guess in guesses)
            assert broker_security.prove({}, network.token("ann")) == Identity("user", "ann", "token")

    run(main())


def test_a_client_that_reaches_a_limit_retries(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": EVERYTHING}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann = network.certified("ann")
            first = await connect(network.at("b0"), credentials=ann)
            await first.advertise("TRUE")
            network.set_users(users, limits={"connections_per_s": 0.001})
            await network.reload()
            asked = await _come(network, ann)  # one is accepted, to query
            await asked.close(leave=False)
            waiting = asyncio.create_task(_come(network, ann))
            await asyncio.wait((waiting,), timeout=0.5)
            assert not waiting.done()
            network.set_users(users, limits={"connections": 1})
            await network.reload()
            second = await asyncio.wait_for(waiting, 30)
            call = asyncio.create_task(second.advertise("TRUE"))
            await asyncio.wait((call,), timeout=0.5)
            assert not call.done()
            await first.close()
            await asyncio.wait_for(call, 30)
            await second.close()

    run(main())


async def _come(network: Secure, credentials: Credentials) -> Client:
    return await connect(network.at("b0"), credentials=credentials, timeout_s=20)


class Raw:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def dial(cls, network: Secure, credentials: Credentials, broker: str = "b0") -> "Raw":
        context = client_context(*(Path(x) for x in (credentials.authority, credentials.certificate, credentials.key)))
        host, port = split_address(network.config.addresses[broker])
        return cls(*await asyncio.open_connection(host, port, ssl=context, server_hostname=host))

    async def greet(self, name: str, role: str = "client") -> wire.Welcome | wire.Refusal:
        self.writer.write(wire.greeting(role, name))
        kind, body = await self.read_frame()
        return wire.decode_refusal(body) if kind == wire.REFUSAL else wire.decode_welcome(body)

    async def read_frame(self) -> tuple[int, memoryview]:
        while True:
            # In Python 3.11, `wait_for` may swallow the end of a time limit around this call.
            async with asyncio.timeout(30):
                header = await self.reader.readexactly(5)
            length, kind = wire.HEADER.unpack(header)
            body = memoryview(await self.reader.readexactly(length - 1))
            if kind != wire.PING:
                return kind, body


def test_no_client_can_use_the_name_of_another(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": EVERYTHING, "bob": EVERYTHING}
        async with secure(chain(2), tmp_path, users=users) as network:
            bob = network.certified("bob")
            async with connect(network.at("b0"), credentials=network.certified("ann")) as client:
                for name in (client.name, "ann:other", "stranger", "bobby:x", "bob", "bob-x:y"):
                    for broker in ("b0", "b1"):
                        refusal = await (await Raw.dial(network, bob, broker)).greet(name)
                        assert isinstance(refusal, wire.Refusal), name
                        assert refusal.code == "denied"
                        assert (
                            f"the name {name!r} is not allowed: names of bob's clients begin with 'bob:'"
                            in refusal.reason
                        )
                await _works(client)
            welcome = await (await Raw.dial(network, bob)).greet("bob:anything")
            assert isinstance(welcome, wire.Welcome)
            assert welcome.user == "bob"

    run(main())


def test_a_client_with_the_same_identity_may_take_over_a_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            first = await Raw.dial(network, network.certified("ann"))
            assert isinstance(await first.greet("ann:desk"), wire.Welcome)
            again = await Raw.dial(network, network.certified("ann"))
            assert isinstance(await again.greet("ann:desk"), wire.Welcome)

    run(main())


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            ann = network.certified("ann")
            async with connect(network.at("b0"), credentials=ann):
                pass
            serial = f"{x509.load_pem_x509_certificate(Path(ann.certificate).read_bytes()).serial_number:X}"
            network.set_users({"ann": EVERYTHING}, revoked=[serial])
            await network.reload()
            assert "this certificate was revoked" in await _denied(network, ann)
            async with connect(network.at("b0"), credentials=network.certified("ann")):
                pass

    run(main())


def test_a_broker_whose_certificate_is_revoked_is_disconnected_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users={}) as network:
            links = network.brokers["b0"].links
            await until(lambda: "b1" in links.links and links.links["b1"].connection is not None)
            pem_of = (tmp_path / "brokers" / "b1.pem").read_bytes()
            network.set_users({}, revoked=[f"{x509.load_pem_x509_certificate(pem_of).serial_number:X}"])
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            with logged() as log:
                assert await broker_security.reload("the test says so")
                await until(lambda: "the certificate of broker 'b1' was revoked" in log.text)
                await until(lambda: "this certificate was revoked" in log.text)  # and when the client reconnects
            assert links.links["b1"].connection is None

    run(main())


def test_a_signed_token_expires_and_a_fresh_one_continues_without_a_gap(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "keys.pem").write_text(pem(KEY), encoding="utf-8")
        users = {"ann": {**EVERYTHING, "signed_token": True}}
        issuer = {"keys": "keys.pem", "audience": "shop"}
        async with secure(1, tmp_path, f=0, users=users, signed_tokens=issuer) as network:
            made: list[float] = []

            def fresh() -> str:
                made.append(time.time())
                return signed(exp=time.time() - 3)  # within the tolerance of clocks, for two seconds

            credentials = Credentials(authority=tmp_path / "authority.pem", token=fresh)
            async with connect(network.at("b0"), credentials=credentials) as client:
                await client.advertise("TRUE")
                subscription = await client.subscribe("TRUE")
                counters = network.brokers["b0"].links.counters
                sent, got = 0, 0
                while counters.refused["expired"] < 2:
                    await client.publish({"n": sent})
                    sent += 1
                    await asyncio.sleep(0.05)
                async with asyncio.timeout(30):
                    while got < sent:
                        for event in await subscription.take():
                            assert event.attributes["n"] == got
                            got += 1
            assert len(made) >= 4

    run(main())


def test_changed_keys_of_the_token_issuer_are_used_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        keys = tmp_path / "keys.pem"
        keys.write_text(pem(KEY), encoding="utf-8")
        users = {"ann": {**EVERYTHING, "signed_token": True}}
        async with secure(
            1, tmp_path, f=0, users=users, signed_tokens={"keys": "keys.pem", "audience": "shop"}
        ) as network:
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            other = ed25519.Ed25519PrivateKey.generate()
            assert "is not signed by a key" in await _denied(network, network.with_token(signed(other)))
            keys.write_text(pem(other), encoding="utf-8")
            await until(lambda: broker_security.reloads == 1)
            assert "is not signed by a key" in await _denied(network, network.with_token(signed()))
            async with connect(network.at("b0"), credentials=network.with_token(signed(other))):
                pass
            # Wait for a file that does not exist yet.
            network.set_users(users, signed_tokens={"keys": "new.pem", "audience": "shop"})
            await until(lambda: broker_security.failed_reloads == 1)
            (tmp_path / "new.pem").write_text(pem(KEY), encoding="utf-8")
            await until(lambda: broker_security.reloads == 2)
            async with connect(network.at("b0"), credentials=network.with_token(signed())):
                pass

    run(main())


def test_a_client_without_a_fresh_token_is_notified(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "keys.pem").write_text(pem(KEY), encoding="utf-8")
        users = {"ann": {**EVERYTHING, "signed_token": True}}
        issuer = {"keys": "keys.pem", "audience": "shop"}
        async with secure(1, tmp_path, f=0, users=users, signed_tokens=issuer) as network:
            shown = network.with_token(signed(exp=time.time() - 3))  # within the tolerance of clocks, for a moment
            client = await connect(network.at("b0"), credentials=shown)
            subscription = await client.subscribe("TRUE")
            with pytest.raises(ConnectError, match="it has expired; ask for a new one"):
                await asyncio.wait_for(subscription.take(), 30)
            await client.close()

    run(main())


def test_a_file_that_is_wrong_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            (tmp_path / "users.toml").write_text("[[users]]\nname = 'bob'\npublish = ['(']\n", encoding="utf-8")
            with logged() as log:
                await until(lambda: broker_security.failed_reloads > 0)
                assert "users.toml: users[0].publish[0]: " in log.text
            async with connect(network.at("b0"), credentials=network.by_token("ann")) as client:
                await _works(client)

    run(main())

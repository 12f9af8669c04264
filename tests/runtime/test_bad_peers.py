"""Peers that send malformed, oversized, incomplete or no input are disconnected with a reason, and no other peer is
affected."""

import asyncio
from typing import Any

import msgspec
import pytest

from gapless.client import connect
from gapless.errors import ConnectError
from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.positions import Volume
from gapless.protocols.gapless.client_messages import ClientPublish, ClientSubscribe
from gapless.protocols.gapless.identities import Status
from gapless.protocols.gapless.messages import Excluded
from gapless.runtime import wire
from gapless.runtime.connection import Link
from gapless.runtime.event_loop import run
from gapless.runtime.wire import Refusal

from .local import QUICK, local
from .logged import logged
from .raw_peer import Raw, batch, framed, with_witness

BEFORE_GREETING = {
    "rubbish": (b"\xde\xad\xbe\xef" * 100, "malformed", "too large"),
    "a web browser": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "malformed", "too large"),
    "a frame too large": ((1 << 31).to_bytes(4, "big"), "malformed", "2,147,483,648 bytes is too large"),
    "an empty frame": (b"\0\0\0\0", "malformed", "0 bytes"),
    "not a greeting": (framed(wire.PING, b""), "malformed", "begins with a greeting"),
    "a greeting that is none": (framed(wire.HELLO, b"\xc1"), "malformed", "not a greeting"),
    "a greeting that is no text": (framed(wire.HELLO, b"\x92\xa2\xff\xff\x01"), "malformed", "not a greeting"),
    "another version": (
        framed(wire.HELLO, msgspec.msgpack.encode(["gapless", 9, 9, 9])), "version", "the peer uses version 9",
    ),
    "a role that there is not": (wire.greeting("version", "c"), "malformed", "unknown role 'version'"),
    "another protocol": (wire.greeting("client", "c", protocol="delta"), "protocol", "this network runs 'gapless'"),
    "a client with a broker's name": (wire.greeting("client", "b0"), "name", "'b0' is the name of a broker"),
    "a broker of another network": (wire.greeting("broker", "b1", network="x"), "network", "another network file"),
    "nothing": (b"", "silent", "in time"),
    "half a frame": (wire.greeting("client", "c")[:-3], "silent", "in time"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BEFORE_GREETING)
def test_before_the_greetings_are_over(kind: str) -> None:
    data, code, reason = BEFORE_GREETING[kind]

    async def main() -> None:
        async with local(1, f=0) as network, with_witness(network):
            refusal = await (await Raw.dial(network)).say(data).refusal()
            assert refusal.code == code
            assert reason in refusal.reason

    run(main())


def test_a_broker_of_another_network_is_refused() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            peer = await Raw.dial(network)
            refusal = await peer.greet("b9", "broker", network=network.config.fingerprint).refusal()
            assert (refusal.code, refusal.reason) == ("name", "there is no other broker 'b9' in this network")

    run(main())


AFTER_GREETING = {
    "a batch that is none": (framed(wire.MESSAGES, b"\xc1"), "malformed"),
    "a message that is no text": (framed(wire.MESSAGES, b"\x91\x92\xa9ClientG\xfft\x01"), "malformed"),
    "an unknown message": (framed(wire.MESSAGES, msgspec.msgpack.encode([["Nonsense"]])), "malformed"),
    "words of a broker": (batch(Excluded({"b0": Status(1)})), "malformed"),
    "another greeting": (wire.greeting("client", "c"), "there is no frame of kind 1"),
    "an unknown frame": (framed(77, b""), "there is no frame of kind 77"),
    "a frame too large": (b"\x7f\xff\xff\xff", "too large"),
}


@pytest.mark.parametrize("kind", AFTER_GREETING)
def test_after_the_greetings(kind: str) -> None:
    data, reason = AFTER_GREETING[kind]

    async def main() -> None:
        async with local(1, f=0) as network, with_witness(network):
            refusal = await (await Raw.dial(network)).greet().say(data).refusal()
            assert refusal.code == "malformed"
            assert reason in refusal.reason

    run(main())


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (ClientSubscribe(1, "c/s", "price <"), "price <"),
        (ClientSubscribe(1, "c/s", "TRUE", 0, survey=Volume(1)), "it needs an end and a volume"),
        (ClientSubscribe(1, "c/s", "TRUE", 0, 1, survey=Volume(0, 1)), "it needs an end and a volume"),
        (ClientPublish(1, EventRun.of([Event("somebody", 1, {})])), "'c' cannot publish in the name of 'somebody'"),
        (ClientPublish(1, EventRun.of([Event("c", 1, {"x": 2**63})])), "Expected `int` <= 9223372036854775807"),
        (ClientPublish(1, EventRun.of([Event("c", 1, {"x": 2**64 - 1})])), "Expected `int` <= 9223372036854775807"),
        (
            ClientPublish(1, EventRun("c", 1, EventTable.of([{"x": 2**63}] * 2, [b"", b""]))),
            "Expected `int` <= 9223372036854775807",
        ),
    ],
)
def test_an_invalid_message_of_a_client_ends_only_its_own_session(message: Any, complaint: str) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, with_witness(network):
            refusal = await (await Raw.attached(network, "c")).say(batch(message)).refusal()
            assert refusal.code == "malformed"
            assert complaint in refusal.reason

    run(main())


def test_half_a_batch_and_then_silence_ends_that_connection_only() -> None:
    whole = batch(ClientPublish(1, EventRun.of([Event("c", 1, {}, b"x" * 1000)])))

    async def main() -> None:
        async with local(1, f=0) as network, with_witness(network):
            peer = (await Raw.dial(network)).greet("c").say(whole[:500])
            await peer.read_frame()
            broker = network.brokers["b0"]
            async with asyncio.timeout(10):
                while broker.links.client_count > 1:
                    await asyncio.sleep(0.05)

    run(main())


def test_a_connection_that_ends_within_a_frame_affects_no_other() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, with_witness(network):
            for size in (1, 4, 5, 20):
                peer = (
                    (await Raw.dial(network))
                    .greet("c")
                    .say(batch(ClientPublish(1, EventRun.of([Event("c", 1, {})])))[:size])
                )
                await peer.read_frame()
                peer.abort()

    run(main())


def test_a_full_broker_reports_it() -> None:
    async def main() -> None:
        small = msgspec.structs.replace(QUICK, clients_max=1)
        async with local(1, f=0, runtime=small) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            refusal = await (await Raw.dial(network)).greet("late").refusal()
            assert (refusal.code, refusal.reason) == ("full", "broker 'b0' has 1 clients; try another")

    run(main())


def test_dialling_another_service_gives_an_error() -> None:
    async def greet_wrongly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(greet_wrongly, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError, match="not a Gapless broker"):
            await connect(f"gapless://127.0.0.1:{port}", timeout_s=1)
        server.close()

    run(main())


def test_a_listener_of_another_version_is_recognized() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reason = "the peer uses version 3 of the wire format, but this broker uses version 4"
        writer.write(wire.frame(wire.REFUSAL, Refusal("version", reason)))
        await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError, match="this broker uses version 4"):
            await connect(f"gapless://127.0.0.1:{port}", timeout_s=1)
        server.close()

    run(main())


def test_a_client_of_a_broker_whose_messages_it_does_not_understand_fails_with_one_error() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url, name="ann") as client:
            await client.advertise("TRUE")
            link = next(link for link in network.brokers["b0"].links.links.values() if link.is_client)
            assert link.connection is not None
            link.connection.write((framed(wire.MESSAGES, msgspec.msgpack.encode([["Confirmed", "of", "tomorrow"]])),))
            with pytest.raises(ConnectError, match="'b0' sends messages that this client does not understand"):
                async with asyncio.timeout(10):
                    await client.subscribe("topic = 'x'")
            with pytest.raises(ConnectError, match="does not understand"):
                await client.publish({})
            await asyncio.sleep(0.5)
            assert network.brokers["b0"].links.client_count == 0, "it does not connect again"

    run(main())


def test_a_peer_that_ends_every_connection_is_not_dialled_continuously() -> None:
    async def main() -> None:
        async with local(2, f=0) as network:
            b0, b1 = network.brokers["b0"], network.brokers["b1"]
            met = 0
            async with asyncio.timeout(10):
                while "b1" not in b0.links.links or b0.links.links["b1"].connection is None:
                    await asyncio.sleep(0.01)

            def expel(link: Link) -> None:
                nonlocal met
                met += 1
                b1.links.expel(link, "malformed", "this is not understood")

            b1.links.detector.established = expel  # type: ignore[method-assign]
            b1.links.expel(b1.links.links["b0"], "malformed", "this is not understood")
            await asyncio.sleep(1.0)
            assert 0 < met <= 2 * (1 + 1_000 / QUICK.redial_max_ms), "both ends dial"

    run(main())


@pytest.mark.parametrize("name", ["ann\n2026-11-16 error b0: all is lost", "ann\x1b[2J", "ann\u2028x"])
def test_a_name_that_would_write_lines_of_its_own_into_logs_is_refused(name: str) -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            refusal = await (await Raw.dial(network)).greet(name).refusal()
            assert "the name of a client or broker " in refusal.reason
            forger = await Raw.attached(network)
            forger.say(batch(ClientSubscribe(1, f"liar/{name}", "TRUE")))
            assert "must contain only printable" in (await forger.refusal()).reason
            with logged() as log:
                network.brokers["b0"].logger.warning(f"refused by a peer: {name}")
                assert len(log.text.splitlines()) == 1
                assert "\x1b" not in log.text

    run(main())

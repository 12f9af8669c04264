"""Queues to peers that do not read are bounded and lose nothing, because publishers wait."""

import asyncio
from collections.abc import Callable

import msgspec

from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime import wire
from gapless.runtime.event_loop import run
from gapless_papers.protocols.locaps.messages import ClientSubscribe

from .local import QUICK, Local, local
from .raw_peer import Raw, framed

SMALL = msgspec.structs.replace(QUICK, write_max=64 * 1024, queue_pause=20, queue_max=1_000, suspect_ms=60_000)


async def deaf_subscriber(network: Local, broker: str) -> Raw:
    peer = (await Raw.dial(network, broker)).greet("deaf")
    peer._writer.transport.pause_reading()  # type: ignore[attr-defined]
    peer.say(framed(wire.MESSAGES, msgspec.msgpack.encode([ClientSubscribe(1, "TRUE")])))
    node = network.brokers[broker].links.host.node
    assert node is not None
    await until(lambda: node.state_size()["subscriptions"] > 0)
    return peer


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_client_that_does_not_read_delays_publishers_at_its_own_broker() -> None:
    async def main() -> None:
        async with local(1, f=0, protocol="locaps", runtime=SMALL) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            peer = await deaf_subscriber(network, "b0")
            publishing = asyncio.create_task(client.publish_many(({"n": n}, b"x" * 50_000) for n in range(2_000)))
            links = network.brokers["b0"].links
            await until(lambda: links.queues.is_paused)
            assert not publishing.done(), "100 MB do not fit anywhere"
            waiting = links.links["deaf"].outbox
            assert 20 < len(waiting) < 20 + 2 * 256
            before = 0
            async with asyncio.timeout(30):
                while len(waiting) != before:  # messages in flight arrive, and then nothing more
                    before = len(waiting)
                    await asyncio.sleep(0.3)
            assert before < 20 + 2 * 256
            assert links.links[client.name].connection is not None, "who is held back is not taken for dead"
            deaf = links.links["deaf"].connection
            assert deaf is not None
            deaf.abort()
            assert await asyncio.wait_for(publishing, 120) == 2_000
            peer._writer.close()

    run(main())


def test_a_peer_that_reads_nothing_is_disconnected() -> None:
    async def main() -> None:
        async with local(chain(2), protocol="locaps", runtime=SMALL) as network, connect(network.at("b0")) as client:
            await client.advertise("TRUE")
            peer = await deaf_subscriber(network, "b1")
            links = network.brokers["b1"].links
            deaf = links.links["deaf"]
            deaf.outbox.extend(["stuck"] * 1_001)
            links.queues._congested[deaf] = None
            links.queues.look()
            assert deaf.connection is None
            assert deaf.outbox == []
            assert not links.queues.is_paused
            peer._writer.close()

    run(main())


def test_a_queue_that_grows_slowly_holds_publishers_back_too() -> None:
    async def main() -> None:
        async with local(1, f=0, protocol="locaps", runtime=SMALL) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            peer = await deaf_subscriber(network, "b0")
            links = network.brokers["b0"].links
            deaf = links.links["deaf"]
            async with asyncio.timeout(120):
                while not links.queues.is_paused:  # one at a time, so that nothing else is queued
                    await client.publish({"n": 1}, b"x" * 50_000)
                    await asyncio.sleep(0.001)
                    assert len(deaf.outbox) < 200
            peer._writer.close()

    run(main())

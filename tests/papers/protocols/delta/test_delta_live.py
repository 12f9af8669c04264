"""Real brokers over TCP: one dies and returns without its memory."""

import asyncio

import gapless
from gapless.overlay import chain
from tests.runtime.local import local


async def scene() -> list[int]:
    """Return the numbers that a subscriber at one end receives from a publisher at the other."""
    numbers: list[int] = []
    async with local(chain(4), f=1, protocol="delta", patience_ms=20_000) as network:
        subscriber = await gapless.connect(network.at("b3"))
        publisher = await gapless.connect(network.at("b0"))
        subscription = await subscriber.subscribe("x > 0")

        async def read() -> None:
            async for delivery in subscription:
                numbers.append(delivery.seq)

        reading = asyncio.create_task(read())
        for number in range(1, 31):
            if number == 11:
                await network.crash("b1")
            if number == 21:
                await network.start("b1")
            await publisher.publish({"x": number})
        reading.cancel()
        await publisher.close()
        await subscriber.close()
    return numbers


def test_a_broker_crashes_and_restarts() -> None:
    assert asyncio.run(asyncio.wait_for(scene(), 60)) == list(range(1, 31))


async def publish_many(count: int, window: int) -> int:
    """Return how many of `count` events a client publishes if at most `window` of them may be unconfirmed."""
    async with (
        local(chain(2), f=0, protocol="delta", window=window) as network,
        gapless.connect(network.at("b0")) as publisher,
        gapless.connect(network.at("b1")) as subscriber,
    ):
        await subscriber.subscribe("x >= 0")
        return await publisher.publish_many({"x": number} for number in range(count))


def test_a_client_waits_for_room_in_a_small_window() -> None:
    assert asyncio.run(asyncio.wait_for(publish_many(50, 3), 60)) == 50

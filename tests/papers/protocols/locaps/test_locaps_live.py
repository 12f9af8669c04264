"""Real brokers over TCP: one on the path crashes, then the publisher's own, and no event is missing."""

import asyncio

import gapless
from gapless.overlay import chain
from tests.runtime.local import local

COUNT = 30


async def scene() -> list[int]:
    """Return the numbers that a subscriber at one end receives from a publisher at the other."""
    numbers: list[int] = []
    complete = asyncio.Event()
    async with local(chain(5), f=2, protocol="locaps") as network:
        subscriber = await gapless.connect(network.at("b4"))
        publisher = await gapless.connect(network.at("b0"))
        await publisher.advertise("x > 0")
        subscription = await subscriber.subscribe("x > 0")

        async def read() -> None:
            async for delivery in subscription:
                numbers.append(delivery.seq)
                if len(numbers) == COUNT:
                    complete.set()

        reading = asyncio.create_task(read())
        for number in range(1, COUNT + 1):
            if number == 11:
                await network.crash("b2")
            if number == 21:
                await network.crash("b0")
            await publisher.publish({"x": number})
        await complete.wait()
        reading.cancel()
        await publisher.close()
        await subscriber.close()
    return numbers


def test_brokers_crash_and_no_event_is_missing() -> None:
    assert asyncio.run(asyncio.wait_for(scene(), 120)) == list(range(1, COUNT + 1))

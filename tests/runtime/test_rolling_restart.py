"""All brokers of a deep network are restarted in turn, over TCP; then it works as before."""

import asyncio

from gapless import connect
from gapless.overlay import chain

from .local import Local, local

PATIENCE_S = 60.0


async def until_whole(network: Local) -> None:
    def is_whole() -> bool:
        overviews = [broker.report()["overview"] for broker in network.brokers.values()]
        return all(o["joined"] and not o["replaced_by"] and not o["handovers"] for o in overviews)

    async with asyncio.timeout(PATIENCE_S):
        while not is_whole():
            await asyncio.sleep(0.05)


async def restart_all() -> list[object]:
    async with local(chain(7), f=1) as network:
        await until_whole(network)
        for name in network.config.overlay.brokers:
            await network.brokers.pop(name).stop()
            await asyncio.sleep(0.2)
            await network.start(name)
            await until_whole(network)
        async with connect(network.at("b0")) as one, connect(network.at("b6")) as other, asyncio.timeout(PATIENCE_S):
            await one.advertise("x >= 0")
            subscription = await other.subscribe("x >= 0")
            for number in range(5):
                await one.publish({"x": number})
            return [(await anext(subscription)).attributes["x"] for _ in range(5)]


def test_a_chain_of_seven_restarted_broker_by_broker_works_as_before() -> None:
    assert asyncio.run(restart_all()) == [0, 1, 2, 3, 4]

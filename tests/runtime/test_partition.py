"""A network of real brokers is cut in two: at most one side continues, and no event is lost."""

import asyncio

from trials.cut_proxy import CutProxy, proxied

from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network

from .local import QUICK, Local
from .test_backpressure import until
from .test_isolated_broker import numbers

LEFT, RIGHT = ("b0", "b1", "b2"), ("b3", "b4")
EVENTS = 10


def test_a_network_that_was_cut_in_two_is_one_again_with_all_that_was_confirmed() -> None:
    async def main() -> None:
        network = Local(proxied(local_network(chain(5), f=1, runtime=QUICK)))
        proxy = CutProxy(network.config)
        await proxy.start()
        try:
            await asyncio.gather(*(network.start(name) for name in network.config.overlay.brokers))
            await _use(network, proxy)
        finally:
            await network.stop()
            proxy.stop()

    run(main())


async def _use(network: Local, proxy: CutProxy) -> None:
    pairs = [(one, other) for one in LEFT for other in RIGHT]
    async with connect(network.at("b0"), name="ann") as ann, connect(network.at("b4"), name="bob") as bob:
        await ann.advertise("TRUE")
        subscription = await bob.subscribe("TRUE")
        await ann.publish({"n": 0})
        for pair in pairs:
            proxy.cut(*pair)
        async with asyncio.timeout(90):
            await until(lambda: "b3" in network.brokers["b2"].report()["overview"]["suspected"])
            for number in range(1, EVENTS):
                await ann.publish({"n": number})
            for pair in pairs:
                proxy.heal(*pair)
            assert await numbers(subscription, EVENTS - 1) == [*range(EVENTS)]
            await until(lambda: not network.brokers["b2"].report()["overview"]["suspected"])

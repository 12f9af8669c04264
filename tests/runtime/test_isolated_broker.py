"""The clients of an isolated broker move to another one, and unnecessary connections are closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from trials.cut_proxy import CutProxy, proxied

from gapless.client import Subscription, connect
from gapless.overlay import chain
from gapless.runtime.connection import Connection
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.network_file import ProtocolEntry
from gapless.runtime.wire import Hello

from .local import QUICK, Local, local
from .test_backpressure import until


@asynccontextmanager
async def behind_a_proxy(brokers: int, protocol: str) -> AsyncIterator[tuple[Local, CutProxy]]:
    network = Local(proxied(local_network(chain(brokers), f=1, protocol=ProtocolEntry(protocol), runtime=QUICK)))
    proxy = CutProxy(network.config)
    await proxy.start()
    try:
        await asyncio.gather(*(network.start(name) for name in network.config.overlay.brokers))
        yield network, proxy
    finally:
        await network.stop()
        proxy.stop()


async def numbers(subscription: Subscription, until_number: int) -> list[int]:
    found: list[int] = []
    while not found or found[-1] < until_number:
        found += [int(event.attributes["n"]) for event in await subscription.take()]
    return found


@pytest.mark.parametrize("protocol", ["gapless"])
def test_clients_of_a_broker_that_is_cut_off_move_to_one_that_is_not(protocol: str) -> None:
    async def main() -> None:
        opening = behind_a_proxy(4, protocol)
        async with (
            opening as (network, proxy),
            connect(network.at("b3"), name="ann") as ann,
            connect(network.at("b0"), name="bob") as bob,
        ):
            await ann.advertise("TRUE")
            await bob.advertise("FALSE")
            subscription = await bob.subscribe("TRUE")
            assert bob.broker == "b0"
            await ann.publish({"n": 1})
            for other in ("b1", "b2", "b3"):
                proxy.cut("b0", other)
            async with asyncio.timeout(60):
                await until(lambda: network.brokers["b0"].report()["overview"]["isolated"])
                await ann.publish({"n": 2})
                assert await numbers(subscription, 2) == [1, 2], "while it is cut off"
                assert bob.broker != "b0"
                for other in ("b1", "b2", "b3"):
                    proxy.heal("b0", other)
                await until(lambda: not network.brokers["b0"].report()["overview"]["isolated"])
                await ann.publish({"n": 3})
                assert await numbers(subscription, 3) == [3]

    run(main())


def test_a_client_parts_with_the_brokers_that_it_does_not_need() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("TRUE")
            for spare in ("b1", "b2"):
                ann._connection_manager._links.open(spare)
                await until(lambda spare=spare: network.brokers[spare].links.client_count == 1)  # type: ignore[misc]
            await until(lambda: list(ann._connection_manager._links.links) == ["b0"])
            for spare in ("b1", "b2"):
                await until(lambda spare=spare: network.brokers[spare].links.client_count == 0)  # type: ignore[misc]
            assert network.brokers["b1"].report()["suspicions"] == 0
            await network.crash("b0")
            async with asyncio.timeout(30):
                await ann.publish({"n": 1})

    run(main())


def test_a_client_that_parts_with_a_broker_while_it_connects_has_one_connection_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network, connect(network.at("b0"), name="ann") as ann:
            ann._connection_manager._spare_links.close()
            links = ann._connection_manager._links
            there = network.brokers["b1"].links
            received: list[tuple[Connection, Hello]] = []
            with monkeypatch.context() as patch:
                patch.setattr(there, "asked", lambda connection, hello: received.append((connection, hello)))
                begun = links.open("b1")
                await until(lambda: bool(received))
            links.part("b1")
            there.asked(*received[0])
            await asyncio.sleep(0.1)
            again = links.open("b1")
            await until(lambda: again.connection is not None)
            connection = again.connection
            await asyncio.sleep(0.3)
            assert (again.connection, begun.connection) == (connection, None)
            assert network.brokers["b1"].links.client_count == 1

    run(main())

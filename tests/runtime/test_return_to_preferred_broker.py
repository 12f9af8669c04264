"""Clients return to their preferred broker after it has restarted, and miss no event."""

import asyncio
from contextlib import AsyncExitStack

from gapless.client import Client, Subscription, connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .local import local
from .test_backpressure import until

PATIENCE_S = 120.0


async def talk(client: Client, stop: asyncio.Event) -> int:
    number = 0
    while not stop.is_set():
        number += 1
        await client.publish({"n": number})
        await asyncio.sleep(0.005)
    return number


async def numbers(subscription: Subscription, last: int) -> list[int]:
    found: list[int] = []
    while not found or found[-1] < last:
        found += [int(event.attributes["n"]) for event in await subscription.take()]
    return found


def test_clients_go_home_while_they_talk_and_miss_nothing() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            network = await stack.enter_async_context(local(chain(3), f=1, rebalance_ms=1_000.0))
            names = ["ann", "bob", "cid", "dan"]
            clients = [await stack.enter_async_context(connect(network.at("b1"), name=name)) for name in names]
            speaker, *listeners = clients
            await speaker.advertise("n > 0")
            subscriptions = [await client.subscribe("n > 0") for client in listeners]
            stop = asyncio.Event()
            talking = asyncio.create_task(talk(speaker, stop))

            def served_by(*names: str) -> int:
                return sum(network.brokers[name].report()["clients"] for name in names)

            async with asyncio.timeout(PATIENCE_S):
                # On a busy machine a client sometimes leaves its broker, and returns, too.
                await until(lambda: served_by("b1") == len(clients))
                await network.crash("b1")
                await until(lambda: served_by("b0", "b2") == len(clients))
                await network.start("b1")
                await until(lambda: served_by("b1") == len(clients))
                stop.set()
                last = await talking
                for subscription in subscriptions:
                    assert await numbers(subscription, last) == list(range(1, last + 1))

    run(main())

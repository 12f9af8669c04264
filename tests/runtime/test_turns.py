"""With the shortest possible turns of the event loop, tasks wait for each other and every message arrives."""

import asyncio

import pytest

from gapless.client import Subscription, connect
from gapless.runtime import turns
from gapless.runtime.connection import Connection
from gapless.runtime.event_loop import run
from gapless.runtime.turns import Turns

from .local import Local, local

CLIENTS = 12
EVENTS = 100


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    has_time = Turns.has_time_for

    def noted(self: Turns, connection: Connection) -> bool:
        if not has_time(self, connection):
            assert connection.link is not None
            found.append(connection.link.name)
            return False
        return True

    monkeypatch.setattr(turns, "TURN_US", -1)  # expired before it begins
    monkeypatch.setattr(Turns, "has_time_for", noted)
    return found


async def take_all(subscription: Subscription) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    async for event in subscription:
        found.setdefault(event.publisher, []).append(event.seq)
        if len(found) == CLIENTS and all(numbers[-1] == EVENTS for numbers in found.values()):
            return found
    raise AssertionError("the subscription ended")


def test_messages_of_a_waiting_client_are_all_processed_later(waits: list[str]) -> None:
    async def talk(network: Local) -> None:
        clients = [await connect(network.at(f"b{number % 3}"), name=f"c{number}") for number in range(CLIENTS)]
        await asyncio.gather(*(client.advertise("TRUE") for client in clients))
        subscriptions = await asyncio.gather(*(client.subscribe("TRUE") for client in clients[:3]))
        taking = [asyncio.create_task(take_all(subscription)) for subscription in subscriptions]
        await asyncio.gather(*(client.publish_many(({"n": n}, b"") for n in range(EVENTS)) for client in clients))
        for found in await asyncio.gather(*taking):
            assert found == {client.name: list(range(1, EVENTS + 1)) for client in clients}
        await asyncio.gather(*(client.close() for client in clients))

    async def main() -> None:
        async with local(3) as network:
            await talk(network)

    run(main())
    assert len(set(waits)) > CLIENTS, "clients wait, and brokers"


def test_a_client_that_leaves_while_waiting_is_removed(waits: list[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            links = network.brokers["b0"].links
            clients = [await connect(network.url, name=f"c{number}") for number in range(CLIENTS)]
            await asyncio.gather(*(client.advertise("TRUE") for client in clients))
            publishing = [asyncio.create_task(client.publish({"n": 1}, b"")) for client in clients]
            while not waits:
                await asyncio.sleep(0)
            link = links.links[waits[-1]]
            assert link.connection is not None
            link.connection.abort()
            await asyncio.gather(*publishing)
            while links.turns._waiting:
                await asyncio.sleep(0.01)
            await asyncio.gather(*(client.close() for client in clients))

    run(main())

"""A client reports changes of its connection: connected, disconnected, moved."""

import asyncio

import pytest

from gapless.client import ConnectionChange, ConnectionChanges, connect
from gapless.client.changes import KEPT_MAX
from gapless.errors import ClosedError
from gapless.overlay import chain
from gapless.protocol import Publish
from gapless.runtime.event_loop import run
from tests.runtime.local import local


async def _next(changes: ConnectionChanges) -> ConnectionChange:
    async with asyncio.timeout(20):
        return await anext(changes)


def test_a_client_that_moves_reports_it() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0")) as client:
            changes = client.connection_changes()
            assert await _next(changes) == ConnectionChange("connected", "b0")
            assert await _next(client.connection_changes()) == ConnectionChange("connected", "b0"), (
                "who comes later hears how it is"
            )
            await network.crash("b0")
            assert await _next(changes) == ConnectionChange("disconnected", "b0")
            moved = await _next(changes)
            assert (moved.kind, moved.previous) == ("moved", "b0")
            assert moved.broker in ("b1", "b2")
            assert client.broker == moved.broker

    run(main())


@pytest.mark.parametrize("protocol", ["gapless", "locaps"])
def test_a_connection_that_breaks_is_lost_and_made_again(protocol: str) -> None:
    async def main() -> None:
        async with local(chain(2), protocol=protocol) as network, connect(network.at("b0")) as client:
            changes = client.connection_changes()
            await client.advertise("TRUE")
            assert await _next(changes) == ConnectionChange("connected", "b0")
            connection = client._connection_manager._links.links["b0"].connection
            assert connection is not None
            connection.abort()
            assert await _next(changes) == ConnectionChange("disconnected", "b0")
            assert await _next(changes) == ConnectionChange("connected", "b0")

    run(main())


def test_a_broker_that_leaves_in_good_order_is_lost_at_once() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b1")) as client:
            changes = client.connection_changes()
            assert await _next(changes) == ConnectionChange("connected", "b1")
            await network.brokers.pop("b1").stop()
            assert await _next(changes) == ConnectionChange("disconnected", "b1")
            assert (await _next(changes)).kind == "moved"

    run(main())


def test_changes_end_with_the_client_or_with_what_it_failed_of() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            client = await connect(network.url)
            changes = client.connection_changes()
            assert (await _next(changes)).kind == "connected"
            waiting = asyncio.create_task(_next(changes))
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(StopAsyncIteration):
                await waiting
            assert [change async for change in client.connection_changes()] == []
            client = await connect(network.url)
            await client.advertise("TRUE")
            changes = client.connection_changes()
            assert (await _next(changes)).kind == "connected"
            client._connection_manager._links.give(Publish({"what": object()}))  # type: ignore[dict-item]
            with pytest.raises(ClosedError, match="cannot be encoded"):
                await _next(changes)
            await client.close()

    run(main())


def test_a_slow_console_receives_a_count_of_missed_events_and_uses_bounded_memory() -> None:
    async def main() -> None:
        changes = ConnectionChanges()
        for n in range(KEPT_MAX + 5):
            changes._put(ConnectionChange("connected", f"b{n}"))
        assert await anext(changes) == ConnectionChange("connected", "b5", missed=5)
        assert await anext(changes) == ConnectionChange("connected", "b6")
        assert len(changes._queue) == KEPT_MAX - 2

    run(main())


def test_consoles_that_left_are_removed() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            for _ in range(50):
                await _next(client.connection_changes())
            assert len(client._connection_manager._watching._watchers) <= 1

    run(main())

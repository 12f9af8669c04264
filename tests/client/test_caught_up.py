"""`caught_up()` returns when the application has taken all of history, and not earlier."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless import sync
from gapless.client.pending_events import PendingEvents
from gapless.client.replay import Replay
from gapless.errors import CallError, ClosedError, SkippedError
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from tests.runtime.local import QUICK, local

COUNT = 600


def test_it_is_caught_up_when_the_last_event_of_history_is_consumed() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, gapless.connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            await client.publish_many({"n": n} for n in range(COUNT))
            replay = await client.subscribe("TRUE", since="earliest")
            waiting = asyncio.create_task(replay.caught_up())
            for _ in range(COUNT):
                assert not replay.is_caught_up
                await anext(replay)
            await waiting
            assert replay.is_caught_up
            await client.publish({"n": COUNT})
            assert replay.is_caught_up, "what is published now is no history"
            assert (await anext(replay)).integer("n") == COUNT

    run(main())


def test_history_and_live_events_are_not_taken_together() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            await client.publish_many({"n": n} for n in range(5))
            replay = await client.subscribe("TRUE", since="earliest")
            while not replay.is_live:
                await asyncio.sleep(0.01)
            await client.publish_many({"n": n} for n in range(5, 8))
            while len(replay._pending_events) < 8:
                await asyncio.sleep(0.01)
            assert len(await replay.take(100)) == 5
            assert replay.is_caught_up
            assert len(await replay.take(100)) == 3

    run(main())


def test_without_history_it_is_caught_up_at_once() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            live = await client.subscribe("TRUE")
            await live.caught_up()
            replay = await client.subscribe("TRUE", since="earliest")
            await replay.caught_up()  # returns without any take
            durable = await client.durable("billing", "TRUE")
            await durable.caught_up()

    run(main())


def test_a_history_read_is_caught_up_at_its_end_and_a_closed_subscription_never() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            await client.publish_many({"n": n} for n in range(20))
            reading = await client.read("TRUE")
            waiting = asyncio.create_task(reading.caught_up())
            assert len([event async for event in reading]) == 20
            await waiting
            closed = await client.subscribe("TRUE", since="earliest")
            closed._reach(Position.at(0), is_live=False)  # as if more history were to follow
            waiting = asyncio.create_task(closed.caught_up())
            await asyncio.sleep(0)
            await closed.close()
            with pytest.raises(ClosedError, match="was closed before its history ended"):
                await waiting

    run(main())


def test_a_durable_subscription_is_caught_up_when_the_backlog_is_consumed() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            await (await client.durable("billing", "TRUE")).close()
            await client.publish_many({"n": n} for n in range(3))
            billing = await client.durable("billing", "TRUE")
            waiting = asyncio.create_task(billing.caught_up())
            assert [(await anext(billing)).integer("n") for _ in range(3)] == [0, 1, 2]
            await waiting
            shared = await client.durable("printing", "TRUE", group=True)
            assert not shared.is_caught_up
            with pytest.raises(
                CallError, match="the subscription to 'TRUE' is shared by a group, so no member can tell"
            ):
                await shared.caught_up()

    run(main())


def test_something_missing_at_the_end_of_history_has_to_be_raised_first() -> None:
    pending_events, skips = PendingEvents(), [(5, SkippedError("gone", {}))]
    replay = Replay(pending_events, skips)
    assert replay.is_taken
    replay.begin()
    assert not replay.is_taken
    replay.end()
    assert not replay.is_taken, "something is missing before the next delivery, which may never come"
    skips.clear()
    assert replay.is_taken
    pending_events.put(6, [Event("p", 1, {})])
    assert replay.is_taken, "that came later"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with Fleet(local_network(chain(1), f=0, runtime=QUICK), tmp_path) as fleet:
        fleet.start_all()
        sync.connect(fleet.config.url, timeout_s=60).close()
        yield fleet.config.url


def test_without_an_event_loop_what_was_only_fetched_does_not_count(url: str) -> None:
    with sync.connect(url) as client:
        client.advertise("TRUE")
        client.publish_many({"n": n} for n in range(COUNT))
        replay = client.subscribe("TRUE", since="earliest")
        done = threading.Event()

        def wait() -> None:
            replay.caught_up()
            done.set()

        threading.Thread(target=wait, daemon=True).start()
        events: Any = iter(replay)
        for _ in range(COUNT):
            assert not replay.is_caught_up
            assert not done.is_set()
            next(events)
        assert done.wait(20)
        assert replay.is_caught_up
        client.publish({"n": COUNT})
        assert next(events).integer("n") == COUNT

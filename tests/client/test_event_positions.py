"""`since=event.position` means everything after exactly this event, for events from every source."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gapless.archive import Archive, ArchiveWriter, Contents
from gapless.client import ArchiveReader, Client, connect
from gapless.client.positions import EARLIEST
from gapless.errors import CallError, SkippedError
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.event_loop import run
from tests.runtime.local import Local, local

PATIENCE_S = 60.0
TEN = list(range(1, 11))


def together(test: Callable[[Local, Client, Client], Awaitable[None]], brokers: int = 2, **options: Any) -> None:
    async def main() -> None:
        async with (
            local(chain(brokers), **options) as network,
            connect(network.at("b0"), name="ann") as ann,
            connect(network.at(f"b{brokers - 1}"), name="bob") as bob,
            asyncio.timeout(PATIENCE_S),
        ):
            await ann.advertise("n > 0")
            await test(network, ann, bob)

    run(main())


async def ten(publisher: Client, first: int = 1) -> None:
    await publisher.publish_many([{"n": number} for number in range(first, first + 10)])


async def taken(subscription: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += await subscription.take(count - len(found))
    return found


def numbers(events: list[Event]) -> list[Any]:
    return [event.attributes["n"] for event in events]


async def read(client: Client | ArchiveReader, **span: Any) -> list[Any]:
    return numbers([event async for event in await client.read("n > 0", **span)])


def test_reading_continues_after_the_fifth_of_ten_published_together() -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        live = await bob.subscribe("n > 0")
        await ten(ann)
        events = await taken(live, 10)
        assert len({event.position.timestamp for event in events}) == 1, "that is the case that matters"
        assert events == sorted(events, key=lambda event: event.position)
        fifth, eighth = events[4].position, events[7].position
        assert await read(bob, since=fifth) == [6, 7, 8, 9, 10]
        assert await read(bob, since=str(fifth)) == [6, 7, 8, 9, 10], "its text is the same position"
        assert await read(bob, until=fifth) == [1, 2, 3, 4, 5]
        assert await read(bob, since=fifth, until=eighth) == [6, 7, 8]
        reread = [event async for event in await bob.read("n > 0")]
        assert [event.position for event in reread] == [event.position for event in events]

    together(test)


def test_a_replay_begins_after_an_event_and_continues_live_even_when_its_broker_dies() -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        await ten(ann)
        first = [event async for event in await bob.read("n > 0")]
        subscription = await bob.subscribe("n > 0", since=first[2].position)
        assert numbers(await taken(subscription, 3)) == [4, 5, 6]
        await network.crash("b3")
        await ten(ann, 11)
        assert numbers(await taken(subscription, 14)) == list(range(7, 21))

    together(test, brokers=4)


def test_the_position_of_a_subscription_is_that_of_what_was_taken() -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        await ten(ann)
        reading = await bob.read("n > 0", since=EARLIEST)
        handled = numbers([await anext(reading) for _ in range(4)])
        assert handled == [1, 2, 3, 4]
        stopped = reading.position
        assert not stopped.is_network_wide, "it delivered ten, and four were taken"
        assert handled + await read(bob, since=stopped) == TEN
        assert await taken(reading, 6)
        assert await reading.take() == []
        assert reading.position.is_network_wide, "all of it was taken"
        ended = [event async for event in await bob.read("n > 0", until=stopped)]
        assert ended[-1].position == stopped
        live = await bob.subscribe("n > 0")
        with pytest.raises(CallError, match="has no position, because it did not begin at one; subscribe with since="):
            _ = live.position

    together(test)


def test_a_history_read_that_ends_within_a_run_is_recorded() -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        await ten(ann)
        events = [event async for event in await bob.read("n > 0")]
        until = events[6].position
        reading = await bob.read("n > 0", until=until)
        assert len([event async for event in reading]) == 7
        assert reading.position == until
        assert await read(bob, since=reading.position) == [8, 9, 10]

    together(test)


@pytest.mark.parametrize("share", [False, True])
def test_a_durable_subscription_moves_to_an_event_and_is_confirmed_up_to_one(*, share: bool) -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        durable = await bob.durable("billing", "n > 0", group=share, ack="manual")
        await ten(ann)
        events = await taken(durable, 10)
        await durable.ack(events[1].position)
        await durable.close()
        durable = await bob.durable("billing", "n > 0", group=share, ack="manual")
        assert numbers(await taken(durable, 8)) == [3, 4, 5, 6, 7, 8, 9, 10]
        await durable.close()
        await bob.admin.move("billing", events[6].position)
        [listed] = await bob.admin.list()
        assert listed.position == events[6].position
        await ten(ann, 11)
        durable = await bob.durable("billing", "n > 0", group=share, ack="manual")
        assert numbers(await taken(durable, 13)) == list(range(8, 21))

    together(test)


def test_published_events_have_no_position_and_type_checkers_know_it() -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        live = await bob.subscribe("n > 0")
        published = await ann.publish({"n": 1}, b"payload")
        assert not hasattr(published, "position")
        delivered = await anext(live)
        assert (published == delivered, delivered == published, published.id) == (True, True, delivered.id)
        assert hash(published) == hash(delivered)
        assert await read(bob, since=delivered.position) == []

    together(test)


def test_the_numbers_of_what_is_missing_after_an_event_are_named() -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        await ten(ann)
        events = [event async for event in await bob.read("n > 0")]
        for first in range(11, 400, 10):
            await ann.publish_many([({"n": number}, b"." * 1_000) for number in range(first, first + 10)])
            await bob.position()
        reading = await bob.read("n > 0", since=events[4].position)
        with pytest.raises(SkippedError) as caught:
            await reading.take()
        [following] = await taken(reading, 1)
        assert following.seq > 300
        [(first, last)] = caught.value.lost.pop(ann.name)
        assert (caught.value.lost, caught.value.gap) == ({}, None)
        assert last == following.seq - 1
        assert first == 6, "the first after the position"

    together(test, history_bytes=100_000)


def test_an_archive_continues_after_an_event_and_ends_at_one(tmp_path: Path) -> None:
    async def test(network: Local, ann: Client, bob: Client) -> None:
        await ten(ann)
        events = [event async for event in await bob.read("n > 0")]
        begin, end = Position.at(events[0].stamp - 1), await bob.position()
        writer = ArchiveWriter(Archive(tmp_path), Contents(bob.network, "n > 0", begin, begin))
        writer.add(events)
        writer.commit(end)
        await ten(ann, 11)
        fifth = events[4].position
        assert await read(bob.archive(tmp_path), since=fifth) == list(range(6, 21))
        assert await read(bob.archive(tmp_path), since=fifth, until=events[7].position) == [6, 7, 8]
        archived = await bob.archive(tmp_path).read("n > 0")
        assert [event.position for event in await taken(archived, 10)] == [event.position for event in events]
        assert archived.position == events[9].position
        subscription = await bob.archive(tmp_path).subscribe("n > 0", since=fifth)
        assert numbers(await taken(subscription, 15)) == list(range(6, 21))
        assert subscription.archive_end == end

    together(test)

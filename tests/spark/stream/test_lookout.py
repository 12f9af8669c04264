"""Where micro-batches end: the portions of a history are all of it, once, within their limits."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from gapless.client import Client, connect
from gapless.client.positions import EARLIEST
from gapless.overlay import chain
from gapless.positions import NO_EVENTS, Position, Volume
from gapless.runtime.event_loop import run
from gapless_spark.stream import lookout
from gapless_spark.stream.lookout import Lookout, Portion, thinned
from gapless_spark.stream.options import Options
from tests.runtime.local import local

PATIENCE_S = 120.0
EVENTS = 3_000
TOGETHER = 50


def looking(test: Callable[[Client, Lookout], Awaitable[None]], **given: str) -> None:
    async def main() -> None:
        async with (
            local(chain(2)) as network,
            asyncio.timeout(PATIENCE_S),
            connect(network.at("b0")) as speaker,
            connect(network.at("b1")) as client,
        ):
            await speaker.advertise("TRUE")
            for first in range(0, EVENTS, TOGETHER):
                await speaker.publish_many([({"n": n}, b"." * 100) for n in range(first, first + TOGETHER)])
            await test(speaker, Lookout(Options.of({"url": network.url, **given}), client))

    run(main())


async def numbers(client: Client, since: Position, until: Position) -> list[int]:
    return [int(event.attributes["n"]) async for event in await client.read("TRUE", since=since, until=until)]


async def portions(watch: Lookout, limit: Volume, target: Position | None = None) -> list[Portion]:
    found: list[Portion] = []
    while True:
        portion = await watch.look(found[-1].until if found else EARLIEST, target, limit)
        if portion.is_empty:
            return found
        found.append(portion)


@pytest.mark.parametrize("limit", [Volume(500), Volume(0, 50_000), Volume(700, 60_000)])
def test_limited_portions_are_everything_once(limit: Volume) -> None:
    async def test(speaker: Client, watch: Lookout) -> None:
        found = await portions(watch, limit)
        ends = [EARLIEST, *(portion.until for portion in found)]
        parts = [await numbers(speaker, *pair) for pair in pairwise(ends)]
        assert [number for part in parts for number in part] == list(range(EVENTS))
        most = min(limit.events or EVENTS, limit.size // 100 if limit.size else EVENTS)
        assert all(most - 300 < len(part) <= most for part in parts[:-1])

    looking(test)


def test_without_a_limit_a_portion_is_all_there_is_divided_into_parts() -> None:
    async def test(speaker: Client, watch: Lookout) -> None:
        [portion] = await portions(watch, NO_EVENTS)
        assert (await numbers(speaker, EARLIEST, portion.until)) == list(range(EVENTS))
        assert all(EARLIEST < cut < portion.until for cut in portion.cuts)
        await speaker.publish({"n": -1})
        more = await watch.look(portion.until, None, NO_EVENTS)
        assert not more.is_empty
        assert (await numbers(speaker, portion.until, more.until)) == [-1]
        assert watch.newest == more.until

    looking(test, maxEventsPerPartition="1000")


def test_positions_advance_past_events_that_do_not_match() -> None:
    async def test(speaker: Client, watch: Lookout) -> None:
        nothing = await watch.look(EARLIEST, None, NO_EVENTS)
        assert nothing.is_empty
        assert nothing.until > EARLIEST
        await speaker.publish({"n": 1, "wanted": True})
        some = await watch.look(EARLIEST, None, NO_EVENTS)
        assert not some.is_empty
        assert some.until > nothing.until

    looking(test, filter="wanted")


def test_no_state_beyond_a_target_is_explored() -> None:
    async def test(speaker: Client, watch: Lookout) -> None:
        target = await speaker.position()
        await speaker.publish({"n": -1})
        found = await portions(watch, Volume(1_000), target)
        assert max(portion.until for portion in found) <= target
        assert (await numbers(speaker, EARLIEST, found[-1].until))[-1] == EVENTS - 1

    looking(test)


def test_reading_again_gives_the_same_events() -> None:
    async def test(speaker: Client, watch: Lookout) -> None:
        first = await watch.look(EARLIEST, None, Volume(500))
        await watch.look(first.until, None, Volume(500))
        assert await watch.look(EARLIEST, None, Volume(500)) == first

    looking(test)


def test_there_are_never_too_many_parts() -> None:
    few = tuple(map(Position.at, (1, 2, 3)))
    assert thinned(few) == few
    many = thinned(list(map(Position.at, range(100_000))))
    assert len(many) == lookout.PARTS_MAX - 1
    assert list(many) == sorted(set(many))

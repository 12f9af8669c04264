"""Milestones divide a range of history: reading from each to the next covers every event once."""

import asyncio
from itertools import pairwise

import pytest

from gapless import sync
from gapless.client import Client, connect
from gapless.client.milestones import begin_survey
from gapless.errors import CallError
from gapless.overlay import chain
from gapless.positions import Position, Volume
from gapless.protocol import NEWEST
from gapless.runtime.event_loop import run
from tests.runtime.local import Local, local

PATIENCE_S = 120.0
ROUND = 5_000


async def _numbers(client: Client, since: Position, until: Position) -> list[int]:
    return [int(event.attributes["n"]) async for event in await client.read("n >= 0", since=since, until=until)]


async def _publish(network: Local, first: int, count: int, payload: bytes = b"") -> None:
    async with connect(network.at("b0")) as speaker:
        await speaker.advertise("n >= 0")
        await speaker.publish_many([({"n": number}, payload) for number in range(first, first + count)])


def test_ranges_between_milestones_contain_all_events_in_order() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, asyncio.timeout(PATIENCE_S), connect(network.at("b1")) as client:
            for first in (0, ROUND, 2 * ROUND):
                await _publish(network, first, ROUND)
                end = await client.position()
            found = await client.milestones("TRUE", until=end)
            assert not found.gone
            assert found.positions[-1] == end
            ends = (Position.at(0), *found.positions)
            parts = [await _numbers(client, *part) for part in pairwise(ends)]
            assert [number for part in parts for number in part] == list(range(3 * ROUND))
            assert tuple(map(len, parts)) == found.events
            assert max(found.events) <= 4_096
            rest = await client.milestones("TRUE", since=ends[2])
            assert rest.positions[0] > ends[2]
            assert rest.positions[-1] >= end

    run(main())


def test_milestones_divide_the_matching_events_evenly() -> None:
    async def main() -> None:
        async with (
            local(chain(3)) as network,
            asyncio.timeout(PATIENCE_S),
            connect(network.at("b0")) as speaker,
            connect(network.at("b2")) as client,
        ):
            await speaker.advertise("n >= 0")
            for number in range(600):  # all rare events are at the end
                await speaker.publish_many([{"n": number, "rare": number >= 500} for _ in range(10)])
            found = await client.milestones("rare", events=100)
            assert sum(found.events) == 1_000
            assert all(50 < count <= 100 for count in found.events[:-1])
            ends = (Position.at(0), *found.positions)
            counted = [len([1 async for _ in await client.read("rare", *part)]) for part in pairwise(ends)]
            assert tuple(counted) == found.events
            nothing = await client.milestones("n < 0", events=100)
            assert nothing.events == (0,)
            with pytest.raises(CallError, match="events must be positive"):
                await client.milestones("rare", events=0)

    run(main())


def test_a_survey_reports_sizes_and_delivers_nothing() -> None:
    async def main() -> None:
        async with (
            local(chain(2)) as network,
            asyncio.timeout(PATIENCE_S),
            connect(network.at("b1")) as client,
        ):
            for first in range(0, 1_000, 10):
                await _publish(network, first, 10, b"." * 1_000)
            survey = await begin_survey(client, "TRUE", Position.at(0), NEWEST, Volume(1_000, 50_000))
            found = []
            while (stretch := await survey.stretch()) is not None:
                found.append(stretch)
            assert sum(stretch.volume.events for stretch in found) == 1_000
            assert all(stretch.volume.size <= 50_000 for stretch in found)
            assert sum(stretch.volume.size for stretch in found) > 1_000_000
            assert [stretch.until for stretch in found] == sorted({stretch.until for stretch in found})
            assert await survey.take() == []

    run(main())


def test_missing_history_is_reported_with_the_milestones() -> None:
    async def main() -> None:
        async with (
            local(chain(2), history_bytes=100_000) as network,
            asyncio.timeout(PATIENCE_S),
            connect(network.at("b1")) as client,
        ):
            begin = await client.position()
            for _ in range(4):
                await _publish(network, 0, 500, b"." * 1_000)
                await client.position()
            found = await client.milestones("TRUE", since=begin)
            assert found.gone
            assert "lost: no broker holds them any longer" in str(found.gone[0])
            assert not (await client.milestones("TRUE")).gone, "the earliest is what there is"

    run(main())


def test_programs_without_an_event_loop_ask_for_milestones_and_for_addresses() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await _publish(network, 0, 500)

            def ask() -> None:
                with sync.connect(network.at("b1")) as client:
                    end = client.position()
                    assert client.milestones("TRUE", until=end).positions[-1] == end
                    assert client.addresses == network.config.addresses

            await asyncio.to_thread(ask)

    run(main())

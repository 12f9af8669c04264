"""Milestones divide a range of history: reading from each to the next covers every event once."""

import asyncio
from itertools import pairwise

from gapless import sync
from gapless.client import Client, connect
from gapless.overlay import chain
from gapless.positions import Position
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
            found = await client.milestones(until=end)
            assert not found.gone
            assert found.positions[-1] == end
            ends = (Position.at(0), *found.positions)
            parts = [await _numbers(client, *part) for part in pairwise(ends)]
            assert [number for part in parts for number in part] == list(range(3 * ROUND))
            assert max(map(len, parts)) <= ROUND
            rest = await client.milestones(since=ends[2])
            assert rest.positions[0] > ends[2]
            assert rest.positions[-1] >= end

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
            found = await client.milestones(since=begin)
            assert found.gone
            assert "gone: no broker holds them any more" in str(found.gone[0])
            assert not (await client.milestones()).gone, "the earliest is what there is"

    run(main())


def test_programs_without_an_event_loop_ask_for_milestones_and_for_addresses() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await _publish(network, 0, 500)

            def ask() -> None:
                with sync.connect(network.at("b1")) as client:
                    end = client.position()
                    assert client.milestones(until=end).positions[-1] == end
                    assert client.addresses == network.config.addresses

            await asyncio.to_thread(ask)

    run(main())

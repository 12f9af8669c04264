"""No answer of the network depends on the client's clock: brokers determine the newest position."""

import ast
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import gapless.client
from gapless.client import Client, connect
from gapless.errors import CallError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.local import local

HOUR_S = 3_600.0


@asynccontextmanager
async def two_clients() -> AsyncIterator[tuple[Client, Client]]:
    async with (
        local(chain(2)) as network,
        connect(network.at("b0"), name="ann") as ann,
        connect(network.at("b1"), name="bob") as bob,
    ):
        await ann.advertise("n > 0")
        yield ann, bob


@contextmanager
def clock_off_by(seconds: float) -> Iterator[None]:
    real, real_ns = time.time, time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + seconds)
        patch.setattr(time, "time_ns", lambda: real_ns() + int(seconds * 1e9))
        yield


@pytest.mark.parametrize("seconds", [12.0, 2 * HOUR_S, -2 * HOUR_S])
def test_events_published_after_a_position_follow_it_whatever_the_clock(seconds: float) -> None:
    async def main() -> None:
        async with two_clients() as (ann, bob):
            await ann.publish({"n": 1})
            with clock_off_by(seconds):
                position = await bob.position()
                await ann.publish({"n": 2})
                found = [event.attributes["n"] async for event in await bob.read("n > 0", since=position)]
                assert found == [2]
                replayed = await bob.subscribe("n > 0", since=position)
                first = await anext(replayed)
            assert first.attributes["n"] == 2
            assert await bob.position() > position

    run(main())


@pytest.mark.parametrize("seconds", [2 * HOUR_S, -2 * HOUR_S])
@pytest.mark.parametrize("since", ["1h", timedelta(hours=1)])
def test_an_age_is_counted_back_from_the_clock_of_the_network(seconds: float, since: str | timedelta) -> None:
    async def main() -> None:
        async with two_clients() as (ann, bob):
            await ann.publish({"n": 1})
            begun = await bob.position("1h")
            with clock_off_by(seconds):
                found = [event.attributes["n"] async for event in await bob.read("n > 0", since=since)]
                again = await bob.position(since)
                assert again.timestamp == pytest.approx(begun.timestamp, abs=60e6)
            assert found == [1]

    run(main())


def test_a_time_is_in_the_future_if_the_network_has_not_reached_it() -> None:
    async def main() -> None:
        async with two_clients() as (_, bob):
            soon = datetime.now(UTC) + timedelta(hours=1)
            with (
                clock_off_by(2 * HOUR_S),
                pytest.raises(CallError, match=r"future: the network's clock says 2"),
            ):
                await bob.read("n > 0", since=soon)
            with pytest.raises(CallError, match="since is an age of -5 s; an age must be positive"):
                await bob.subscribe("n > 0", since=timedelta(seconds=-5))

    run(main())


def test_now_is_a_position_as_well() -> None:
    async def main() -> None:
        async with two_clients() as (ann, bob):
            await ann.publish({"n": 1})
            subscription = await bob.subscribe("n > 0", since="now")
            await ann.publish({"n": 2})
            assert (await anext(subscription)).attributes["n"] == 2

    run(main())


def test_only_the_trace_of_a_client_reads_the_wall_clock() -> None:
    """A trace uses the wall clock; no request to the network does."""
    readers = set()
    for path in Path(gapless.client.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("time", "time_ns", "now", "utcnow", "today"):
                readers.add((path.name, ast.unparse(node)))
    assert readers == {("recording.py", "time.time_ns")}

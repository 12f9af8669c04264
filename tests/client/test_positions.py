"""One parser reads positions written by people, for programs, commands and Spark."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gapless.client import connect
from gapless.client.positions import moment_of
from gapless.errors import CallError
from gapless.positions import Position
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import local


@pytest.mark.parametrize(
    ("written", "position"),
    [
        ("earliest", "p0"), (" earliest ", "p0"), ("p1700000000000000", "p1700000000000000"),
        (" p17-4-ann\n", "p17-4-ann"), (Position.after(17, "ann", 4), "p17-4-ann"),
    ],
)  # fmt: skip
def test_words_and_positions(written: Any, position: str) -> None:
    moment = moment_of("since", written)
    assert not moment.needs_clock
    assert str(moment.position(0)) == position


NEWEST = 1_700_000_000_000_000


@pytest.mark.parametrize(
    ("written", "before_us"),
    [
        ("now", 0), (timedelta(seconds=5), 5_000_000), ("5s", 5_000_000), ("0.5s", 500_000), ("2h", 7_200_000_000),
        (datetime.fromtimestamp(1_700_000_000 - 5, UTC), 5_000_000), ("2023-11-14T22:13:10Z", 10_000_000),
        ("2023-11-14T22:13:50Z", -30_000_000),
    ],
)  # fmt: skip
def test_ages_and_times_are_held_against_the_newest_position(written: Any, before_us: int) -> None:
    moment = moment_of("since", written)
    assert moment.needs_clock
    assert moment.position(NEWEST) == Position.at(NEWEST - before_us)
    assert moment.is_now == (written == "now")


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("2023-11-14T23:13:20Z", "is in the future: the network's clock says 2023-11-14T22:13:20+00:00"),
        (datetime.max, "is in the future"),
        (datetime.min, "precedes all positions"),
        ("99999d", "since is '99999d', which precedes all positions; write 'earliest' for all existing events"),
    ],
)
def test_positions_in_the_future_or_of_another_network_are_refused(written: Any, complaint: str) -> None:
    with pytest.raises(CallError, match=re.escape(complaint)):
        moment_of("since", written).position(NEWEST)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (timedelta(seconds=-5), "since is an age of -5 s; an age must be positive, such as timedelta(hours=1)"),
        (timedelta(microseconds=-1), "an age of -1e-06 s; an age must be positive"),
        (
            "-5s",
            "since is '-5s', which is not a position; write 'earliest', 'now', an age such as '10m', a time such as",
        ),
        (
            "1700000000000000",
            "'1700000000000000', which is not a position; write 'earliest', 'now', an age such as '10m'",
        ),
        ("p17-x", "since: 'p17-x' is not a position: copy the whole text of one, such as 'p1793280000000000' or"),
        (1_700_000_000_000_000, "since must be a position, a time, an age, 'earliest' or 'now', but is of type int"),
        (None, "since must be a position, a time, an age, 'earliest' or 'now', but is None"),
    ],
)
def test_invalid_positions_are_refused(written: Any, complaint: str) -> None:
    with pytest.raises(CallError, match=re.escape(complaint)):
        moment_of("since", written)


def test_since_now_is_what_is_published_from_now_on() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            await client.publish({"n": 1})
            subscription = await client.subscribe("TRUE", since="now")
            event = await client.publish({"n": 2})
            assert await take(subscription, 1) == [event]
            assert [each.seq async for each in await client.read("TRUE", until="now")] == [1, 2]
            assert [each.seq async for each in await client.read("TRUE", since="now")] == []

    run(main())


def test_a_durable_subscription_moves_to_now() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            await (await client.durable("billing", "TRUE")).close()
            await client.publish({"n": 1})
            await client.admin.move("billing", "now")
            billing = await client.durable("billing", "TRUE")
            event = await client.publish({"n": 2})
            assert (await anext(billing)).id == event.id

    run(main())

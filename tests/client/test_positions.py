"""What people write for a position: one parser for programs, commands and Spark."""

import re
import time
from datetime import timedelta
from typing import Any

import pytest

from gapless.client import connect
from gapless.client.positions import NOW, position_of
from gapless.errors import CallError
from gapless.runtime.event_loop import run
from tests.client.taking import take
from tests.runtime.local import local


@pytest.mark.parametrize(
    ("written", "position"),
    [("earliest", 0), (" earliest ", 0), ("now", NOW), ("1700000000000000", 1_700_000_000_000_000), (5, 5), ("5", 5)],
)
def test_words_and_digits(written: Any, position: int) -> None:
    assert position_of("since", written) == position


def test_an_age_lies_in_the_past() -> None:
    assert time.time() - position_of("since", timedelta(seconds=5)) / 1e6 == pytest.approx(5, abs=1)
    assert time.time() - position_of("since", "5s") / 1e6 == pytest.approx(5, abs=1)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (timedelta(seconds=-5), "since is datetime.timedelta(days=-1, seconds=86395), a negative age, which lies in"),
        (timedelta(microseconds=-1), "a negative age, which lies in the future: nothing is there yet"),
        ("-5s", "since is '-5s', which is no position; write 'earliest', 'now', an age such as '10m', or a time"),
        (-5, "since is -5, which lies before all positions"),
        (None, "since is a position, a time, an age, 'earliest' or 'now', but this is None"),
    ],
)
def test_what_is_no_position_is_refused(written: Any, complaint: str) -> None:
    with pytest.raises(CallError, match=re.escape(complaint)):
        position_of("since", written)


def test_since_now_is_what_is_published_from_now_on() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            await client.publish({"n": 1})
            subscription = await client.subscribe("TRUE", since="now")
            event = await client.publish({"n": 2})
            assert await take(subscription, 1) == [event]
            assert [each.seq async for each in await client.read("TRUE", until="now")] == [1, 2]
            with pytest.raises(CallError, match="does not lie after since"):
                await client.read("TRUE", since="now")

    run(main())


def test_a_durable_subscription_moves_to_now() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            await (await client.subscribe("TRUE", name="billing")).close()
            await client.publish({"n": 1})
            await client.move_subscription("billing", "now")
            billing = await client.subscribe("TRUE", name="billing")
            event = await client.publish({"n": 2})
            assert (await anext(billing)).id == event.id

    run(main())

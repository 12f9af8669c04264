"""A client's message is bounded in bytes, messages and values before it is decoded."""

import random
from typing import Any

import msgspec
import pytest

from gapless.errors import WireError
from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.message_pack import has_more_entries, length_of
from gapless.protocols.gapless import client_messages as said
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientGroupReport
from gapless.protocols.gapless.durable.messages import Item, Progress, Report
from gapless.registry import find_protocol
from gapless.runtime.codec import ENTRIES_MAX, SMALL, Codec
from gapless.runtime.settings import RuntimeSettings

SETTINGS = RuntimeSettings()
SCALARS: list[Any] = [
    None, True, 0, 127, 128, 255, 256, 1 << 16, 1 << 32, -1, -32, -33, -129, -(1 << 16), -(1 << 40), 1.5,
    *("x" * n for n in (0, 31, 32, 255, 256, 70_000)),
    *(b"x" * n for n in (0, 255, 256, 70_000)),
    *(msgspec.msgpack.Ext(3, b"x" * n) for n in (1, 2, 3, 4, 8, 16, 17, 256, 70_000)),
]  # fmt: skip


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(_count(key) + _count(held) for key, held in value.items())
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _draw(dice: random.Random, depth: int = 0) -> Any:
    kind = dice.randrange(4) if depth < 3 else 0
    if kind == 1:
        return [_draw(dice, depth + 1) for _ in range(dice.choice((0, 3, 17)))]
    if kind == 2:
        return {str(key): _draw(dice, depth + 1) for key in range(dice.choice((0, 3, 17)))}
    return dice.choice(SCALARS)


def test_values_are_counted_as_they_are() -> None:
    dice = random.Random(1)
    drawn = [*SCALARS, [1] * 70_000, {str(key): key for key in range(70_000)}, *(_draw(dice) for _ in range(200))]
    for value in drawn:
        body = memoryview(msgspec.msgpack.encode(value))
        count = _count(value)
        assert not has_more_entries(body, count)
        assert has_more_entries(body, count - 1)
        has_more_entries(body[: len(body) // 2], count)  # a truncated message is not counted
        assert length_of(body) == (len(value) if isinstance(value, list) else 0)


def _codec() -> Codec:
    return Codec(find_protocol("gapless"), SETTINGS.frame_max, SETTINGS.event_max, SETTINGS.batch_max)


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([said.ClientGot(2, 0)] * 513, "a batch of 513 messages is too large; 512 is the limit"),
        (
            [ClientAck(2, "s", "n", 1, 1, Progress(0, {str(n): 1 for n in range(150_000)}))],
            "has more than 200,000 values",
        ),
        (
            [ClientGroupReport(2, "s", "n", Report("l", 1, [Item("p", n) for n in range(100_000)]))],
            "has more than 200,000 values",
        ),
        (
            [said.ClientPublish(2, EventRun.of([Event("ann:c", n, dict.fromkeys("abcd", n)) for n in range(50_000)]))],
            "has more than 200,000",
        ),
        (
            [
                said.ClientPublish(2, EventRun("ann:c", n, EventTable.of([{}] * 60_000, [b"x"] * 60_000)))
                for n in range(4)
            ],
            "has more than 200,000",
        ),
    ],
)
def test_input_that_is_slow_to_decode_is_refused_before_decoding(messages: list[Any], complaint: str) -> None:
    body = memoryview(msgspec.msgpack.encode(messages))
    with pytest.raises(WireError, match=complaint):
        _codec().decode(body, is_client=True)
    assert _codec().decode(body, is_client=False) == messages


def test_repeated_messages_at_another_broker_are_accepted() -> None:
    large = [Event("c", n, {"topic": "x"}, b"x" * (SETTINGS.event_max - 100)) for n in range(1, 131)]
    many = [Event("c", n, {f"a{k}": k for k in range(2)}, b"x" * 500) for n in range(1, 8_001)]
    for events in (large, many):
        body = memoryview(msgspec.msgpack.encode([said.ClientPublish(2, EventRun.of(events))]))
        assert len(body) < SETTINGS.client_frame_max
        assert _codec().decode(body, is_client=True) == [said.ClientPublish(2, EventRun.of(events))]


def test_a_client_may_send_sixteen_mebibytes_or_more_if_events_are_larger() -> None:
    assert SETTINGS.client_frame_max == 16 << 20
    large = RuntimeSettings(event_max=1 << 20, frame_max=1 << 31)
    assert large.client_frame_max == 64 << 20
    assert ENTRIES_MAX > SMALL // 4

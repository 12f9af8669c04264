"""Both ends of a link that loses, duplicates and breaks."""

import random
from collections import deque
from typing import Any

import pytest

from gapless_papers.protocols.gryphon import link_stream
from gapless_papers.protocols.gryphon.link_stream import LinkStream
from gapless_papers.protocols.gryphon.messages import Acknowledgement, Answered, Missing, Packet
from gapless_papers.protocols.gryphon.options import GryphonOptions


def packet(number: int, received: int, text: str) -> Packet:
    """Return a packet with an arbitrary body."""
    return Packet(number, received, Answered(text))


class End:
    """One end of a link, the packets it has sent, and the timers it has running."""

    def __init__(self, **options: Any) -> None:
        self.wire: deque[Any] = deque()
        self.timers: dict[str, int] = {}
        self.got: list[str] = []
        self.stream = LinkStream(GryphonOptions(**options), self.wire.append, self.timers.__setitem__)

    def take(self, message: Any) -> None:
        if isinstance(message, Missing):
            self.stream.missed(message)
            return
        self.stream.acknowledged(message.received)
        if isinstance(message, Packet):
            self.got += [body.advertisement for body in self.stream.receive(message) if isinstance(body, Answered)]

    def send(self, text: str) -> None:
        self.stream.send(Answered(text))

    def fire(self, what: str) -> None:
        del self.timers[what]
        self.stream.timer_fired(what)

    def sent(self) -> list[Any]:
        """Return the packets sent since the last call."""
        messages = list(self.wire)
        self.wire.clear()
        return messages


def test_sent_messages_are_numbered_and_kept_until_acknowledged() -> None:
    end = End()
    end.send("a")
    end.send("b")
    assert end.sent() == [packet(1, 0, "a"), packet(2, 0, "b")]
    assert end.stream.kept == 2
    end.take(Acknowledgement(1))
    assert end.stream.kept == 1
    end.take(packet(1, 2, "x"))
    assert end.stream.kept == 0


def test_acknowledgements_are_piggybacked_or_sent_alone_after_a_timeout() -> None:
    end = End(acknowledge_ms=30)
    end.take(packet(1, 0, "a"))
    assert end.timers == {"answer": 30_000}
    end.send("b")
    assert end.sent() == [packet(1, 1, "b")]
    end.fire("answer")
    assert end.sent() == []
    end.take(packet(2, 0, "c"))
    end.fire("answer")
    assert end.sent() == [Acknowledgement(2)]


def test_many_packets_are_acknowledged_at_once() -> None:
    end = End()
    for number in range(1, link_stream.ACKNOWLEDGE_AFTER + 1):
        end.take(packet(number, 0, "x"))
    assert end.sent() == [Acknowledgement(link_stream.ACKNOWLEDGE_AFTER)]


def test_missing_events_are_requested_at_once_and_again_after_a_timeout() -> None:
    end = End()
    for number in (1, 4, 5, 8):
        end.take(packet(number, 0, str(number)))
    assert end.got == ["1"]
    assert end.sent() == [Missing(2, 3), Missing(6, 7)]
    end.take(packet(2, 0, "2"))
    assert end.got == ["1", "2"]
    end.fire("answer")
    assert end.sent() == [Acknowledgement(2), Missing(3, 3), Missing(6, 7)]
    assert "answer" in end.timers
    for number in (3, 7, 6):
        end.take(packet(number, 0, str(number)))
    assert end.got == list("12345678")


def test_duplicates_are_dropped_and_acknowledged() -> None:
    end = End()
    end.take(packet(1, 0, "a"))
    end.take(packet(1, 0, "a"))
    assert end.got == ["a"]
    assert end.sent() == [Acknowledgement(1)]


def test_requests_are_repeated() -> None:
    end = End()
    for body in "abcd":
        end.send(body)
    end.take(Acknowledgement(1))
    end.sent()
    end.take(Missing(1, 3))
    assert end.sent() == [packet(2, 0, "b"), packet(3, 0, "c")]


def test_the_oldest_packet_is_repeated_if_unacknowledged_for_too_long() -> None:
    end = End(repeat_ms=500)
    end.send("a")
    end.send("b")
    assert end.timers == {"repeat": 500_000}
    end.timers.clear()
    end.take(Acknowledgement(1))
    assert end.timers == {"repeat": 500_000}
    end.sent()
    end.fire("repeat")
    assert end.sent() == [packet(2, 0, "b")]
    end.take(Acknowledgement(2))
    end.fire("repeat")
    assert end.sent() == []
    assert end.timers == {}


def test_a_new_connection_repeats_everything() -> None:
    end = End()
    end.send("a")
    end.send("b")
    end.sent()
    end.stream.reconnect()
    assert end.sent() == [packet(1, 0, "a"), packet(2, 0, "b")]


def test_early_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_stream, "EARLY_MAX", 2)
    end = End()
    for number in (2, 3, 4):
        end.take(packet(number, 0, str(number)))
    end.take(packet(1, 0, "1"))
    assert end.got == ["1", "2", "3"]
    end.take(packet(4, 0, "4"))
    assert end.got == ["1", "2", "3", "4"]


def test_it_reports_when_it_is_full() -> None:
    end = End(buffer=2)
    end.send("a")
    assert not end.stream.is_full
    end.send("b")
    assert end.stream.is_full


@pytest.mark.parametrize("seed", range(30))
def test_everything_arrives_once_and_in_order_over_any_link(seed: int) -> None:
    """Both ends send; messages are lost, duplicated and delayed, and dropped when the link breaks."""
    rng = random.Random(seed)
    loss = rng.choice([0.0, 0.1, 0.5])
    ends = (End(), End())
    sent: tuple[list[str], list[str]] = ([], [])
    for step in range(3000):
        side = rng.randrange(2)
        end, other = ends[side], ends[1 - side]
        what = rng.random()
        if what < 0.2 and step < 2000:
            sent[side].append(str(step))
            end.send(str(step))
        elif what < 0.7 and end.wire:
            message = end.wire.popleft()
            for _ in range(1 if rng.random() < 0.8 else 2):
                if rng.random() >= loss:
                    other.take(message)
        elif what < 0.9 and end.timers:
            end.fire(rng.choice(sorted(end.timers)))
        elif what > 0.99:
            for one in ends:
                one.wire.clear()
            for one in ends:
                one.stream.reconnect()
    for _ in range(200):
        for side, end in enumerate(ends):
            for message in end.sent():
                ends[1 - side].take(message)
            for timer in sorted(end.timers):
                end.fire(timer)
    assert [end.got for end in ends] == [sent[1], sent[0]]
    assert [end.stream.kept for end in ends] == [0, 0]

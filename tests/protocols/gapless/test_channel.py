"""The reliable stream: what breaks, what is repeated, and what a new life means."""

from collections import deque
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from gapless.protocols.gapless.channel import ACK_EVERY, Channel
from gapless.protocols.gapless.messages import Ack, BackupHeld, Body, Frame, Resume

Raw: TypeAlias = Frame | Ack | Resume


class End:
    """A channel, what it has put on the wire, and what has come out of it."""

    def __init__(self, life: int = 0, peer_life: int = 0) -> None:
        self.wire: deque[Raw] = deque()
        self.channel = Channel(life, peer_life, self.wire.append)
        self.got: list[Body] = []

    def take(self, message: Raw) -> None:
        if isinstance(message, Frame):
            body = self.channel.received(message)
            if body is not None:
                self.got.append(body)
        elif isinstance(message, Resume):
            self.channel.resumed(message)
        else:
            self.channel.acknowledged(message)

    def sent(self) -> list[Raw]:
        found = list(self.wire)
        self.wire.clear()
        return found


def body(number: int) -> Body:
    return BackupHeld(number)


def carry(one: End, other: End) -> None:
    """Until the wires are empty."""
    while one.wire or other.wire:
        for sender, receiver in ((one, other), (other, one)):
            while sender.wire:
                receiver.take(sender.wire.popleft())


def reconnect(one: End, other: End) -> None:
    one.channel.reconnect()
    other.channel.reconnect()


def test_bodies_arrive_in_order() -> None:
    one, other = End(), End()
    for number in range(3):
        one.channel.send(body(number))
    carry(one, other)
    assert other.got == [body(0), body(1), body(2)]


def test_what_was_lost_with_the_connection_is_repeated_and_nothing_else() -> None:
    one, other = End(), End()
    for number in range(4):
        one.channel.send(body(number))
    other.take(one.wire.popleft())
    other.take(one.wire.popleft())
    one.wire.clear()
    reconnect(one, other)
    carry(one, other)
    assert other.got == [body(number) for number in range(4)]
    assert one.channel.pending() == 2, "repeated, and not acknowledged by anything yet"
    other.channel.send(body(9))
    carry(one, other)
    assert one.channel.pending() == 0


def test_duplicates_are_dropped() -> None:
    one, other = End(), End()
    one.channel.send(body(1))
    [frame] = one.sent()
    for _ in range(3):
        other.take(frame)
    assert other.got == [body(1)]


def test_a_frame_ahead_of_its_turn_waits_for_its_repetition() -> None:
    one, other = End(), End()
    one.channel.send(body(1))
    one.channel.send(body(2))
    _, second = one.sent()
    other.take(second)
    assert other.got == []
    reconnect(one, other)
    carry(one, other)
    assert other.got == [body(1), body(2)]


def test_a_new_life_of_the_peer_is_spared_what_was_meant_for_the_old_one() -> None:
    one, old = End(), End()
    old.channel.send(body(0))
    carry(one, old)
    one.channel.send(body(1))
    one.wire.clear()
    new = End(life=5)
    reconnect(one, new)
    carry(one, new)
    assert new.got == []
    assert one.channel.pending() == 0
    one.channel.send(body(2))
    carry(one, new)
    assert new.got == [body(2)]


def test_what_was_sent_before_anything_was_heard_is_for_whoever_answers() -> None:
    one = End()
    one.channel.send(body(1))
    one.wire.clear()
    new = End(life=5)
    reconnect(one, new)
    carry(one, new)
    assert new.got == [body(1)]


def test_messages_out_of_an_old_life_are_ignored() -> None:
    one, old = End(), End()
    old.channel.send(body(1))
    stale = old.sent()
    new = End(life=5)
    new.channel.send(body(2))
    carry(one, new)
    for message in stale:
        one.take(message)
    assert one.got == [body(2)]
    assert one.sent() == []


def test_a_frame_for_another_life_of_ours_is_answered_by_saying_which_one_it_is() -> None:
    one, other = End(), End(life=5)
    one.channel.send(body(1))
    [frame] = one.sent()
    other.take(frame)
    assert other.got == []
    assert other.sent() == [Resume(5, 0, 0, True)]
    other.channel.reconnect()
    carry(one, other)
    assert other.got == [body(1)]


def test_many_frames_for_a_life_that_is_over_are_answered_once_and_repeated_once() -> None:
    one, other = End(), End(life=5)
    for number in range(50):
        one.channel.send(body(number))
    for frame in one.sent():
        other.take(frame)
    answers = other.sent()
    assert len(answers) == 1
    for answer in answers * 3:
        one.take(answer)
    frames = [message for message in one.wire if isinstance(message, Frame)]
    assert len(frames) == 50
    carry(one, other)
    assert other.got == [body(number) for number in range(50)]


def test_a_fresh_connection_repeats_once_what_the_peer_lacks() -> None:
    one, other = End(), End()
    for number in range(20):
        one.channel.send(body(number))
    one.wire.clear()
    reconnect(one, other)
    seen = 0
    while one.wire or other.wire:
        seen += sum(isinstance(message, Frame) for message in one.wire)
        for message in one.sent():
            other.take(message)
        for message in other.sent():
            one.take(message)
    assert seen == 20
    assert other.got == [body(number) for number in range(20)]


def test_what_came_while_it_stayed_away_is_asked_for_once() -> None:
    one, other = End(), End(life=1)
    for number in range(2):
        one.channel.send(body(number))
    one.sent()  # the other stays away between two lives, and hears nothing
    one.channel.meet(1)
    for number in range(2, 5):
        one.channel.send(body(number))
    for message in one.sent():
        other.take(message)
    assert other.got == []
    assert [type(message) for message in other.wire] == [Resume]
    carry(one, other)
    assert other.got == [body(number) for number in range(5)]


def test_an_acknowledgement_goes_alone_only_after_many_frames_without_any_the_other_way() -> None:
    one, other = End(), End()
    for number in range(ACK_EVERY):
        assert other.sent() == []
        one.channel.send(body(number))
        other.take(one.wire.popleft())
    assert other.sent() == [Ack(0, 0, ACK_EVERY)]
    one.take(Ack(0, 0, ACK_EVERY))
    assert one.channel.pending() == 0


def test_frames_the_other_way_carry_the_acknowledgement() -> None:
    one, other = End(), End()
    for number in range(ACK_EVERY - 1):
        one.channel.send(body(number))
    while one.wire:
        other.take(one.wire.popleft())
    other.channel.send(body(0))
    carry(one, other)
    assert one.channel.pending() == 0
    one.channel.send(body(1))
    carry(one, other)
    assert other.sent() == []


def test_an_acknowledgement_between_other_lives_does_not_count() -> None:
    one = End(life=1, peer_life=1)
    one.channel.send(body(1))
    one.take(Ack(0, 1, 1))
    one.take(Ack(1, 0, 1))
    assert one.channel.pending() == 1


@given(st.lists(st.tuples(st.sampled_from(["send", "carry", "break"]), st.booleans(), st.integers(0, 5)), max_size=60))
def test_every_body_comes_out_once_and_in_order_whatever_breaks(acts: list[tuple[str, bool, int]]) -> None:
    ends = (End(), End())
    sent: tuple[list[Body], list[Body]] = ([], [])
    for kind, side, count in acts:
        one, other = ends[side], ends[not side]
        if kind == "send":
            sent[side].append(body(len(sent[side])))
            one.channel.send(sent[side][-1])
        elif kind == "carry":
            for _ in range(min(count, len(one.wire))):
                other.take(one.wire.popleft())
        else:
            for sender, receiver in (ends, ends[::-1]):
                for _ in range(min(count, len(sender.wire))):
                    receiver.take(sender.wire.popleft())
            for end in ends:
                end.wire.clear()
            reconnect(*ends)
    carry(*ends)
    assert (ends[1].got, ends[0].got) == sent

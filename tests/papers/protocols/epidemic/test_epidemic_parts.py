"""The parts of a broker in isolation: draws, memory, numbers, cache, losses, and the sets that links agree on."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.errors import ProtocolError
from gapless.events import Event
from gapless.registry import find_protocol
from gapless.simulator.options import convert_options
from gapless_papers.protocols.epidemic import losses as losses_module
from gapless_papers.protocols.epidemic import numbering as numbering_module
from gapless_papers.protocols.epidemic.cache import EventCache
from gapless_papers.protocols.epidemic.dice import Dice
from gapless_papers.protocols.epidemic.link import Link
from gapless_papers.protocols.epidemic.losses import Losses
from gapless_papers.protocols.epidemic.messages import EventId, Interest, Stamped
from gapless_papers.protocols.epidemic.numbering import Numbering
from gapless_papers.protocols.epidemic.options import Discard
from gapless_papers.protocols.epidemic.received import Received

FEWER_EXAMPLES = settings(max_examples=50)


def stamped(seq: int, source: str = "S", **numbers: int) -> Stamped:
    return Stamped(Event("p", seq, {}), source, numbers)


# ---- draws


def test_draws_depend_on_the_name_alone() -> None:
    one, same, other = Dice("a"), Dice("a"), Dice("b")
    draws = [one.below(1000) for _ in range(50)]
    assert draws == [same.below(1000) for _ in range(50)]
    assert draws != [other.below(1000) for _ in range(50)]


def test_draws_are_even() -> None:
    dice = Dice("even")
    counts = Counter(dice.below(6) for _ in range(60_000))
    assert set(counts) == set(range(6))
    assert all(9_600 < count < 10_400 for count in counts.values())
    assert 2_850 < sum(dice.happens(0.3) for _ in range(10_000)) < 3_150
    assert not any(dice.happens(0.0) for _ in range(1000))
    assert all(dice.happens(1.0) for _ in range(1000))


def test_a_sample_is_of_different_items() -> None:
    dice = Dice("sample")
    seen = Counter(tuple(sorted(dice.sample("abcd", 2))) for _ in range(6_000))
    assert len(seen) == 6
    assert all(850 < count < 1_150 for count in seen.values())
    assert list(dice.sample("ab", 2)) == ["a", "b"]


# ---- what was received


@given(st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 12)), max_size=60), st.integers(1, 8))
@FEWER_EXAMPLES
def test_no_entry_is_new_twice_and_memory_is_bounded(events: list[EventId], most: int) -> None:
    received = Received(most)
    entered: set[EventId] = set()
    for event in events:
        lacking = received.lacking([event])
        is_new = received.enter(event)
        assert lacking == ((event,) if is_new else ())
        assert not (is_new and event in entered)
        entered.add(event)
        assert event in received
        assert len(received) <= most
    if len(entered) <= most:
        assert all(event in received for event in entered)


def test_an_event_is_passed_on_once() -> None:
    received = Received(2)
    assert received.enter(("p", 1))
    assert received.pass_on(("p", 1))
    assert not received.enter(("p", 1))
    assert not received.pass_on(("p", 1))
    received.enter(("p", 2))
    received.enter(("p", 3))
    assert not received.pass_on(("p", 1)), "what is forgotten counts as passed"
    assert ("p", 1) in received


# ---- identifiers


def test_numbers_grow_by_one_for_each_pattern() -> None:
    """The example of section 4.2: S:Pa-5:Pb-4."""
    numbering = Numbering()
    for _ in range(4):
        numbering.number(["Pa"])
    first = numbering.number(["Pb"])["Pb"]
    for _ in range(2):
        numbering.number(["Pb"])
    assert numbering.number(["Pa", "Pb"]) == {"Pa": 5, "Pb": first + 3}


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=80))
@FEWER_EXAMPLES
def test_no_number_is_assigned_twice_though_counters_are_dropped(events: list[list[str]]) -> None:
    before, numbering_module.COUNTERS_MAX = numbering_module.COUNTERS_MAX, 2
    try:
        numbering = Numbering()
        last: dict[str, int] = {}
        for patterns in events:
            for pattern, number in numbering.number(patterns).items():
                assert number > last.get(pattern, 0)
                last[pattern] = number
            assert len(numbering) <= max(2, len(patterns))
    finally:
        numbering_module.COUNTERS_MAX = before


# ---- the cache


@pytest.mark.parametrize("discard", ["oldest", "foreign-first", "random"])
@given(own=st.lists(st.booleans(), max_size=40), size=st.integers(1, 6))
@FEWER_EXAMPLES
def test_a_cache_keeps_its_size_and_finds_what_it_has(discard: Discard, own: list[bool], size: int) -> None:
    cache = EventCache(size, discard, Dice("cache"))
    for seq, is_own in enumerate(own, start=1):
        cache.add(stamped(seq, a=seq, b=seq + 100), ("a",) if seq % 2 else ("a", "b"), is_own)
        assert len(cache) <= size
    kept = [seq for seq in range(1, len(own) + 1) if cache.find(("p", seq)) is not None]
    assert len(kept) == min(size, len(own))
    assert sorted(cache.digest("a")) == [("p", seq) for seq in kept]
    assert sorted(cache.digest("b")) == [("p", seq) for seq in kept if seq % 2 == 0]
    numbers = tuple(range(1, len(own) + 1))
    assert [found.event.seq for found in cache.find_numbers("S", "a", numbers)] == kept
    assert cache.find_numbers("S", "b", numbers) == []
    assert cache.find_numbers("T", "a", numbers) == []
    if discard == "oldest":
        assert kept == list(range(len(own) + 1 - len(kept), len(own) + 1))
    if discard == "foreign-first" and len(own) > size and any(own):
        foreign = [seq for seq in kept if not own[seq - 1]]
        assert not foreign or sum(own) + len(foreign) <= size


def test_a_random_cache_does_not_evict_by_age() -> None:
    cache = EventCache(50, "random", Dice("cache"))
    for seq in range(1, 101):
        cache.add(stamped(seq), ("a",), True)
    old = [seq for _, seq in cache.digest("a") if seq <= 50]
    assert 10 < len(old) < 40


# ---- losses


def test_a_gap_is_detected_and_arriving_events_are_removed_from_it() -> None:
    losses = Losses(100, 1_000)
    losses.note(stamped(1, a=5), ["a"], 0)
    losses.note(stamped(2, a=6), ["a"], 0)
    assert len(losses) == 0
    losses.note(stamped(5, a=9), ["a"], 0)
    assert losses.of_pattern("a") == {"S": (7, 8)}
    assert losses.of_source("S") == {"a": (7, 8)}
    losses.note(stamped(3, a=7), ["a"], 0)
    assert losses.of_pattern("a") == {"S": (8,)}
    losses.note(stamped(4, a=8), ["a"], 0)
    assert (len(losses), list(losses.patterns()), list(losses.sources())) == (0, [], [])
    assert (losses.detected, losses.recovered, losses.given_up) == (2, 2, 0)


def test_one_event_settles_all_its_patterns() -> None:
    losses = Losses(100, 1_000)
    losses.note(stamped(1, a=1, b=1), ["a", "b"], 0)
    losses.note(stamped(3, a=3, b=3), ["a", "b"], 0)
    assert len(losses) == 2
    losses.note(stamped(2, a=2, b=2), ["a", "b"], 0)
    assert len(losses) == 0


def test_only_patterns_of_own_clients_count() -> None:
    losses = Losses(100, 1_000)
    losses.note(stamped(1, a=1, b=1), ["a"], 0)
    losses.note(stamped(9, a=2, b=9), ["a"], 0)
    assert len(losses) == 0


def test_sources_are_distinguished_by_incarnation() -> None:
    losses = Losses(100, 1_000)
    losses.note(stamped(1, "b0/0", a=7), ["a"], 0)
    losses.note(stamped(2, "b0/1", a=1), ["a"], 0)
    losses.note(stamped(3, "b0/1", a=3), ["a"], 0)
    assert losses.of_pattern("a") == {"b0/1": (2,)}


def test_events_missing_for_too_long_are_given_up() -> None:
    losses = Losses(100, 1_000)
    losses.note(stamped(1, a=1), ["a"], 0)
    losses.note(stamped(3, a=3), ["a"], 100)
    losses.note(stamped(5, a=5), ["a"], 600)
    losses.give_up(1_099)
    assert losses.of_pattern("a") == {"S": (2, 4)}
    losses.give_up(1_100)
    assert losses.of_pattern("a") == {"S": (4,)}
    assert losses.given_up == 1


def test_the_buffer_keeps_the_latest_losses() -> None:
    losses = Losses(3, 1_000)
    losses.note(stamped(1, a=1), ["a"], 0)
    losses.note(stamped(2, a=1_000_000), ["a"], 0)
    assert losses.of_pattern("a") == {"S": (999_997, 999_998, 999_999)}
    losses.note(stamped(4, a=1_000_002), ["a"], 1)
    assert losses.of_pattern("a") == {"S": (999_998, 999_999, 1_000_001)}
    assert losses.detected - losses.given_up == 3


def test_a_pattern_without_subscribers_is_removed() -> None:
    losses = Losses(100, 1_000)
    for number in (1, 3):
        losses.note(stamped(number, a=number, b=number), ["a", "b"], 0)
    losses.forget("a")
    assert list(losses.patterns()) == ["b"]
    losses.note(stamped(9, a=9), ["a"], 0)
    assert list(losses.patterns()) == ["b"]


def test_the_number_of_streams_with_an_expected_number_is_bounded() -> None:
    before, losses_module.STREAMS_MAX = losses_module.STREAMS_MAX, 2
    try:
        losses = Losses(100, 1_000)
        for source in ("S", "T", "U"):
            losses.note(stamped(1, source, a=1), ["a"], 0)
        losses.note(stamped(3, "S", a=3), ["a"], 0)
        assert len(losses) == 0, "S was forgotten, and starts again"
        losses.note(stamped(3, "U", a=3), ["a"], 0)
        assert losses.of_pattern("a") == {"U": (2,)}
    finally:
        losses_module.STREAMS_MAX = before


# ---- what neighbours agree on


class Ends:
    """Two ends of one direction of a link, with a channel that the test controls."""

    def __init__(self) -> None:
        self.sender, self.receiver = Link("receiver"), Link("sender")
        self.believed: set[str] = set()

    def receive(self, change: Interest) -> None:
        if self.receiver.is_news(change):
            self.believed = (set() if change.whole else self.believed) | set(change.added)
            self.believed -= set(change.removed)

    def restart(self) -> None:
        self.sender.restart()
        self.receiver.restart()


@given(st.lists(st.sampled_from(["+a", "+b", "+c", "-a", "-b", "-c", "send", "lost", "twice", "restart"]), max_size=60))
@FEWER_EXAMPLES
def test_a_neighbour_learns_the_set_whatever_gets_lost(acts: list[str]) -> None:
    ends = Ends()
    wanted: set[str] = set()
    known_before: Interest | None = None
    for act in acts:
        if act[0] in "+-":
            ends.sender.want(act[1], act[0] == "+")
            wanted = wanted | {act[1]} if act[0] == "+" else wanted - {act[1]}
        elif act == "restart":
            ends.restart()
            known_before = None
        else:
            change = ends.sender.next_change() or ends.sender.under_way
            if change is not None and act != "lost":
                ends.receive(change)
                if act == "twice" and known_before is not None:
                    ends.receive(known_before)
                ends.sender.confirm(change.version)
                known_before = change
    for _ in range(3):
        change = ends.sender.next_change() or ends.sender.under_way
        if change is not None:
            ends.receive(change)
            ends.sender.confirm(change.version)
    assert ends.sender.next_change() is None
    assert ends.believed == wanted


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recovery": "hope"}, "Invalid enum value 'hope'"),
        (
            {"forward_probability": 1.5},
            "forward_probability is 1.5, which is not a probability; choose a number from 0 to 1",
        ),
        ({"gossip_ms": 0}, "gossip_ms is 0, but must be more than 0"),
        ({"gossip_max_ms": 5}, "gossip_max_ms is 5, less than gossip_ms, which is 30"),
        ({"buffer": 0}, "buffer is 0, but must be at least 1"),
        ({"hold_ms": -1}, "hold_ms is -1, but must not be negative"),
        ({"gosip_ms": 3}, "protocol 'epidemic' has no option 'gosip_ms'; did you mean 'gossip_ms'?"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        convert_options(find_protocol("epidemic"), options)
    assert message in str(caught.value)

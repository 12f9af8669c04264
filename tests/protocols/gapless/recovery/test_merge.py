"""Merged logs: all events once, causes first, against a small model of brokers around one that dies."""

import random
from collections import deque
from collections.abc import Sequence

import pytest

from gapless.events import Event
from gapless.protocols.gapless.messages import Admission, Cuts, LogEntry
from gapless.protocols.gapless.pieces import finish
from gapless.protocols.gapless.recovery import merge
from gapless.protocols.gapless.recovery.handover import expand
from gapless.protocols.gapless.retention.journal import JournalCopy

Id = tuple[str, int]


def merge_logs(logs: Sequence[Sequence[LogEntry]], estates: Sequence[Sequence[Admission]]) -> list[Event]:
    return finish(merge.merge_logs(logs, estates))


def find_pasts(
    ordered: Sequence[Event], logs: Sequence[Sequence[LogEntry]], estates: Sequence[Sequence[Admission]]
) -> dict[Id, Cuts]:
    return finish(merge.find_pasts(ordered, logs, estates))


def name_of(event: Event) -> Id:
    return event.publisher, event.seq


class Star:
    """Brokers m0, m1… around y, which dies. Everybody floods; a publisher may react to all its broker has seen.

    Messages between them are first in, first out and take their time, so at the death each has got another part.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.members = [f"m{number}" for number in range(self.dice.randint(2, 4))]
        self.logs: dict[str, list[tuple[Event, str]]] = {name: [] for name in (*self.members, "y")}
        self.links: dict[tuple[str, str], deque[Event]] = {}
        for member in self.members:
            self.links[member, "y"] = deque()
            self.links["y", member] = deque()
        self.estate = JournalCopy()
        self.admitted = 0
        self.seqs: dict[str, int] = {}
        self.past: dict[Id, set[Id]] = {}
        for _ in range(self.dice.randint(5, 60)):
            self._act()

    def _act(self) -> None:
        busy = [way for way, queue in self.links.items() if queue]
        if busy and self.dice.random() < 0.6:
            sender, receiver = self.dice.choice(busy)
            self._process(receiver, self.links[sender, receiver].popleft(), sender)
        else:
            self._publish(self.dice.choice([*self.members, "y"]))

    def _publish(self, broker: str) -> None:
        publisher = f"p{self.dice.randrange(2)}-{broker}"
        self.seqs[publisher] = self.seqs.get(publisher, 0) + 1
        event = Event(publisher, self.seqs[publisher], {})
        self.past[name_of(event)] = {name_of(before) for before, _ in self.logs[broker]}
        if broker == "y":
            self.admitted += 1
            self.estate.admit(self.admitted, {item.publisher: item.seq for item, _ in self.logs["y"]}, [event])
        self._process(broker, event, "")

    def _process(self, broker: str, event: Event, source: str) -> None:
        self.logs[broker].append((event, source))
        for sender, receiver in self.links:
            if sender == broker and receiver != source:
                self.links[sender, receiver].append(event)

    def forget(self) -> set[Id]:
        """Something that everybody has seen, with all its causes: what the waves would let them forget."""
        everywhere = set.intersection(*({name_of(event) for event, _ in log} for log in self.logs.values()))
        closed = {name for name in everywhere if self.past[name] <= everywhere}
        first = self.logs["y"][: self.dice.randint(0, len(self.logs["y"]))]
        done: set[Id] = set()
        for event, _ in first:
            if name_of(event) in closed and self.past[name_of(event)] <= done:
                done.add(name_of(event))
        return done

    def contributions(self, forgotten: set[Id]) -> list[list[LogEntry]]:
        """What the members bring."""
        return [
            [
                LogEntry(event, source == "", None)
                for event, source in self.logs[member]
                if name_of(event) not in forgotten
            ]
            for member in self.members
        ]

    def admissions(self, forgotten: set[Id]) -> list[Admission]:
        """What the backups bring."""
        return [item for item in expanded(self.estate) if name_of(item.event) not in forgotten]


def expanded(copy: JournalCopy) -> list[Admission]:
    """What a copy would contribute: each admission with all that preceded it."""
    estate = copy.estate("y", 0)
    return list(expand(estate, {*estate.before, *(name for item in estate.admissions for name in item.after)}))


def check(star: Star, forgotten: set[Id]) -> list[Event]:
    logs, admissions = star.contributions(forgotten), star.admissions(forgotten)
    merged = merge_logs(logs, [admissions])
    order = [name_of(event) for event in merged]
    known = {name_of(entry.event) for log in logs for entry in log} | {name_of(item.event) for item in admissions}
    assert len(order) == len(set(order))
    assert set(order) == known
    place = {name: number for number, name in enumerate(order)}
    for name in order:
        for cause in star.past[name]:
            assert cause not in place or place[cause] < place[name], f"{name} stands before its cause {cause}"
    assert merge_logs(logs, [admissions]) == merged
    return merged


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_every_event_once_and_after_its_causes(first: int) -> None:
    for seed in range(first, first + 50):
        check(Star(seed), set())


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_also_when_a_causally_closed_part_is_forgotten(first: int) -> None:
    shorter = 0
    for seed in range(first, first + 50):
        star = Star(seed)
        forgotten = star.forget()
        shorter += bool(forgotten)
        check(star, forgotten)
    assert shorter, "the model forgets now and then, or this tests nothing"


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_past_of_an_event_is_what_its_broker_had_seen(first: int) -> None:
    for seed in range(first, first + 50):
        star = Star(seed)
        logs, estates = star.contributions(set()), [star.admissions(set())]
        merged = merge_logs(logs, estates)
        pasts = find_pasts(merged, logs, estates)
        for event in merged:
            known: dict[str, int] = {}
            for publisher, seq in (*star.past[name_of(event)], name_of(event)):
                known[publisher] = max(seq, known.get(publisher, 0))
            assert pasts[name_of(event)] == known


def test_it_does_not_matter_that_two_backups_hold_the_same() -> None:
    star = Star(3)
    logs, admissions = star.contributions(set()), star.admissions(set())
    assert merge_logs(logs, [admissions, admissions]) == merge_logs(logs, [admissions])


def test_an_answer_that_crossed_the_dead_broker_first_waits_for_its_cause() -> None:
    """a:1 reached d through the dead broker but not c; d's client answered, and only the answer reached c."""
    cause, answer = Event("a", 1, {}), Event("d", 1, {})
    at_a = [LogEntry(cause, True, None)]
    at_c = [LogEntry(answer, False, None)]
    at_d = [LogEntry(cause, False, None), LogEntry(answer, True, None)]
    assert merge_logs([at_c, at_d, at_a], []) == [cause, answer]


def admitted(event: Event, **after: int) -> list[Admission]:
    """The estate of a broker that admitted one event, after all that it had processed."""
    copy = JournalCopy()
    copy.admit(1, after, [event])
    return expanded(copy)


def test_an_admission_waits_for_what_its_broker_had_processed() -> None:
    cause, effect = Event("z", 4, {}), Event("a", 1, {})
    log = [LogEntry(cause, True, None)]
    assert merge_logs([log], [admitted(effect, z=4)]) == [cause, effect]
    assert merge_logs([log], [admitted(effect, z=3)]) == [effect, cause]
    assert merge_logs([[LogEntry(effect, False, {"z": 4})], log], []) == [cause, effect]


def test_a_publishers_own_order_is_kept() -> None:
    one, two = Event("p", 1, {}), Event("p", 2, {})
    assert merge_logs([[LogEntry(two, False, None)], [LogEntry(one, False, None)]], []) == [one, two]


def test_of_two_rules_that_contradict_each_other_one_is_dropped() -> None:
    one, two = Event("p", 1, {}), Event("q", 1, {})
    logs = [
        [LogEntry(one, False, None), LogEntry(two, True, None)],
        [LogEntry(two, False, None), LogEntry(one, True, None)],
    ]
    ordered = merge_logs(logs, [])
    assert ordered == [one, two]
    assert find_pasts(ordered, logs, []).keys() == {("p", 1), ("q", 1)}


def test_what_waits_for_a_knot_of_events_does_not_go_before_it() -> None:
    """a:1 and b:1 crossed: each is in the past that the other had in an earlier merged log. a:2 answers c:1."""
    one = [
        LogEntry(Event("a", 1, {}), False, {"a": 1}),
        LogEntry(Event("b", 1, {}), False, {"a": 1, "b": 1}),
        LogEntry(Event("c", 1, {}), True, None),
        LogEntry(Event("a", 2, {}), True, None),
    ]
    other = [
        LogEntry(Event("b", 1, {}), False, {"b": 1}),
        LogEntry(Event("a", 1, {}), False, {"a": 1, "b": 1}),
    ]
    for logs in ([one, other], [other, one]):
        names = [name_of(event) for event in merge_logs(logs, [])]
        assert set(names[:2]) == {("a", 1), ("b", 1)}
        assert names[2:] == [("c", 1), ("a", 2)]


def test_of_events_that_need_not_wait_the_one_with_the_smallest_stamp_is_first() -> None:
    """The journal that a:1 was in is lost, and nobody knows any more that it answers z:2."""
    answer = LogEntry(Event("a", 1, {}, b"", 30), False, None)
    asked = [
        Admission(1, Event("z", 1, {}, b"", 10), {}, False),
        Admission(2, Event("z", 2, {}, b"", 20), {}, False),
        Admission(3, Event("z", 3, {}, b"", 40), {}, False),
    ]
    assert [event.id for event in merge_logs([[answer]], [asked])] == ["z:1", "z:2", "a:1", "z:3"]


def test_a_smaller_stamp_does_not_count_against_what_is_known() -> None:
    entered = [LogEntry(Event("a", 1, {}, b"", 30), True, None), LogEntry(Event("b", 1, {}, b"", 10), True, None)]
    waiting = admitted(Event("c", 1, {}, b"", 20), a=1)
    assert [event.id for event in merge_logs([entered], [waiting])] == ["a:1", "b:1", "c:1"]


def test_what_was_not_known_when_a_position_became_final_gets_a_new_stamp_and_keeps_its_place() -> None:
    events = [Event("p", seq, {}, b"", stamp) for seq, stamp in ((1, 10), (2, 11), (3, 30))]
    events.insert(2, Event("q", 1, {}, b"", 12))
    late = merge.stamp_late(events, {"p": 1}, 20, 40)
    assert [(event.publisher, event.seq, event.stamp) for event in late] == [
        ("p", 1, 10),
        ("p", 2, 41),
        ("q", 1, 42),
        ("p", 3, 43),
    ], "p:3 follows p:2"
    assert merge.stamp_late(events, {"p": 3, "q": 1}, 20, 40) == events

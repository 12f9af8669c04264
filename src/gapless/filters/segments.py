"""Conjunctions as bits, in segments that come and go while filters are added and removed.

New conjunctions go to a small *young* segment, where setting a bit copies little; when it is full, the growing segment
absorbs it by one shift and OR for each bit set. A full segment grows no more. A removed conjunction is only marked as
dead; once more than half of a segment is dead, each further call moves a few of its living to the young segment, until
it is empty and dropped. So no call rebuilds everything.

All segments share one alphabet for each attribute. When as many sets of numbers have come as there were when its cuts
were chosen, the cuts are chosen anew and the attribute's columns rebuilt. That is constant time for each conjunction on
average, but the one call that does it goes through all members: with 100,000 conjunctions it was seen to take 0.3 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.filters.alphabet import Alphabet
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER, NumberSet
from gapless.filters.segment import Found, Segment

SEGMENT_MAX = 32_768
"""Conjunctions of one segment: an OR of so many bits outweighs the interpreter's overhead, and still fits caches."""

YOUNG_MIN, YOUNG_MAX = 32, 1024
"""Conjunctions of the young segment: a sixteenth of the growing one, within these bounds."""

MOVED_PER_CALL = 4
"""Conjunctions moved out of a half dead segment by each call."""

CUTTING_MAX = 20_000
"""Sets of numbers after which one call leaves further attributes to the next: one attribute is always done whole."""

SHAPES_MAX = 256
"""Combinations of attribute names of recent events for which plans are kept."""


class Segments:
    """All conjunctions that are kept as bits."""

    def __init__(self) -> None:
        self._alphabets: dict[str, Alphabet] = {}
        self._young = Segment(self._alphabets)
        self._growing: Segment | None = None
        self._old: list[Segment] = []
        """All segments but the young one."""
        self._draining: list[Segment] = []
        self._shapes: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, member: Member) -> None:
        self._enter(member)
        self._drain()

    def remove(self, member: Member) -> None:
        self._kill(member)
        self._drain()

    def match(self, attributes: Attributes) -> Iterator[Found]:
        """What each segment finds for the event."""
        if self._is_empty():
            return
        names = self._known_names(attributes)
        alphabets = self._alphabets
        codes = [alphabets[name].code(attributes[name]) for name in names]
        for segment in (*self._old, self._young):
            plan = segment.plan(names)
            yield segment.match(plan, codes if plan.places is None else [codes[place] for place in plan.places])

    def match_many(self, batch: Sequence[Attributes]) -> Iterator[tuple[int, Found]]:
        """What each segment finds for each of the events, with the event's place in the batch."""
        if self._is_empty():
            return
        by_names: dict[tuple[str, ...], list[int]] = {}
        for place, attributes in enumerate(batch):
            by_names.setdefault(self._known_names(attributes), []).append(place)
        for names, places in by_names.items():
            columns = [self._alphabets[name].codes([batch[place][name] for place in places]) for name in names]
            rows = list(zip(*columns, strict=True)) if columns else [()] * len(places)
            for segment in (*self._old, self._young):
                plan = segment.plan(names)
                for place, row in zip(places, rows, strict=True):
                    codes = row if plan.places is None else [row[i] for i in plan.places]
                    yield place, segment.match(plan, codes)

    def _is_empty(self) -> bool:
        return not self._old and not len(self._young)

    def _known_names(self, attributes: Attributes) -> tuple[str, ...]:
        """Those of the event's names that some conjunction mentions."""
        shape = tuple(attributes)
        names = self._shapes.get(shape)
        if names is None:
            if len(self._shapes) >= SHAPES_MAX:
                self._forget_shapes()
            names = self._shapes[shape] = tuple(name for name in shape if name in self._alphabets)
        return names

    def _forget_shapes(self) -> None:
        self._shapes.clear()
        for segment in (*self._old, self._young):
            segment.forget_plans()

    # Coming.

    def _enter(self, member: Member) -> None:
        for name, constraint in member.conjunction.constraints.items():
            alphabet = self._alphabets.get(name)
            if alphabet is None:
                alphabet = self._alphabets[name] = Alphabet()
                self._forget_shapes()
            alphabet.intervals += constraint.numbers not in (EVERY_NUMBER, NO_NUMBER)
            fresh = alphabet.name(constraint.strings.values)
            if fresh:
                for segment in (*self._old, self._young):
                    segment.give_meaning(name, fresh)
        self._young.add(member)
        if len(self._young) >= min(YOUNG_MAX, max(YOUNG_MIN, len(self._growing or ()) // 16)):
            self._graduate()

    def _graduate(self) -> None:
        """Empty the young segment: into itself without its dead if they are many, else into the growing segment."""
        young, growing = self._young, self._growing
        self._young = Segment(self._alphabets)
        if young.dead_count * 2 > len(young):
            for member in young.living():
                self._young.add(member)
        elif growing is None or len(growing) + len(young) > SEGMENT_MAX:
            self._growing = young
            self._old.append(young)
        else:
            growing.absorb(young)
        self._cut()

    def _cut(self) -> None:
        """Choose the cuts of attributes anew for which it is time, those first that grew the most."""
        waiting = [(name, alphabet) for name, alphabet in self._alphabets.items() if alphabet.growth >= 1]
        done = 0
        for name, alphabet in sorted(waiting, key=lambda item: -item[1].growth):
            if done >= CUTTING_MAX:
                break
            alphabet.choose_cuts(self._number_sets(name))
            done += alphabet.intervals_when_cut
            for segment in (*self._old, self._young):
                segment.cut(name)

    def _number_sets(self, name: str) -> Iterator[NumberSet]:
        for segment in (*self._old, self._young):
            for member in segment.living():
                constraint = member.conjunction.constraints.get(name)
                if constraint is not None and constraint.numbers not in (EVERY_NUMBER, NO_NUMBER):
                    yield constraint.numbers

    # Going.

    def _kill(self, member: Member) -> None:
        segment = member.segment
        assert segment is not None
        segment.kill(member)
        for name, constraint in member.conjunction.constraints.items():
            self._alphabets[name].forget(constraint.strings.values)
        if segment is self._young or segment in self._draining or segment.dead_count * 2 <= len(segment):
            return
        self._draining.append(segment)
        if segment is self._growing:
            self._growing = None

    def _drain(self) -> None:
        """Move a few of the living out of a segment that is half dead, and drop it when it is empty."""
        if not self._draining:
            return
        segment = self._draining[0]
        for member in segment.some_living(MOVED_PER_CALL):
            self._kill(member)
            self._enter(member)
        if not segment.living_count:
            self._draining.remove(segment)
            self._old.remove(segment)

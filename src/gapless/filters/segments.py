"""Stores conjunctions as bits, in segments that are created and dropped while filters are added and removed.

New conjunctions go to a small *young* segment, where setting a bit copies little. When it is full,
another one replaces it and the growing segment absorbs it, by one shift and OR for each bit set. A
full segment grows no more. A removed conjunction is only marked as dead; once more than half of a
segment is dead, its live ones move to the young segment, until it is empty and dropped.

All segments share one alphabet for each attribute. When the number of sets with bounds has doubled
since its cuts were chosen, the cuts are chosen again, from a sample, and the attribute's columns
get new bit sets of buckets.

All of this is done step by step: each call that adds or removes takes one step of the current task
(there is at most one: absorbing, or new cuts for one attribute) and moves a few live conjunctions
out of a half-dead segment. Between two steps everything is consistent, so no call takes long, and a
match never has to wait.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from gapless.filters.alphabet import Alphabet, Cuts, choose_cuts, ends, has_bounds, number_intervals, string_intervals
from gapless.filters.column import BucketCodes
from gapless.filters.constraints import Constraint
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER, Number
from gapless.filters.segment import Segment

SEGMENT_MAX = 32_768
"""Maximum number of conjunctions of one segment: an OR of so many bits outweighs the interpreter's
overhead, and fits caches.
"""

YOUNG_MIN, YOUNG_MAX = 32, 1024
"""Bounds of the young segment's size, which is a sixteenth of the growing one."""

MOVED_PER_CALL = 4
"""The number of conjunctions that each call moves out of a half-dead segment."""

SAMPLE_MAX = 1024
"""The number of conjunctions in the sample from which the cuts of an attribute are chosen: eight times the number of
cuts."""

SAMPLED_PER_STEP = 256
"""The number of sampled conjunctions that one step examines."""

SHAPES_MAX = 256
"""The number of combinations of attribute names for which plans are cached."""


class Segments:
    """All conjunctions of an index that are stored as bits."""

    def __init__(self) -> None:
        self._alphabets: dict[str, Alphabet] = {}
        self._names: list[str] = []
        """The names of the attributes with alphabets."""
        self._young = Segment(self._alphabets, self._names)
        self._growing: Segment | None = None
        self._old: list[Segment] = []
        """All segments except the young one."""
        self._draining: list[Segment] = []
        self._task: Iterator[None] | None = None
        self._absorbing: tuple[Segment, ...] = ()
        """The segments that the current task joins. Nothing is moved out of them until it ends."""
        self._may_cut = False
        """Whether conjunctions were absorbed since all cuts were last checked."""
        self._shapes: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.living_count = 0

    @property
    def all(self) -> tuple[Segment, ...]:
        return (*self._old, self._young)

    @property
    def is_draining(self) -> bool:
        """Return whether further steps are needed to remove dead conjunctions."""
        return bool(self._draining)

    def add(self, member: Member) -> None:
        """Add a conjunction. The caller must then take a step."""
        self._enter(member)
        self.living_count += 1

    def remove(self, member: Member) -> None:
        """Remove a conjunction. The caller must then take a step."""
        self._kill(member)
        self.living_count -= 1

    def match(self, attributes: Attributes) -> list[int]:
        """Return the order numbers of the filters that an event matches."""
        found: list[int] = []
        if not self.living_count:
            return found
        names = self._known_names(attributes)
        alphabets = self._alphabets
        codes = [alphabets[name].code(attributes[name]) for name in names]
        for segment in self.all:
            plan = segment.plan(names)
            own = codes if plan.places is None else [codes[place] for place in plan.places]
            found += segment.match(plan, own, attributes)
        return found

    def match_many(self, batch: Sequence[Attributes], found: list[list[int]]) -> None:
        """Append the order numbers of the matching filters to each event's list."""
        if not self.living_count:
            return
        by_names: dict[tuple[str, ...], list[int]] = {}
        for place, attributes in enumerate(batch):
            by_names.setdefault(self._known_names(attributes), []).append(place)
        for names, places in by_names.items():
            columns = [self._alphabets[name].codes([batch[place][name] for place in places]) for name in names]
            rows = list(zip(*columns, strict=True)) if columns else [()] * len(places)
            for segment in self.all:
                plan = segment.plan(names)
                for place, row in zip(places, rows, strict=True):
                    codes = row if plan.places is None else [row[i] for i in plan.places]
                    found[place] += segment.match(plan, codes, batch[place])

    def _known_names(self, attributes: Attributes) -> tuple[str, ...]:
        """Return the names of the event's attributes that some conjunction mentions."""
        shape = tuple(attributes)
        names = self._shapes.get(shape)
        if names is None:
            if len(self._shapes) >= SHAPES_MAX:
                self._forget_shapes()
            names = self._shapes[shape] = tuple(name for name in shape if name in self._alphabets)
        return names

    def _forget_shapes(self) -> None:
        self._shapes.clear()
        for segment in self.all:
            segment.forget_plans()

    # ---- adding -------------------------------------------------------------------------------------------

    def _enter(self, member: Member) -> None:
        for name, constraint in member.conjunction.constraints.items():
            alphabet = self._alphabets.get(name)
            if alphabet is None:
                alphabet = self._alphabets[name] = Alphabet(len(self._names))
                self._names.append(name)
                self._forget_shapes()
            if _is_bounded(constraint):
                alphabet.record_addition()
            fresh = alphabet.name(constraint.strings.values)
            if fresh:
                for segment in self.all:
                    segment.give_meaning(name, fresh)
        self._young.add(member)

    # ---- steps --------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Take one step of the pending work."""
        self._drain()
        if self._task is None:
            self._task = self._next_task()
        if self._task is not None and next(self._task, self) is self:
            self._task = None

    def _next_task(self) -> Iterator[None] | None:
        if len(self._young) >= min(YOUNG_MAX, max(YOUNG_MIN, len(self._growing or ()) // 16)):
            self._may_cut = True
            return self._begin_segment()
        if self._may_cut:
            name = max(self._alphabets, key=lambda name: self._alphabets[name].growth, default=None)
            if name is not None and self._alphabets[name].growth >= 1:
                return self._cut(name, self._alphabets[name])
            self._may_cut = False
        return None

    def _begin_segment(self) -> Iterator[None]:
        """Begin a new young segment. The growing segment absorbs the previous one, unless it is full or that is half
        dead.
        """
        young, growing = self._young, self._growing
        self._young = Segment(self._alphabets, self._names)
        self._old.append(young)
        if young.is_half_dead:
            self._draining.append(young)
        elif growing is None or len(growing) + len(young) > SEGMENT_MAX:
            self._growing = young
        else:
            self._absorbing = (growing, young)
            yield from growing.absorb(young)
            self._absorbing = ()
            self._old.remove(young)
            if young in self._draining:
                self._draining.remove(young)
            self._drain_if_half_dead(growing)

    def _cut(self, name: str, alphabet: Alphabet) -> Iterator[None]:
        """Choose new cuts for an attribute, step by step."""
        alphabet.note_choice()
        numbers: list[Number] = []
        strings: list[str] = []
        for count, constraint in enumerate(self._sample(name), 1):
            some = constraint.numbers[:: 1 + len(constraint.numbers) // 8]
            numbers += ends(number_intervals(some))
            if has_bounds(constraint.strings):
                strings += ends(string_intervals(constraint.strings))
            if not count % SAMPLED_PER_STEP:
                yield
        cuts = Cuts(choose_cuts(numbers), choose_cuts(strings))
        made: list[tuple[Segment, BucketCodes | None]] = []
        for segment in list(self._old):
            bits = yield from segment.bucket_bits(name, cuts)
            made.append((segment, bits))
            yield
        # The young segment changes with each call, so it is updated at once, together with the cuts.
        made.append((self._young, _result(self._young.bucket_bits(name, cuts))))
        for segment, bits in made:
            segment.put_in(name, bits)
        alphabet.cuts, alphabet.string_cuts = cuts

    def _sample(self, name: str) -> Iterator[Constraint]:
        segments = self.all
        stride = 1 + sum(map(len, segments)) // SAMPLE_MAX
        for segment in segments:
            for member in segment.members[::stride]:
                constraint = member.conjunction.constraints.get(name)
                if member.segment is segment and constraint is not None:
                    yield constraint

    # ---- removing -----------------------------------------------------------------------------------------

    def _kill(self, member: Member) -> None:
        segment = member.segment
        assert isinstance(segment, Segment)
        segment.kill(member)
        for name, constraint in member.conjunction.constraints.items():
            alphabet = self._alphabets[name]
            if _is_bounded(constraint):
                alphabet.record_removal()
            alphabet.forget(constraint.strings.values)
        if segment is not self._young:
            self._drain_if_half_dead(segment)

    def _drain_if_half_dead(self, segment: Segment) -> None:
        if segment.is_half_dead and segment not in self._draining:
            self._draining.append(segment)
            if segment is self._growing:
                self._growing = None

    def _drain(self) -> None:
        """Move a few live conjunctions out of a half-dead segment. Drop the segment when it is empty."""
        segment = next((each for each in self._draining if each not in self._absorbing), None)
        if segment is None:
            return
        if segment.living_count:
            for member in segment.some_living(MOVED_PER_CALL):
                self._kill(member)
                self._enter(member)
        if not segment.living_count:
            self._draining.remove(segment)
            self._old.remove(segment)


def _is_bounded(constraint: Constraint) -> bool:
    """Return whether the constraint has bounds of numbers or of strings."""
    return constraint.numbers not in (EVERY_NUMBER, NO_NUMBER) or has_bounds(constraint.strings)


def _result(steps: Generator[None, None, BucketCodes | None]) -> BucketCodes | None:
    """Take all remaining steps now, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            bits: BucketCodes | None = end.value
            return bits

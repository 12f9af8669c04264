"""The events that a broker keeps for others: the paper's `Cache`, of fixed size.

Events are found by name (a `Request` of push), by source, pattern and number (pull), and by pattern (push digests).
A full cache evicts one event for each new one: see `Discard` in `options`.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from gapless_papers.protocols.epidemic.dice import Dice
from gapless_papers.protocols.epidemic.messages import EventId, Stamped
from gapless_papers.protocols.epidemic.options import Discard

__all__ = ["EventCache"]


class _Order(Protocol):
    """The order in which cached events are evicted."""

    def enter(self, event: EventId, own: bool) -> None: ...

    def choose(self) -> EventId: ...


class _Oldest:
    def __init__(self, dice: Dice) -> None:
        self._events: deque[EventId] = deque()

    def enter(self, event: EventId, own: bool) -> None:
        self._events.append(event)

    def choose(self) -> EventId:
        return self._events.popleft()


class _ForeignFirst:
    def __init__(self, dice: Dice) -> None:
        self._own: deque[EventId] = deque()
        self._foreign: deque[EventId] = deque()

    def enter(self, event: EventId, own: bool) -> None:
        (self._own if own else self._foreign).append(event)

    def choose(self) -> EventId:
        return (self._foreign or self._own).popleft()


class _Random:
    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._events: list[EventId] = []

    def enter(self, event: EventId, own: bool) -> None:
        self._events.append(event)

    def choose(self) -> EventId:
        place = self._dice.below(len(self._events))
        self._events[place], self._events[-1] = self._events[-1], self._events[place]
        return self._events.pop()


_ORDERS: Mapping[Discard, type[_Oldest | _ForeignFirst | _Random]] = {
    "oldest": _Oldest,
    "foreign-first": _ForeignFirst,
    "random": _Random,
}


class _Cached(msgspec.Struct, frozen=True):
    stamped: Stamped
    patterns: tuple[str, ...]


class EventCache:
    """A bounded store of events."""

    def __init__(self, size: int, discard: Discard, dice: Dice) -> None:
        self._size = size
        self._order: _Order = _ORDERS[discard](dice)
        self._events: dict[EventId, _Cached] = {}
        self._by_number: dict[tuple[str, str], dict[int, Stamped]] = {}
        """The cached events by source and pattern, then by number."""
        self._by_pattern: dict[str, dict[EventId, None]] = {}

    def __len__(self) -> int:
        return len(self._events)

    def add(self, stamped: Stamped, patterns: tuple[str, ...], own: bool) -> None:
        """Add an event that is not cached yet; `digest` lists it under these `patterns`."""
        event = (stamped.event.publisher, stamped.event.seq)
        self._events[event] = _Cached(stamped, patterns)
        for pattern in patterns:
            self._by_pattern.setdefault(pattern, {})[event] = None
        for pattern, number in stamped.numbers.items():
            self._by_number.setdefault((stamped.source, pattern), {})[number] = stamped
        self._order.enter(event, own)
        if len(self._events) > self._size:
            self._drop(self._order.choose())

    def find(self, event: EventId) -> Stamped | None:
        """Return the cached event with this name; None if it is not cached."""
        cached = self._events.get(event)
        return None if cached is None else cached.stamped

    def find_numbers(self, source: str, pattern: str, numbers: tuple[int, ...]) -> list[Stamped]:
        """Return the cached events of the source with these numbers for the pattern."""
        cached = self._by_number.get((source, pattern))
        if cached is None or cached.keys().isdisjoint(numbers):
            return []
        return [cached[number] for number in numbers if number in cached]

    def digest(self, pattern: str) -> tuple[EventId, ...]:
        """Return the names of all cached events that match the pattern."""
        return tuple(self._by_pattern.get(pattern, ()))

    def patterns(self) -> Iterable[str]:
        """Return the patterns that some cached event matches."""
        return self._by_pattern

    def _drop(self, event: EventId) -> None:
        cached = self._events.pop(event)
        for pattern in cached.patterns:
            named = self._by_pattern[pattern]
            del named[event]
            if not named:
                del self._by_pattern[pattern]
        for pattern, number in cached.stamped.numbers.items():
            numbered = self._by_number[cached.stamped.source, pattern]
            del numbered[number]
            if not numbered:
                del self._by_number[cached.stamped.source, pattern]

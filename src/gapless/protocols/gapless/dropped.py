"""The publication numbers of dropped journal entries, so that readers learn which events they miss.

The numbers are kept in parts, one for each period: the first and the last dropped number of each publisher. If there
are too many parts, adjacent ones are merged: a report to a reader then contains more numbers than it missed, never
fewer. Numbers before the first part are unknown; then the report has the two positions between which events are
missing.
"""

from collections.abc import Iterable, Sequence

from gapless.protocols.gapless.journal_messages import Dropped, Entry, Numbers
from gapless.protocols.gapless.tombstones import numbers_of
from gapless.protocols.parts.ranges import Ranges, add_range

__all__ = ["after_dropping", "dropped_between"]

PARTS_MAX = 64
PUBLISHERS_MAX = 20_000
"""The maximum number of publishers in all parts of one journal; a publisher counts once for each part."""


def after_dropping(known: Dropped, before: int, entries: Sequence[Entry]) -> Dropped:
    """Return the record of dropped numbers after these entries are dropped, too. `before` is the timestamp up to which
    all entries had been dropped earlier."""
    if known.until != before:
        known = Dropped(since=before, until=before)
    parts = (*known.parts, (entries[0].timestamp, entries[-1].timestamp, _numbers_of(entries)))
    if len(parts) > PARTS_MAX:
        parts = tuple(_joined(parts[place : place + 2]) for place in range(0, len(parts), 2))
    since = known.since
    while sum(len(numbers) for _, _, numbers in parts) > PUBLISHERS_MAX:
        since, parts = parts[0][1], parts[1:]
    return Dropped(since, entries[-1].timestamp, parts)


def _numbers_of(entries: Iterable[Entry]) -> Numbers:
    found: Numbers = {}
    for entry in entries:
        _add(found, *numbers_of(entry))
    return found


def _joined(parts: Sequence[tuple[int, int, Numbers]]) -> tuple[int, int, Numbers]:
    found: Numbers = {}
    for _, _, numbers in parts:
        for publisher, (first, last) in numbers.items():
            _add(found, publisher, first, last)
    return parts[0][0], parts[-1][1], found


def _add(numbers: Numbers, publisher: str, first: int, last: int) -> None:
    known = numbers.get(publisher, (first, last))
    numbers[publisher] = min(known[0], first), max(known[1], last)


def dropped_between(known: Dropped, since: int, until: int) -> Ranges | None:
    """Return the numbers dropped after the timestamp `since` and up to `until`; None if some of them are unknown."""
    if known.since > since or known.until < until:
        return None
    found: Ranges = {}
    for begin, end, numbers in known.parts:
        if end > since and begin <= until:
            for publisher, (first, last) in numbers.items():
                add_range(found, publisher, first, last)
    return found

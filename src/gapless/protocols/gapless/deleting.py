"""Deletes the events of a publisher from history, at an operator's request.

The publisher and the broker's clock become part of the broker's status, which reaches all brokers, and is on their
disks. When all brokers have processed everything up to that time, each broker replaces the publisher's entries up to
there, in its journal and its copies, by **tombstones** (see `tombstones`): they keep the timestamps and the numbers, so
readers learn which numbers were deleted. A broker that returns, or gets earlier entries from another one, also deletes
them before it uses them.
"""

import re

from gapless.protocols.gapless.advertised import filter_text
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.membership import learn
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.tombstones import deleted

__all__ = ["DELETIONS_MAX", "delete_batch", "delete_events", "deletions", "is_deleting", "may_hold"]

DELETIONS_MAX = 1_000
"""The maximum number of publishers whose events can be deleted. Every broker remembers them, and rejects
further ones."""
_END = re.compile(r"-[0-9a-f]{8}$")
"""The suffix that makes a client's name unique. An operator can omit it."""
WORK_MAX = 5_000
"""The number of entries that one tick examines."""


def delete_events(s: BrokerState, publisher: str) -> None:
    """Delete everything that this publisher has published so far."""
    status = s.status(s.name)
    known = dict(status.deleted)
    if publisher not in known and len(deletions(s)) >= DELETIONS_MAX:
        return
    known[publisher] = max(s.clock.last, s.clock.now)
    learn(s, {s.name: status._replace(deleted=tuple(sorted(known.items())))})


def may_hold(s: BrokerState, publisher: str) -> bool:
    """Return whether this broker may have events of the publisher, or of clients with this name and a suffix."""
    for journal in _journals(s):
        if journal.has_forgotten or publisher in journal.last_numbers:
            return True
        if any(each.startswith(publisher) and _END.sub("", each) == publisher for each in journal.last_numbers):
            return True
    return False


def deletions(s: BrokerState) -> dict[str, int]:
    """Return the timestamp up to which each publisher's events are deleted."""
    found: dict[str, int] = {}
    for status in s.statuses.values():
        for publisher, upto in status.deleted:
            found[publisher] = max(upto, found.get(publisher, 0))
    return found


def is_deleting(s: BrokerState) -> bool:
    """Return whether some entries on this broker may still have to be deleted."""
    return deletions(s) != s.deleted or any(_is_unchecked(s, each) for each in _journals(s))


def delete_batch(s: BrokerState) -> None:
    """Delete the next batch of entries."""
    if not any(status.deleted for status in s.statuses.values()):
        return
    known = {publisher: upto for publisher, upto in deletions(s).items() if upto <= s.stable}
    if s.deleted != known:
        s.deleted, s.deleted_upto = known, max(known.values(), default=0)
        for journal in _journals(s):
            journal.checked = 0
    work = WORK_MAX
    for journal in _journals(s):
        while work > 0 and _is_unchecked(s, journal):
            work -= 1
            _check(s, journal, max(journal.checked, journal.start))
        if not s.disk.is_there:
            journal.replaced.clear()


def _journals(s: BrokerState) -> list[Journal]:
    return [s.journal, *s.journals.values()]


def _is_unchecked(s: BrokerState, journal: Journal) -> bool:
    place = max(journal.checked, journal.start)
    return place < len(journal) and journal.entry(place).timestamp <= s.deleted_upto


def _check(s: BrokerState, journal: Journal, place: int) -> None:
    entry = journal.entry(place)
    journal.checked = place + 1
    publisher = entry.publisher
    if entry.timestamp <= max(s.deleted.get(publisher, 0), s.deleted.get(_END.sub("", publisher), 0)):
        s.measures.deleted += entry.last + 1 - entry.first
        journal.replace(place, deleted(entry, filter_text(s, entry.publisher, entry.first)))

"""A broker and its disk: writing state, delaying messages until the state is written, and restoring it after a restart.

The disk contains the **register**: the broker's journal and the copies of others' journals, its promises and
acceptances, the statuses, the final seals, the records of durable subscriptions, and a clock that is not below any
position that it has echoed. At the end of a step all changes of the register become one batch.

*No message may depend on state that the disk can lose.* So these messages wait until the batch of their step is on the
disk: `Held`, `Promise`, `Accepted`, `JoinReply` (it vouches for the statuses), `Echo`, and messages of replicas of
durable subscriptions (`Vote`, `RecordPage`). A broker counts its own copy of an entry, and its own votes, only then,
too. All other messages are sent at once. Waiting messages keep their order, and are dropped with the incarnation that
they are meant for.

Journals are stored as history, one row for the entries of a step: each entry is written once, and can be read again by
its timestamp. The length of each journal is stored next to it, which reveals a damaged disk. Such a disk is not
trusted, and its broker counts as one without memory; the readable part is still offered to others.
"""

from bisect import bisect_left, bisect_right, insort
from typing import TypeAlias

import msgspec

from gapless.disk import Admit, Change, Delete, DiskContents, ForgetHistory, Put
from gapless.errors import StorageError
from gapless.protocol import Keep
from gapless.protocols.gapless.disk_state import NEVER, Waiting
from gapless.protocols.gapless.durable.messages import StoredRecord
from gapless.protocols.gapless.durable.register import store
from gapless.protocols.gapless.identities import Ballot, Incarnation, Status
from gapless.protocols.gapless.journal_messages import Held, JournalCopy
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.membership_messages import Memory
from gapless.protocols.gapless.messages import Body
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.topology import FIRST

__all__ = ["collect", "persisted", "restore", "say", "take_due"]

FORMAT = 5
FORMAT_KEY = "format"
CLOCK_KEY = "clock"
STATUSES_KEY = "statuses"
SEALED_KEY = "sealed"
ACCEPTOR_KEYS = "acceptor/"
LENGTH_KEYS = "length/"
HEAD_KEYS = "head/"
RECORD_KEYS = "record/"
ROW_ENTRIES = 256
"""The maximum number of entries in a row, which bounds the loss from a damaged row."""

SavedAcceptor: TypeAlias = tuple[int, Ballot, dict[int, tuple[Ballot, int]]]
Seals: TypeAlias = list[tuple[Incarnation, int]]
DROPPED_LATER = 1_024
"""How many entries can remain on the disk after they were dropped from memory."""
_encode = msgspec.msgpack.Encoder().encode
_decode_copy = msgspec.msgpack.Decoder(JournalCopy).decode
_decode_statuses = msgspec.msgpack.Decoder(dict[str, Status]).decode
_decode_acceptor = msgspec.msgpack.Decoder(SavedAcceptor).decode
_decode_seals = msgspec.msgpack.Decoder(Seals).decode
_decode_clock = msgspec.msgpack.Decoder(tuple[int, int]).decode
_decode_record = msgspec.msgpack.Decoder(StoredRecord).decode
_decode_number = msgspec.msgpack.Decoder(int).decode


# ---- delayed messages --------------------------------------------------------------------------------------


def say(s: BrokerState, peer: str, body: Body) -> None:
    """Send a message, or process it if it is for this broker, when all state changes of this step are on the disk."""
    s.waiting.append(Waiting(s.disk.next, peer, body))


def take_due(s: BrokerState) -> list[Waiting]:
    """Return the messages whose batches are on the disk. Of several `Held` to one broker, only the last is returned."""
    due: list[Waiting] = []
    if not s.waiting:
        return due
    while s.waiting and min(s.waiting[0].batch, s.disk.number) <= s.disk.persisted:
        due.append(s.waiting.popleft())
    if len(due) == 1:
        return due
    last = {each.peer: each for each in due if isinstance(each.body, Held)}
    return [each for each in due if not isinstance(each.body, Held) or last[each.peer] is each]


def persisted(s: BrokerState, number: int) -> None:
    """Record that all batches up to this one are on the disk."""
    disk = s.disk
    disk.persisted = max(disk.persisted, number)
    while disk.own_written and disk.own_written[0][0] <= number:
        disk.own_length = disk.own_written.popleft()[1]


# ---- writing -----------------------------------------------------------------------------------------------


def collect(s: BrokerState) -> None:
    """Write all changes of the register to the disk, as one batch."""
    disk = s.disk
    if not disk.is_there:
        return
    changes: list[Change] = []
    if not disk.number:
        changes.append(Put(FORMAT_KEY, _encode(FORMAT)))
    if s.journal.has_changed and len(s.journal) > disk.written.get(s.incarnation, (0, 0))[1]:
        disk.own_written.append((disk.next, len(s.journal)))
    _write_journal(s, s.incarnation, s.journal, changes)
    for incarnation, journal in s.journals.items():
        _write_journal(s, incarnation, journal, changes)
    for broker in disk.changed_acceptors:
        acceptor = s.acceptors[broker]
        saved: SavedAcceptor = acceptor.promised_below, acceptor.promised, acceptor.accepted
        changes.append(Put(f"{ACCEPTOR_KEYS}{broker}", _encode(saved)))
    disk.changed_acceptors.clear()
    for name in sorted(disk.changed_records):
        held = s.durable.records.get(name)
        changes.append(Delete(f"{RECORD_KEYS}{name}") if held is None else Put(f"{RECORD_KEYS}{name}", _encode(held)))
    disk.changed_records.clear()
    if disk.are_statuses_changed:
        disk.are_statuses_changed = False
        changes.append(Put(STATUSES_KEY, _encode(s.statuses)))
    if disk.is_clock_due:
        disk.is_clock_due = False
        changes.append(Put(CLOCK_KEY, _encode((s.clock.last, s.stable))))
        if disk.sealed_written != len(s.sealed_final):
            disk.sealed_written = len(s.sealed_final)
            changes.append(Put(SEALED_KEY, _encode(list(s.sealed_final.items()))))
    if changes:
        disk.number += 1
        s.emit(Keep(disk.number, changes))


def _write_journal(s: BrokerState, incarnation: Incarnation, journal: Journal, changes: list[Change]) -> None:
    """Write the new entries in memory to the disk. Schedule the deletion of dropped ones, and of their publishers'
    numbers.

    A copy can begin after the start of its journal from the first on. Then this broker has vouched for its length, and
    for the last numbers before it, so they are written, too.
    """
    if not journal.has_changed:
        return
    journal.has_changed = False
    start, end = s.disk.written.get(incarnation, (0, 0))
    if not journal.replaced and len(journal) <= end and start <= journal.start <= start + DROPPED_LATER:
        return
    name = _name(incarnation)
    if journal.start < start:
        _write_rows(s, incarnation, journal, journal.start, start, changes)
        _write_head(s, incarnation, journal, changes)
        start = journal.start
    elif journal.start > min(end, start + DROPPED_LATER) or journal.replaced:
        _write_head(s, incarnation, journal, changes)
        start = journal.start
    if journal.replaced:
        _write_replaced(s, incarnation, journal, changes)
    if len(journal) > end:
        _write_rows(s, incarnation, journal, max(end, start), len(journal), changes)
        end = len(journal)
        changes.append(Put(f"{LENGTH_KEYS}{name}", _encode(end)))
    s.disk.written[incarnation] = start, end


def _write_replaced(s: BrokerState, incarnation: Incarnation, journal: Journal, changes: list[Change]) -> None:
    """Rewrite the rows that contain replaced entries. Their last timestamps stay the same."""
    ends = s.disk.row_ends.get(incarnation, [])
    for row in sorted({bisect_left(ends, timestamp) for timestamp in journal.replaced}):
        if row < len(ends):
            start = journal.place_after(ends[row - 1]) if row else journal.start
            changes.append(_row(incarnation, journal, start, journal.place_after(ends[row]), ends[row]))
    journal.replaced.clear()


def _write_head(s: BrokerState, incarnation: Incarnation, journal: Journal, changes: list[Change]) -> None:
    """Write where the journal begins on the disk, and the summary of the entries before that."""
    name = _name(incarnation)
    ends = s.disk.row_ends.get(incarnation, [])
    del ends[: bisect_right(ends, journal.dropped)]
    head = JournalCopy(
        incarnation, journal.start, journal.dropped, dict(journal.last_numbers), journal.has_forgotten, [], journal.gone
    )
    changes += (ForgetHistory(name, journal.dropped), Put(f"{HEAD_KEYS}{name}", _encode(head)))


def _write_rows(
    s: BrokerState, incarnation: Incarnation, journal: Journal, start: int, end: int, changes: list[Change]
) -> None:  # fmt: skip
    ends = s.disk.row_ends.setdefault(incarnation, [])
    while start < end:
        stop = min(end, start + ROW_ENTRIES)
        last = journal.entry(stop - 1).timestamp
        changes.append(_row(incarnation, journal, start, stop, last))
        insort(ends, last)
        start = stop


def _row(incarnation: Incarnation, journal: Journal, start: int, end: int, last: int) -> Admit:
    copy = journal.copy(incarnation, start, end, is_page=True)
    count = sum(len(entry.events) for entry in copy.entries)
    return Admit(_name(incarnation), copy.entries[0].timestamp, last, count, _encode(copy))


def _name(incarnation: Incarnation) -> str:
    return f"{incarnation.broker}/{incarnation.number}"


def _incarnation(name: str) -> Incarnation:
    broker, _, number = name.rpartition("/")
    return Incarnation(broker, int(number))


# ---- restoring ---------------------------------------------------------------------------------------------


def restore(s: BrokerState, contents: DiskContents) -> None:
    """Restore the state from the contents of the disk; do nothing if the disk is new."""
    s.disk.is_there = True
    s.disk.waits = "synced" not in s.off
    s.disk.persisted = 0 if s.disk.waits else NEVER
    if FORMAT_KEY not in contents.entries:
        s.memory = Memory.NONE if contents.is_new else Memory.DISK
        return
    try:
        _check_format(s, contents)
        is_whole = _restore_journals(s, contents)
        _restore_entries(s, contents)
    except msgspec.DecodeError as error:
        raise StorageError(f"the data on the disk of {s.name} cannot be read: {error}; {_WAY_OUT}") from None
    s.memory = Memory.DISK if is_whole else Memory.NONE
    s.disk.are_statuses_changed = True


_WAY_OUT = "use the version of Gapless that wrote it, or an empty directory: f other brokers hold its data"


def _check_format(s: BrokerState, contents: DiskContents) -> None:
    found = _decode_number(contents.entries[FORMAT_KEY])
    if found != FORMAT:
        raise StorageError(f"the disk of {s.name} has format {found}, and this version reads {FORMAT}; {_WAY_OUT}")


def _restore_entries(s: BrokerState, contents: DiskContents) -> None:
    entries = contents.entries
    if STATUSES_KEY in entries:
        statuses = _decode_statuses(entries[STATUSES_KEY])
        found = statuses.pop(s.name, FIRST)
        assert found.number < s.number, f"{s.name} starts as {s.number}, and was {found.number} before"
        own = s.statuses[s.name]._replace(sealed_below=found.sealed_below, lengths=found.lengths, deleted=found.deleted)
        s.statuses = {**statuses, s.name: own}
    for name, status in s.statuses.items():
        for number, length in status.lengths:
            copy = s.journals.get(Incarnation(name, number))
            if copy is not None:
                copy.cut_to(length)
    if CLOCK_KEY in entries:
        clock, s.stable = _decode_clock(entries[CLOCK_KEY])
        s.clock.see(clock)
    if SEALED_KEY in entries:
        s.sealed_final = dict(_decode_seals(entries[SEALED_KEY]))
    for broker, acceptor in s.acceptors.items():
        blob = entries.get(f"{ACCEPTOR_KEYS}{broker}")
        if blob is not None:
            acceptor.promised_below, acceptor.promised, acceptor.accepted = _decode_acceptor(blob)
    for key, blob in entries.items():
        if key.startswith(RECORD_KEYS):
            store(s, _decode_record(blob))
    s.disk.changed_records.clear()


def _restore_journals(s: BrokerState, contents: DiskContents) -> bool:
    """Read the journals; return whether they are complete."""
    is_whole = True
    for key, blob in contents.entries.items():
        if key.startswith(LENGTH_KEYS):
            name = key.removeprefix(LENGTH_KEYS)
            incarnation = _incarnation(name)
            journal = s.journals[incarnation] = Journal()
            if f"{HEAD_KEYS}{name}" in contents.entries:
                journal.extend_from(_decode_copy(contents.entries[f"{HEAD_KEYS}{name}"]))
            for row in contents.history.get(name, ()):
                copy = _decode_copy(row.blob)
                is_whole = is_whole and copy.start <= len(journal)
                journal.extend_from(copy)
                s.disk.row_ends.setdefault(incarnation, []).append(row.last)
            s.disk.written[incarnation] = journal.start, len(journal)
            is_whole = is_whole and len(journal) >= _decode_number(blob)
            s.clock.see(journal.last_timestamp)
    return is_whole

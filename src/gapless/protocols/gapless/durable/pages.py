"""Reads all records of the replicas page by page: for a client's list, or for a replica that has lost its memory.

A restarted replica neither votes nor proposes until enough others have sent it all their records. Enough are f + 1 that
have not restarted or have recovered since; or all that may still return; or, after `return_ms`, f + 1 with a disk,
including itself (`recovery` has the same rules for journals and explains them). A vote names the incarnations that the
voter knows, and votes of earlier ones are void. So any f + 1 others contain one that knows what a lost incarnation had
promised or accepted in a valid vote. Either it voted before the recovering replica asked, and its answer includes the
vote; or it voted later, and its vote made the lost incarnation's vote void.
"""

from msgspec.structs import replace

from gapless.protocols.gapless.client_state import Session, SessionPhase
from gapless.protocols.gapless.durable.client_messages import ClientList, DurableListed
from gapless.protocols.gapless.durable.messages import DurableRecord, ListRecords, Progress, RecordPage
from gapless.protocols.gapless.durable.register import counted, incarnations_of, is_replica, majority, merge, replicas
from gapless.protocols.gapless.durable.state import PageRead
from gapless.protocols.gapless.membership_messages import Memory
from gapless.protocols.gapless.state import BrokerState

__all__ = ["answer_list", "begin_list", "take_page", "tick"]

PAGE = 100
"""The number of records in one message."""
RECORDS_AT_ONCE = 200


def answer_list(s: BrokerState, message: ListRecords) -> RecordPage | None:
    """Return a page of records. A replica that has not recovered sends them only to other recovering replicas;
    otherwise return None."""
    if not is_replica(s) or (message.request and not s.durable.has_recovered):
        return None
    memory = Memory.SETTLED if s.durable.has_recovered else s.memory
    names = sorted(name for name in s.durable.records if name > message.after)[:PAGE]
    records = [s.durable.records[name] for name in names]
    return RecordPage(message.request, message.after, records, incarnations_of(s), memory.value)


def _ask(s: BrokerState, number: int, read: PageRead, names: tuple[str, ...]) -> None:
    for name in names:
        if name in read.answered:
            continue
        question = ListRecords(number, read.after.get(name, ""))
        if name != s.name:
            s.send(name, question)
        elif number and number in s.durable.lists:
            page = answer_list(s, question)
            if page is not None:
                take_page(s, s.name, page)


def take_page(s: BrokerState, peer: str, page: RecordPage) -> None:
    """Process a page of a replica's records."""
    number, d = page.request, s.durable
    read = d.lists.get(number) if number else None if d.has_recovered else d.recovery
    if read is None or page.after != read.after.get(peer, "") or peer in read.answered:
        return
    if not number and page.incarnations[replicas(s).index(s.name)] < s.number:
        _ask(s, number, read, (peer,))  # the page was sent before the peer knew this incarnation
        return
    for held in page.records:
        if number:
            read.found[held.name] = max(held, read.found.get(held.name, held), key=lambda each: each.version)
        else:
            merge(s, held)
    if page.records:
        read.after[peer] = page.records[-1].name
        _ask(s, number, read, (peer,))
        return
    read.answered[peer] = page
    if not number:
        _end_recovery(s)
    elif len(read.answered) >= majority(s):
        del d.lists[number]
        _send_list(s, read)


def tick(s: BrokerState) -> None:
    """Repeat requests whose answers may have been lost."""
    d = s.durable
    _end_recovery(s)
    if not d.has_recovered and is_replica(s):
        stale = d.recovery.answered.keys() - set(_counted(s, d.recovery))
        for name in stale:  # these replicas have lost their memory since
            del d.recovery.answered[name]
            d.recovery.after.pop(name, None)
        _ask(s, 0, d.recovery, replicas(s))
    for number, read in list(d.lists.items()):
        if _session(s, read) is None:
            del d.lists[number]
        else:
            _ask(s, number, read, replicas(s))


# ---- recovery ------------------------------------------------------------------------------------------------


def _counted(s: BrokerState, read: PageRead) -> list[str]:
    return counted(s, {name: page.incarnations for name, page in read.answered.items()})


def _end_recovery(s: BrokerState) -> None:
    """Complete the recovery if enough replicas have answered."""
    d, quorum = s.durable, s.topology.quorum
    if d.has_recovered or not is_replica(s):
        return
    names = _counted(s, d.recovery)
    memories = [Memory(d.recovery.answered[name].memory) for name in names]
    remembering = (s.memory is not Memory.NONE) + len(memories) - memories.count(Memory.NONE)
    if (
        memories.count(Memory.SETTLED) >= quorum
        or all(name in names or s.is_forgotten(name) for name in replicas(s) if name != s.name)
        or (s.has_waited and remembering >= s.needed(replicas(s), quorum))
    ):
        d.has_recovered, d.recovery = True, PageRead()


# ---- lists ---------------------------------------------------------------------------------------------------


def begin_list(s: BrokerState, session: Session, message: ClientList) -> None:
    number = s.durable.next_request
    s.durable.next_request += 1
    read = s.durable.lists[number] = PageRead(client=session.client, session=session.number, request=message.request)
    _ask(s, number, read, replicas(s))


def _session(s: BrokerState, read: PageRead) -> Session | None:
    session = s.sessions.get(read.client)
    is_same = session is not None and session.number == read.session and session.phase is SessionPhase.OPEN
    return session if is_same else None


def _send_list(s: BrokerState, read: PageRead) -> None:
    session = _session(s, read)
    if session is None:
        return
    held = [read.found[name].record for name in sorted(read.found)]
    records = [_shown(record) for record in held if record is not None and not record.is_over]
    newest = max(s.clock.now, s.clock.last)
    for first in range(0, len(records) or 1, RECORDS_AT_ONCE):
        part = records[first : first + RECORDS_AT_ONCE]
        is_last = first + RECORDS_AT_ONCE >= len(records)
        shown = DurableListed(session.number, read.request, part, newest, is_last, s.final.newest)
        s.send_to(session.client, shown)


def _shown(record: DurableRecord) -> DurableRecord:
    """Return the record without its lists of acknowledged events."""
    known = record.progress
    return replace(record, progress=Progress(known.position, latest=known.latest))

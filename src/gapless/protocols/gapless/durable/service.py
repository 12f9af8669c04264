"""Durable subscriptions of clients with sessions here: calls, their results, and listings.

A client attaches by a change of the record. Then it resumes an ordinary subscription that continues after the
acknowledged position by reading history (`local`), skips events that the record lists as acknowledged, and acknowledges
by changes of the record under its generation. To move to another broker it needs nothing else: its acknowledgements
come from there. Another client that attaches has a larger generation: the next acknowledgement of the first is refused,
and its broker is notified at once if possible.
"""

from collections.abc import Sequence
from typing import Any

from gapless.names import LISTING
from gapless.protocols.gapless.client_state import Session, SessionPhase
from gapless.protocols.gapless.durable import register
from gapless.protocols.gapless.durable.client_messages import (
    AckResult,
    ClientAck,
    ClientAttach,
    ClientGroupReport,
    ClientList,
    ClientMove,
    DurableAttached,
    DurableListed,
    DurableLost,
    DurableMoved,
    DurableRefused,
)
from gapless.protocols.gapless.durable.groups import end_group, found_group, written_group
from gapless.protocols.gapless.durable.messages import DurableRecord, ListRecords, OwnerLost, RecordPage
from gapless.protocols.gapless.durable.proposals import propose
from gapless.protocols.gapless.durable.relay import begin_line, relay_report
from gapless.protocols.gapless.durable.state import Change, Listing, NoteAbsence, WriteGroup
from gapless.protocols.gapless.state import BrokerState

__all__ = [
    "LISTING", "call", "finish_changes", "lose_owner", "note_absence", "repeat_listings", "take_early", "take_page",
]  # fmt: skip

PENDING_MAX = 1_000
"""The maximum number of waiting calls of one client; further ones are ignored, and repeated with its next session."""
RECORDS_AT_ONCE = 200


# ---- calls ---------------------------------------------------------------------------------------------------


def call(s: BrokerState, session: Session, message: Any) -> None:
    """Process a client's call about durable subscriptions."""
    match message:
        case ClientGroupReport():
            relay_report(s, session, message)
        case ClientList():
            _list(s, session, message)
        case ClientAttach() if not s.final.timestamp:
            if len(s.durable.early) < PENDING_MAX:
                s.durable.early.append((session.client, message))
        case ClientAttach() | ClientAck() | ClientMove():
            if s.durable.pending.get(session.client, 0) < PENDING_MAX:
                s.durable.pending[session.client] = s.durable.pending.get(session.client, 0) + 1
                propose(s, Change(message, session.client, session.number))


def take_early(s: BrokerState) -> bool:
    """Process the calls that waited for the first final position, where new subscriptions begin."""
    if not s.final.timestamp:
        return False
    early, s.durable.early = s.durable.early, []
    for client, message in early:
        session = _session(s, client, message.session)
        if session is not None:
            call(s, session, message)
    return bool(early)


def _session(s: BrokerState, client: str, number: int) -> Session | None:
    session = s.sessions.get(client)
    if session is None or session.number != number or session.phase is not SessionPhase.OPEN:
        return None
    return session


def note_absence(s: BrokerState, client: str) -> None:
    """Record that no client is attached, after the client's session has expired."""
    for (other, name), (_, generation) in list(s.durable.attached.items()):
        if other == client:
            del s.durable.attached[other, name]
            propose(s, Change(NoteAbsence(name, generation, client), client))


# ---- what becomes of them ------------------------------------------------------------------------------------


def finish_changes(s: BrokerState) -> bool:
    """Notify the callers of changes that are done or refused."""
    finished = s.durable.finished
    is_busy = bool(finished)
    while finished:
        change = finished.popleft()
        if isinstance(change.command, WriteGroup):
            written_group(s, change)
        elif not isinstance(change.command, NoteAbsence):
            left = s.durable.pending.pop(change.client, 1) - 1
            if left:
                s.durable.pending[change.client] = left
            _finish(s, change)
    return is_busy


def _finish(s: BrokerState, change: Change) -> None:
    session = _session(s, change.client, change.session)
    match change.command:
        case ClientAttach() as command:
            _attached(s, session, command, change)
        case ClientAck() as command:
            _acknowledged(s, session, command, change)
        case ClientMove() as command:
            if session is not None:
                s.send_to(session.client, DurableMoved(session.number, command.request, change.refusal))
            if change.after is not None:
                _notify_lost(s, change, f"was {'ended' if change.after.is_over else 'moved'} by {change.client!r}")


def _attached(s: BrokerState, session: Session | None, command: ClientAttach, change: Change) -> None:
    record = change.after
    if record is None:
        if session is not None:
            s.send_to(session.client, DurableRefused(session.number, command.subscription, change.refusal))
        return
    is_new = change.before is None or change.before.generation != record.generation
    if is_new:
        _notify_lost(s, change, f"has a new owner: {change.client!r} has attached to it")
    group = s.durable.groups.get(command.name)
    is_ours = record.owner == (s.name, s.number) and (group is None or group.record.generation < record.generation)
    if record.is_shared and is_ours:
        found_group(s, record)
    if session is None:
        return
    if record.is_shared:
        begin_line(s, session, command, record)
    else:
        s.durable.attached[session.client, command.name] = command.subscription, record.generation
    s.send_to(session.client, DurableAttached(session.number, command.subscription, command.line, record))


def _notify_lost(s: BrokerState, change: Change, what: str) -> None:
    """Notify the broker of the last owner that it has lost the subscription."""
    before, after = change.before, change.after
    if before is None or after is None or before.owner is None:
        return
    message = OwnerLost(
        before.name, after.generation, before.client, f"the durable subscription {before.name!r} {what}"
    )
    if before.owner.broker == s.name:
        lose_owner(s, s.name, message)
    else:
        s.send(before.owner.broker, message)


def lose_owner(s: BrokerState, _peer: str, message: OwnerLost) -> None:
    """End the attachments to a durable subscription that has another owner, or none."""
    group = s.durable.groups.get(message.name)
    if group is not None and group.record.generation < message.generation:
        end_group(s, message.name)
    known = s.durable.attached.get((message.client, message.name))
    if known is not None and known[1] < message.generation:
        del s.durable.attached[message.client, message.name]
        session = s.sessions.get(message.client)
        if session is not None:
            s.send_to(session.client, DurableLost(session.number, known[0], message.reason))


def _acknowledged(s: BrokerState, session: Session | None, command: ClientAck, change: Change) -> None:
    key = (change.client, command.name)
    if change.refusal or command.is_leaving:
        s.durable.attached.pop(key, None)
    elif session is not None:
        s.durable.attached[key] = command.subscription, command.generation
    if session is None:
        return
    if change.refusal:
        s.send_to(session.client, DurableLost(session.number, command.subscription, change.refusal))
    else:
        s.send_to(session.client, AckResult(session.number, command.subscription, command.serial))


# ---- listings ------------------------------------------------------------------------------------------------


def _list(s: BrokerState, session: Session, message: ClientList) -> None:
    if sum(each.client == session.client for each in s.durable.listings.values()) >= PENDING_MAX:
        return
    number = s.durable.next_request
    s.durable.next_request += 1
    s.durable.listings[number] = Listing(session.client, session.number, message.request)
    _ask(s, number, register.replicas(s))


def _ask(s: BrokerState, number: int, names: Sequence[str]) -> None:
    for name in names:
        listing = s.durable.listings.get(number)
        if listing is None or name in listing.answered:
            continue
        question = ListRecords(number, listing.after.get(name, ""))
        if name != s.name:
            s.send(name, question)
            continue
        page = register.answer_list(s, question)
        if page is not None:
            take_page(s, s.name, page)


def take_page(s: BrokerState, peer: str, page: RecordPage) -> None:
    """Process some of a replica's records for a listing."""
    if not page.request:
        if register.take_recovery_page(s, peer, page):
            s.send(peer, ListRecords(0, s.durable.recovery.after.get(peer, "")))
        return
    listing = s.durable.listings.get(page.request)
    if listing is None or page.after != listing.after.get(peer, "") or peer in listing.answered:
        return
    for held in page.records:
        known = listing.found.get(held.name)
        if known is None or known.version < held.version:
            listing.found[held.name] = held
    if page.records:
        listing.after[peer] = page.records[-1].name
        _ask(s, page.request, [peer])
        return
    listing.answered.add(peer)
    if len(listing.answered) >= register.majority(s):
        del s.durable.listings[page.request]
        _send_listed(s, listing)


def _send_listed(s: BrokerState, listing: Listing) -> None:
    session = _session(s, listing.client, listing.session)
    if session is None:
        return
    held = [listing.found[name].record for name in sorted(listing.found)]
    records = [_shown(record) for record in held if record is not None and not record.is_over]
    newest = max(s.clock.now, s.clock.last)
    for first in range(0, len(records) or 1, RECORDS_AT_ONCE):
        part = records[first : first + RECORDS_AT_ONCE]
        is_last = first + RECORDS_AT_ONCE >= len(records)
        shown = DurableListed(session.number, listing.request, part, newest, is_last, s.final.newest)
        s.send_to(session.client, shown)


def _shown(record: DurableRecord) -> DurableRecord:
    """Return the record without fields that lists do not show."""
    return DurableRecord(
        record.name, record.filter, record.position, record.generation, latest=record.latest, client=record.client,
        owner=record.owner, after=record.after, is_shared=record.is_shared, user=record.user,
    )  # fmt: skip


def repeat_listings(s: BrokerState) -> None:
    """Repeat listing requests whose answers may have been lost."""
    for number, listing in list(s.durable.listings.items()):
        if _session(s, listing.client, listing.session) is None:
            del s.durable.listings[number]
        else:
            _ask(s, number, register.replicas(s))

"""Durable subscriptions of the clients attached to this broker: their calls, and the results.

A client attaches by changing the record. It then resumes an ordinary subscription that continues after the acknowledged
position by reading history (`local`), skips events that the record lists as acknowledged, and acknowledges by changing
the record under its generation. Moving to another broker needs nothing else: the client sends its acknowledgements
through the new one. If another client attaches, it gets a larger generation. The next acknowledgement of the first
client is then rejected, and its broker is notified at once if possible.
"""

from typing import Any

from gapless.protocols.gapless.client_state import Session, SessionPhase
from gapless.protocols.gapless.durable import client_messages as messages
from gapless.protocols.gapless.durable.groups import end_group, found_group, written_group
from gapless.protocols.gapless.durable.members import take_report
from gapless.protocols.gapless.durable.messages import OwnerLost
from gapless.protocols.gapless.durable.pages import begin_list
from gapless.protocols.gapless.durable.proposals import propose
from gapless.protocols.gapless.durable.relay import relay_report
from gapless.protocols.gapless.durable.state import Attached, Change, NoteAbsence, WriteGroup
from gapless.protocols.gapless.state import BrokerState

__all__ = ["finish_changes", "lose_owner", "note_absence", "receive_call", "take_waiting"]

PENDING_MAX = 1_000
"""The maximum number of unfinished calls of one client. Further calls are ignored; the client repeats them with its
next session."""


# ---- calls ---------------------------------------------------------------------------------------------------


def receive_call(s: BrokerState, client: str, message: Any) -> None:
    """Process a client's call if it belongs to the client's current session at this broker."""
    session = s.sessions.get(client)
    if session is None or session.phase is not SessionPhase.OPEN or session.number != message.session:
        return
    match message:
        case messages.ClientGroupReport():
            relay_report(s, session, message)
        case messages.ClientList():
            if sum(each.client == client for each in s.durable.lists.values()) < PENDING_MAX:
                begin_list(s, session, message)
        case messages.ClientAttach() if not s.final.timestamp:
            if len(s.durable.waiting) < PENDING_MAX:
                s.durable.waiting.append((client, message))
        case messages.ClientAttach() | messages.ClientAck() | messages.ClientMove():
            pending = s.durable.pending.get(client, 0)
            if pending < PENDING_MAX:
                s.durable.pending[client] = pending + 1
                propose(s, Change(message, client, session.number))


def take_waiting(s: BrokerState) -> None:
    """Process the calls that were waiting for the first final position."""
    waiting, s.durable.waiting = s.durable.waiting, []
    for client, message in waiting:
        receive_call(s, client, message)


def note_absence(s: BrokerState, client: str) -> None:
    """Record that no client is attached, because the client's session has expired."""
    for (other, name), attached in list(s.durable.attached.items()):
        if other == client:
            del s.durable.attached[other, name]
            if not attached.is_shared:
                propose(s, Change(NoteAbsence(name, attached.generation, client), client))


# ---- results -------------------------------------------------------------------------------------------------


def finish_changes(s: BrokerState) -> bool:
    """Notify the callers of changes that have succeeded or were rejected."""
    finished = s.durable.finished
    is_busy = bool(finished)
    while finished:
        change = finished.popleft()
        command = change.command
        if isinstance(command, WriteGroup):
            written_group(s, command, change.refusal)
        elif not isinstance(command, NoteAbsence):
            left = s.durable.pending.pop(change.client, 1) - 1
            if left:
                s.durable.pending[change.client] = left
            session = s.sessions.get(change.client)
            if session is not None and (session.number != change.session or session.phase is not SessionPhase.OPEN):
                session = None
            _finish(s, session, command, change)
        for peer, report in s.durable.early.pop(command.name, {}).values():
            take_report(s, peer, report)
    return is_busy


def _finish(
    s: BrokerState,
    session: Session | None,
    command: messages.ClientAttach | messages.ClientAck | messages.ClientMove,
    change: Change,
) -> None:
    match command:
        case messages.ClientMove():
            if session is not None:
                s.send_to(session.client, messages.DurableMoved(session.number, command.request, change.refusal))
            if change.after is not None:
                _notify_lost(s, change, f"was {'ended' if change.after.is_over else 'moved'} by {change.client!r}")
            return
        case messages.ClientAttach():
            _attached(s, session, command, change)
        case messages.ClientAck():
            if change.refusal or command.is_leaving:
                s.durable.attached.pop((change.client, command.name), None)
            elif session is not None:
                _note_attached(s, session, command, change)
            if session is not None and not change.refusal:
                s.send_to(session.client, messages.AckResult(session.number, command.subscription, command.serial))
    if session is not None and change.refusal:
        s.send_to(session.client, messages.DurableLost(session.number, command.subscription, change.refusal))


def _attached(s: BrokerState, session: Session | None, command: messages.ClientAttach, change: Change) -> None:
    record = change.after
    if record is None:
        return
    if change.before is None or change.before.generation != record.generation:
        _notify_lost(s, change, f"has a new owner: {change.client!r} has attached to it")
    group = s.durable.groups.get(command.name)
    is_newer = group is None or group.record.generation < record.generation
    if record.is_shared and record.owner == (s.name, s.number) and is_newer:
        found_group(s, record)
    if session is not None:
        _note_attached(s, session, command, change)
        s.send_to(session.client, messages.DurableAttached(session.number, command.subscription, command.line, record))


def _note_attached(
    s: BrokerState, session: Session, command: messages.ClientAttach | messages.ClientAck, change: Change
) -> None:
    record = change.after
    assert record is not None, "the change was made"
    assert record.owner is not None, "the client is attached"
    s.durable.attached[session.client, record.name] = Attached(
        session.number, command.subscription, record.line if isinstance(command, messages.ClientAck) else command.line,
        record.generation, record.owner, record.is_shared,
    )  # fmt: skip


def _notify_lost(s: BrokerState, change: Change, what: str) -> None:
    """Notify the broker of the previous owner that it has lost the subscription."""
    before, after = change.before, change.after
    if before is None or after is None or before.owner is None:
        return
    reason = f"the durable subscription {before.name!r} {what}"
    message = OwnerLost(before.name, after.generation, before.client, reason)
    if before.owner.broker == s.name:
        lose_owner(s, s.name, message)
    else:
        s.send(before.owner.broker, message)


def lose_owner(s: BrokerState, _peer: str, message: OwnerLost) -> None:
    """End attachments to a durable subscription that this broker no longer owns."""
    group = s.durable.groups.get(message.name)
    if group is not None and group.record.generation < message.generation:
        end_group(s, message.name)
    known = s.durable.attached.get((message.client, message.name))
    if known is not None and known.generation < message.generation:
        del s.durable.attached[message.client, message.name]
        session = s.sessions.get(message.client)
        if session is not None:
            s.send_to(session.client, messages.DurableLost(session.number, known.subscription, message.reason))

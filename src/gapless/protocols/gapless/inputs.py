"""Dispatches each message to its handler, or to the inbox during a handover."""

from collections.abc import Callable
from typing import Any

from gapless.errors import CallError
from gapless.protocol import Expel
from gapless.protocols.gapless import (
    calls,
    claims,
    fences,
    handover,
    history,
    journal,
    journal_messages,
    link_messages,
    membership,
    membership_messages,
    messages,
    positions,
    reading,
    recovery,
    routing,
    sealed_journals,
    sealing,
    sessions,
)
from gapless.protocols.gapless.client_messages import Attach, Retry
from gapless.protocols.gapless.durable import service as durable_service
from gapless.protocols.gapless.durable import steps as durable
from gapless.protocols.gapless.durable.client_messages import DURABLE_CALLS
from gapless.protocols.gapless.events import process
from gapless.protocols.gapless.identities import Status
from gapless.protocols.gapless.routing_state import Link
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.topology import FIRST

__all__ = ["AT_ONCE", "WORK_MAX", "receive", "receive_client", "take", "work_of"]

WORK_MAX = 2_000
"""The maximum work on the inbox in one step, which takes a few milliseconds. The rest of the inbox waits."""
FILTER_WORK = 50

ON_LINK: dict[type, Callable[[BrokerState, Link, Any], None]] = {
    link_messages.Publication: lambda s, link, message: process(s, message.events, link),
    link_messages.AddSubscription: routing.receive_subscription,
    link_messages.RemoveSubscription: routing.receive_subscription_end,
    link_messages.ActivateSubscription: routing.receive_activation,
    link_messages.CutAnswer: routing.receive_answer,
    link_messages.AddAdvertisement: routing.receive_advertisement,
    link_messages.RemoveAdvertisement: routing.receive_advertisement_end,
    link_messages.AdvertisementAck: routing.receive_advertisement_ack,
    link_messages.Void: routing.receive_void,
    link_messages.Wave: positions.receive_wave,
    link_messages.Echo: positions.receive_echo,
    link_messages.Final: positions.receive_final,
}


AT_ONCE: dict[type, Callable[[BrokerState, str, Any], None]] = {
    membership_messages.Members: lambda s, peer, message: membership.learn(s, message.statuses, peer),
    membership_messages.Accusation: membership.note_accusation,
    membership_messages.Join: recovery.receive_join,
    membership_messages.JoinReply: recovery.receive_join_reply,
    membership_messages.Prepare: sealing.receive_prepare,
    membership_messages.Promise: sealing.receive_promise,
    membership_messages.Refused: sealing.receive_refused,
    membership_messages.Accept: sealing.receive_accept,
    membership_messages.Accepted: sealing.receive_accepted,
    journal_messages.Hold: journal.receive_hold,
    journal_messages.Held: journal.receive_held,
    journal_messages.RequestJournal: sealed_journals.answer_journal,
    journal_messages.JournalReply: sealed_journals.receive_journal,
    membership_messages.Contribution: handover.receive_contribution,
    membership_messages.Completed: handover.receive_completed,
    messages.SessionClosed: lambda s, _peer, message: sessions.receive_session_closed(s, message),
    messages.LastNumber: fences.answer_last_number,
    messages.LastNumberReply: lambda s, _peer, message: fences.receive_last_number(s, message),
    messages.RequestWave: lambda s, _peer, message: positions.receive_request(s, message),
    journal_messages.ReadPage: history.answer_page,
    journal_messages.Page: reading.receive_page,
    journal_messages.RequestEntries: history.answer_entries,
    journal_messages.Entries: history.receive_entries,
    **durable.DURABLE_AT_ONCE,
}
"""Inputs that are processed even during a handover, because they change nothing that a contribution contains."""


def receive(s: BrokerState, peer: str, message: Any) -> None:
    """Process a message from another broker."""
    if isinstance(message, messages.Excluded):
        membership.learn(s, message.statuses)
        return
    status = s.statuses.get(peer, FIRST)
    if message.sender < status.number or message.sender < status.sealed_below:
        membership.notify_excluded(s, peer)
        return
    if message.sender > status.number:
        membership.learn(s, {peer: Status(message.sender, 0, 0)})
    channel = s.channel(peer)
    if isinstance(message, messages.Resume):
        channel.receive_resume(message)
    elif isinstance(message, messages.Ack):
        channel.receive_ack(message)
    else:
        assert isinstance(message, messages.Frame)
        body = channel.receive_frame(message)
        if body is None:
            return
        handler = AT_ONCE.get(type(body))
        if handler is not None:
            handler(s, peer, body)
        elif s.inbox or s.is_frozen:
            s.inbox.append((peer, body))
        else:
            take(s, peer, body)


def receive_client(s: BrokerState, client: str, message: Any) -> None:
    """Process a client's message, or put it into the inbox during a handover. Reject messages that no client
    may send."""
    has_to_wait = bool(s.inbox) or s.is_frozen
    try:
        claims.check_message(s, client, message)
        if has_to_wait:
            claims.check_room(s, client, message)
    except CallError as error:
        s.emit(Expel(client, str(error)))
        return
    if not has_to_wait:
        _take_from_client(s, client, message)
        return
    if s.is_frozen and isinstance(message, Attach):
        s.send_to(client, Retry(message.session, "it takes part in a handover"))
    if claims.note_arrival(s, client, message):
        s.inbox.append((client, message))


def work_of(message: Any) -> int:
    """Return the approximate work to process the message; one unit is the work for one event."""
    body = message.body if isinstance(message, link_messages.LinkMessage) else message
    if hasattr(body, "events"):
        return len(body.events)
    return FILTER_WORK if hasattr(body, "filter") else 5


def take(s: BrokerState, peer: str, message: Any) -> None:
    """Process a message that was in the inbox."""
    if isinstance(message, link_messages.LinkMessage):
        link = s.links.get((peer, message.tag))
        if link is not None:
            ON_LINK[type(message.body)](s, link, message.body)
        elif (peer, message.tag) not in s.removed_links:
            s.early.setdefault((peer, message.tag), []).append(message.body)
    elif isinstance(message, messages.CloseSession):
        sessions.close_session(s, peer, message.client, message.session)
    else:
        _take_from_client(s, peer, claims.note_taken(s, peer, message))


def _take_from_client(s: BrokerState, client: str, message: Any) -> None:
    if isinstance(message, Attach):
        fences.attach(s, client, message)
    elif isinstance(message, DURABLE_CALLS):
        durable_service.receive_call(s, client, message)
        s.due |= Due.REQUESTS
    else:
        calls.receive(s, client, message)

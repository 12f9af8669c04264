"""The way of each message to its handler, or to the inbox during a handover."""

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
    membership,
    positions,
    reading,
    recovery,
    routing,
    sealed_journals,
    sealing,
    sessions,
)
from gapless.protocols.gapless.client_messages import Attach, Retry
from gapless.protocols.gapless.durable import steps as durable
from gapless.protocols.gapless.durable.client_messages import DURABLE_CALLS
from gapless.protocols.gapless.events import process
from gapless.protocols.gapless.identities import Status
from gapless.protocols.gapless.journal_messages import (
    Entries,
    Held,
    Hold,
    JournalReply,
    Page,
    ReadPage,
    RequestEntries,
    RequestJournal,
)
from gapless.protocols.gapless.link_messages import (
    ActivateSubscription,
    AddAdvertisement,
    AddSubscription,
    AdvertisementAck,
    CutAnswer,
    Echo,
    Final,
    LinkMessage,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    Void,
    Wave,
)
from gapless.protocols.gapless.membership_messages import (
    Accept,
    Accepted,
    Accusation,
    Completed,
    Contribution,
    Join,
    JoinReply,
    Members,
    Prepare,
    Promise,
    Refused,
)
from gapless.protocols.gapless.messages import (
    Ack,
    CloseSession,
    Excluded,
    Frame,
    LastNumber,
    LastNumberReply,
    RequestWave,
    Resume,
    SessionClosed,
)
from gapless.protocols.gapless.routing_state import Link
from gapless.protocols.gapless.state import BrokerState

__all__ = ["AT_ONCE", "hear_client", "receive", "take"]

ON_LINK: dict[type, Callable[[BrokerState, Link, Any], None]] = {
    Publication: lambda s, link, message: process(s, message.events, link),
    AddSubscription: routing.receive_subscription,
    RemoveSubscription: routing.receive_subscription_end,
    ActivateSubscription: routing.receive_activation,
    CutAnswer: routing.receive_answer,
    AddAdvertisement: routing.receive_advertisement,
    RemoveAdvertisement: routing.receive_advertisement_end,
    AdvertisementAck: routing.receive_advertisement_ack,
    Void: routing.receive_void,
    Wave: positions.receive_wave,
    Echo: positions.receive_echo,
    Final: positions.receive_final,
}


AT_ONCE: dict[type, Callable[[BrokerState, str, Any], None]] = {
    Members: lambda s, peer, message: membership.learn(s, message.statuses, peer),
    Accusation: membership.note_accusation,
    Join: recovery.receive_join,
    JoinReply: recovery.receive_join_reply,
    Prepare: sealing.receive_prepare,
    Promise: sealing.receive_promise,
    Refused: sealing.receive_refused,
    Accept: sealing.receive_accept,
    Accepted: sealing.receive_accepted,
    Hold: journal.receive_hold,
    Held: journal.receive_held,
    RequestJournal: sealed_journals.answer_journal,
    JournalReply: sealed_journals.receive_journal,
    Contribution: handover.receive_contribution,
    Completed: handover.receive_completed,
    SessionClosed: lambda s, _peer, message: sessions.receive_session_closed(s, message),
    LastNumber: fences.answer_last_number,
    LastNumberReply: lambda s, _peer, message: fences.receive_last_number(s, message),
    RequestWave: lambda s, _peer, message: positions.receive_request(s, message),
    ReadPage: history.answer_page,
    Page: reading.receive_page,
    RequestEntries: history.answer_entries,
    Entries: history.receive_entries,
    **durable.DURABLE_AT_ONCE,
}
"""Inputs that are processed during a handover, too: they change nothing that a contribution contains."""


def receive(s: BrokerState, peer: str, message: Any) -> None:
    """A message of a broker."""
    if isinstance(message, Excluded):
        membership.learn(s, message.statuses)
        return
    status = s.status(peer)
    if message.sender < max(status.number, status.sealed_below):
        membership.tell_excluded(s, peer)
        return
    if message.sender > status.number:
        membership.learn(s, {peer: Status(message.sender, 0, 0)})
    channel = s.channel(peer)
    if isinstance(message, Resume):
        channel.receive_resume(message)
    elif isinstance(message, Ack):
        channel.receive_ack(message)
    else:
        assert isinstance(message, Frame)
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


def hear_client(s: BrokerState, client: str, message: Any) -> None:
    """A client says something: it waits for its turn, unless no client may say it."""
    try:
        claims.check_message(s, client, message)
    except CallError as error:
        s.emit(Expel(client, str(error)))
        return
    if s.is_frozen and isinstance(message, Attach):
        s.tell(client, Retry(message.session, "it takes part in a handover"))
    if not s.inbox and not s.is_frozen:
        _take_from_client(s, client, message)
    elif claims.note_arrival(s, client, message):
        s.inbox.append((client, message))


def take(s: BrokerState, peer: str, message: Any) -> None:
    """Take what had to wait for the end of a handover."""
    if isinstance(message, LinkMessage):
        link = s.links.get((peer, message.tag))
        if link is not None:
            ON_LINK[type(message.body)](s, link, message.body)
        elif (peer, message.tag) not in s.removed_links:
            s.early.setdefault((peer, message.tag), []).append(message.body)
    elif isinstance(message, CloseSession):
        sessions.close_session(s, peer, message.client, message.session)
    else:
        _take_from_client(s, peer, claims.note_taken(s, peer, message))


def _take_from_client(s: BrokerState, client: str, message: Any) -> None:
    if isinstance(message, Attach):
        fences.attach(s, client, message)
    elif isinstance(message, DURABLE_CALLS):
        durable.receive_call(s, client, message)
    else:
        calls.receive(s, client, message)

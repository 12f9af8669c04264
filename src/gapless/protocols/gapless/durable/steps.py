"""Connects durable subscriptions with the steps of a broker: messages, ticks, and the work after a step."""

from collections.abc import Callable
from typing import Any

from gapless.protocols.gapless.client_state import SessionPhase
from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.durable import groups, members, proposals, register, relay, service
from gapless.protocols.gapless.durable.messages import (
    AcceptRecord,
    GroupDealt,
    GroupReport,
    ListRecords,
    OwnerLost,
    PrepareRecord,
    RecordPage,
    Vote,
)
from gapless.protocols.gapless.state import BrokerState

__all__ = ["DURABLE_AT_ONCE", "receive_call", "settle", "start", "tick"]


def _prepare(s: BrokerState, peer: str, message: PrepareRecord) -> None:
    _answer(s, peer, register.receive_prepare(s, message))


def _accept(s: BrokerState, peer: str, message: AcceptRecord) -> None:
    _answer(s, peer, register.receive_accept(s, message))


def _list(s: BrokerState, peer: str, message: ListRecords) -> None:
    _answer(s, peer, register.answer_list(s, message))


def _answer(s: BrokerState, peer: str, answer: Vote | RecordPage | None) -> None:
    if answer is not None:
        say(s, peer, answer)


DURABLE_AT_ONCE: dict[type, Callable[[BrokerState, str, Any], None]] = {
    PrepareRecord: _prepare,
    AcceptRecord: _accept,
    Vote: proposals.receive_vote,
    ListRecords: _list,
    RecordPage: service.take_page,
    OwnerLost: service.lose_owner,
    GroupReport: relay.receive_report,
    GroupDealt: relay.receive_dealt,
}
"""Messages that are processed during a handover, too, because they change nothing that a handover contributes."""


def start(s: BrokerState) -> None:
    """Request the records of a replica that may have lost its memory."""
    for peer, question in register.recover(s):
        s.send(peer, question)


def receive_call(s: BrokerState, client: str, message: Any) -> None:
    """Process a client's call, if it belongs to its session here."""
    session = s.sessions.get(client)
    if session is not None and session.phase is SessionPhase.OPEN and session.number == message.session:
        service.call(s, session, message)


def settle(s: BrokerState) -> bool:
    """Do the work after a step. Not called during a handover."""
    d = s.durable
    is_busy = bool(d.finished) and service.finish_changes(s)
    if d.early:
        is_busy |= service.take_early(s)
    if d.groups or d.reports:
        is_busy |= groups.advance_groups(s)
    if d.dealt:
        is_busy |= relay.deliver_dealt(s)
    return is_busy


def tick(s: BrokerState) -> None:
    """Do periodic work."""
    start(s)
    proposals.tick(s)
    service.repeat_listings(s)
    members.tick_groups(s)

"""Connects durable subscriptions to a broker's steps: its messages, its ticks, and the work at the end of each step."""

from collections.abc import Callable
from typing import Any

from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.durable import groups, members, pages, proposals, register, relay, service
from gapless.protocols.gapless.durable import messages as durable
from gapless.protocols.gapless.state import BrokerState

__all__ = ["DURABLE_AT_ONCE", "has_requests", "is_due", "settle", "tick"]


def _answer(handler: Callable[[BrokerState, Any], Any]) -> Callable[[BrokerState, str, Any], None]:
    """Return a handler that calls `handler` and sends the result, if any, to the peer."""

    def answer(s: BrokerState, peer: str, message: Any) -> None:
        found = handler(s, message)
        if found is not None:
            say(s, peer, found)

    return answer


DURABLE_AT_ONCE: dict[type, Callable[[BrokerState, str, Any], None]] = {
    durable.PrepareRecord: _answer(register.receive_prepare),
    durable.AcceptRecord: _answer(register.receive_accept),
    durable.Vote: proposals.receive_vote,
    durable.ListRecords: _answer(pages.answer_list),
    durable.RecordPage: pages.take_page,
    durable.OwnerLost: service.lose_owner,
    durable.GroupReport: members.take_report,
    durable.GroupDealt: members.receive_dealt,
}
"""Messages that are processed even during a handover, because they change nothing that a contribution contains."""


def is_due(s: BrokerState) -> bool:
    """Return whether `settle` has work to do."""
    d, final = s.durable, s.final.timestamp
    return bool(d.finished or d.due_groups or d.dealt_at <= final or (final and d.waiting))


def settle(s: BrokerState) -> bool:
    """Do the work at the end of a step, except during a handover."""
    d = s.durable
    is_busy = bool(d.finished) and service.finish_changes(s)
    if d.waiting and s.final.timestamp:
        service.take_waiting(s)
        is_busy = True
    if d.due_groups:
        is_busy |= groups.advance_groups(s)
    if d.dealt_at <= s.final.timestamp:
        is_busy |= relay.deliver_dealt(s)
    return is_busy


def has_requests(s: BrokerState) -> bool:
    """Return whether `tick` has work to do."""
    d = s.durable
    return bool(d.proposals or d.lists or d.groups or d.early or (not d.has_recovered and register.is_replica(s)))


def tick(s: BrokerState) -> None:
    pages.tick(s)
    proposals.tick(s)
    members.tick_groups(s)

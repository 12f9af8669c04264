"""Forwards messages between the members attached to this broker and their coordinators.

A member could publish an effect of an event that has not passed through its own broker, and the effect could overtake
its cause. So an event from another broker waits here until a final position includes its timestamp: by then the event
has been sent on every link from here to all its destinations.

Only messages of a client that attached in this session are accepted, because attaching requires a permission; and a
client can report only for itself.
"""

from math import inf

from gapless.event_runs import EventRun
from gapless.protocols.gapless.client_state import Session
from gapless.protocols.gapless.durable.client_messages import ClientGroupReport, DealtNote
from gapless.protocols.gapless.durable.members import take_report
from gapless.protocols.gapless.durable.messages import Deal, GroupDealt, GroupReport
from gapless.protocols.gapless.journal_state import cost_of
from gapless.protocols.gapless.outbox import note
from gapless.protocols.gapless.state import BrokerState

__all__ = ["deliver_dealt", "relay_report"]


def relay_report(s: BrokerState, session: Session, message: ClientGroupReport) -> None:
    known = s.durable.attached.get((session.client, message.name))
    if known is None or not known.is_shared:
        return
    if known[:3] != (session.number, message.subscription, message.report.line):
        return  # from an earlier line
    owner, report = known.owner, GroupReport(message.name, known.generation, session.client, message.report)
    if not s.is_live(owner.broker) or s.current(owner.broker).number != owner.number:
        del s.durable.attached[session.client, message.name]
        note(s, session, DealtNote, known.subscription, Deal(known.line, 0, is_over=True))
    elif owner.broker == s.name:
        take_report(s, s.name, report)
    else:
        s.send(owner.broker, report)


def deliver_dealt(s: BrokerState) -> bool:
    """Forward the coordinators' messages that are no longer delayed, in order for each client. Return whether there
    were any."""
    d, is_busy = s.durable, False
    d.dealt_at = inf
    for client, waiting in list(d.dealt.items()):
        while waiting and waiting[0][0] <= s.final.timestamp:
            _pass_on(s, waiting.popleft()[1])
            is_busy = True
        if waiting:
            d.dealt_at = min(d.dealt_at, waiting[0][0])
        else:
            del d.dealt[client]
    return is_busy


def _pass_on(s: BrokerState, message: GroupDealt) -> None:
    session = s.sessions.get(message.client)
    known = s.durable.attached.get((message.client, message.name))
    if session is None or known is None or known.session != session.number or known.line != message.deal.line:
        return
    cost = sum(cost_of(EventRun.of([item.event])) for item in message.deal.items)
    note(s, session, DealtNote, known.subscription, message.deal, cost=cost)

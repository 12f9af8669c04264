"""The broker of a member forwards messages between the member and its coordinator.

A member could publish an effect of an event that has not arrived through its broker, and the effect would reach others
before its cause. So an event from another broker waits here until a final position includes its timestamp: then it has
been sent on every link from here to all its destinations.

Only messages of a client that attached in this session are accepted, because that needs a right; and a client can
report only for itself.
"""

from gapless.event_runs import EventRun
from gapless.protocols.gapless.client_state import Session
from gapless.protocols.gapless.durable.client_messages import ClientAttach, ClientGroupReport, DealtNote, GroupOver
from gapless.protocols.gapless.durable.messages import DurableRecord, GroupDealt, GroupReport
from gapless.protocols.gapless.journal_state import cost_of
from gapless.protocols.gapless.outbox import note
from gapless.protocols.gapless.state import BrokerState

__all__ = ["begin_line", "deliver_dealt", "receive_dealt", "receive_report", "relay_report"]


def begin_line(s: BrokerState, session: Session, command: ClientAttach, record: DurableRecord) -> None:
    """Note that a client of this broker is a member now."""
    assert record.owner is not None, "a client is attached to a coordinator"
    key = session.client, command.name
    s.durable.lines[key] = session.number, command.subscription, command.line, record.owner, record.generation


def relay_report(s: BrokerState, session: Session, message: ClientGroupReport) -> None:
    """Forward a member's report to its coordinator."""
    key = session.client, message.name
    number, subscription, line, owner, generation = s.durable.lines.get(key, (0, "", "", None, 0))
    if (number, subscription, line) != (session.number, message.subscription, message.report.line):
        return  # of an earlier line, or it never attached
    assert owner is not None
    report = GroupReport(message.name, generation, session.client, message.report)
    if not s.is_live(owner.broker) or s.current(owner.broker).number != owner.number:
        del s.durable.lines[key]
        s.send_to(session.client, GroupOver(session.number, subscription, line))
    elif owner.broker == s.name:
        receive_report(s, s.name, report)
    else:
        s.send(owner.broker, report)


def receive_report(s: BrokerState, peer: str, message: GroupReport) -> None:
    """Pass a member's report to this coordinator."""
    s.durable.reports.append((peer, message))


def receive_dealt(s: BrokerState, peer: str, message: GroupDealt) -> None:
    """Process a coordinator's message for a member here."""
    is_local = peer == s.name
    latest = 0 if is_local else max((item.event.stamp for item in message.deal.items), default=0)
    s.durable.dealt.append((latest, message))


def deliver_dealt(s: BrokerState) -> bool:
    """Forward the coordinators' messages that need not wait any longer, in their order for each client."""
    waiting: dict[str, None] = {}
    count = len(s.durable.dealt)
    for _ in range(count):
        latest, message = s.durable.dealt.popleft()
        if latest > s.final.timestamp or message.client in waiting:
            waiting[message.client] = None
            s.durable.dealt.append((latest, message))
        else:
            _pass_on(s, message)
    return len(s.durable.dealt) < count


def _pass_on(s: BrokerState, message: GroupDealt) -> None:
    session = s.sessions.get(message.client)
    known = s.durable.lines.get((message.client, message.name))
    if session is None or known is None or known[0] != session.number or known[2] != message.deal.line:
        return
    cost = sum(cost_of(EventRun.of([item.event])) for item in message.deal.items)
    note(s, session, DealtNote, known[1], message.deal, cost=cost)

"""The deliveries of a session. They are numbered, kept until the application has taken them, and sent within a window.

At most `delivery_window` events are in flight or at the client at a time; further ones wait here. After a connection
breaks, a client that returns to the same incarnation gets the missing ones again. If more than `lag_window` events
wait, the client **lags**: unsent live events are dropped, and are later read from history (`local`).
"""

from collections import deque
from typing import Any

from gapless.event_runs import EventRun
from gapless.protocols.gapless.client_messages import Delivery, Position
from gapless.protocols.gapless.client_state import Outgoing, Session
from gapless.protocols.gapless.durable.state import GROUP_CLIENT
from gapless.protocols.gapless.journal_state import cost_of
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = ["acknowledge", "deliver", "drop_live", "has_room", "note", "note_position", "repeat"]


def deliver(
    s: BrokerState, session: Session, events: EventRun, subscriptions: list[str], cost: int, *, is_live: bool
) -> None:
    """Queue events for some of the client's subscriptions, and send as much as the window allows."""
    s.measures.due(session, len(events), s.clock.now)
    _put(s, session, Delivery, (events, subscriptions), cost, is_live)
    if session.waiting > s.options.lag_window:
        s.lagging[session.client] = None
        s.due |= Due.LAGGING


def note(s: BrokerState, session: Session, kind: type[Any], *fields: Any, cost: int = 0) -> int:
    """Queue a note, which keeps its order among the deliveries. Return its place."""
    return _put(s, session, kind, fields, cost, is_live=False)


def note_position(s: BrokerState, session: Session, timestamp: int) -> None:
    """Queue a note that everything up to a position has been queued for all live subscriptions. Consecutive unsent
    notes are merged."""
    if session.unsent and session.unsent[-1].kind is Position:
        session.unsent.pop()
    _put(s, session, Position, (timestamp,), 0, is_live=True)


def has_room(s: BrokerState, session: Session) -> bool:
    """Return whether a delivery queued now would be sent at once. This keeps reads of history from outrunning the
    client."""
    return session.is_connected and session.in_flight + session.waiting < s.options.delivery_window


def _put(
    s: BrokerState, session: Session, kind: type[Any], fields: tuple[Any, ...], cost: int, is_live: bool
) -> int:  # fmt: skip
    place = session.next_place
    session.next_place += 1
    item = Outgoing(place, kind, fields, cost, is_live)
    if not session.unsent and session.is_connected and session.in_flight + cost <= s.options.delivery_window:
        _send(s, session, item)
    else:
        session.unsent.append(item)
        session.waiting += cost
        _send_more(s, session)
    return place


def _is_open(s: BrokerState, session: Session) -> bool:
    return session.is_connected and session.in_flight < s.options.delivery_window


def _send(s: BrokerState, session: Session, item: Outgoing) -> None:
    message = item.kind(session.number, session.next_number, *item.fields)
    session.next_number += 1
    if session.timed_delivery is not None:
        s.measures.sent(session, item.place, message.number)
    session.sent.append((message, item.cost))
    session.in_flight += item.cost
    if item.kind is Position:
        session.position_sent = item.place, item.fields[0]
    if session.client.startswith(GROUP_CLIENT):  # the coordinator removes it from `sent`
        s.durable.due_groups[session.client.removeprefix(GROUP_CLIENT)] = None
    else:
        s.send_to(session.client, message)


def _send_more(s: BrokerState, session: Session) -> None:
    while session.unsent and _is_open(s, session):
        item = session.unsent.popleft()
        session.waiting -= item.cost
        room = s.options.delivery_window - session.in_flight
        if item.cost > room and item.kind is Delivery and len(item.fields[0]) > 1:
            item, rest = _divided(item, room)
            session.unsent.appendleft(rest)
            session.waiting += rest.cost
        _send(s, session, item)
    if session.readings:
        s.due_readings |= dict.fromkeys(session.readings)
        s.due |= Due.READINGS


def _divided(item: Outgoing, room: int) -> tuple[Outgoing, Outgoing]:
    """Split a delivery into the first events, about as many as there is room for, and the remaining ones."""
    events, subscriptions = item.fields
    count = max(1, len(events) * room // item.cost)
    parts = (events.part(0, count), subscriptions), (events.part(count, len(events)), subscriptions)
    first, rest = (item._replace(fields=fields, cost=cost_of(fields[0])) for fields in parts)
    return first, rest


def acknowledge(s: BrokerState, session: Session, number: int) -> None:
    """Record that the application has taken all deliveries up to this number."""
    if session.timed_delivery is not None:
        s.measures.taken(session, number, s.clock.now)
    while session.sent and session.sent[0][0].number <= number:
        session.in_flight -= session.sent.popleft()[1]
    _send_more(s, session)


def drop_live(session: Session) -> None:
    """Drop the session's unsent live events."""
    session.unsent = deque(item for item in session.unsent if not item.is_live)
    session.waiting = sum(item.cost for item in session.unsent)


def repeat(s: BrokerState, session: Session, received: int) -> None:
    """Resend the deliveries that a client has not received, after it has returned to its session."""
    acknowledge(s, session, received)
    again = [(_renumbered(message, session.number), cost) for message, cost in session.sent]
    session.sent = deque(again)
    for message, _ in session.sent:
        s.send_to(session.client, message)
    _send_more(s, session)


def _renumbered(message: Any, number: int) -> Any:
    return message.__class__(number, *(getattr(message, name) for name in message.__struct_fields__[1:]))

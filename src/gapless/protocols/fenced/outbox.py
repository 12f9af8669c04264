"""What a session sends to its client: numbered, kept until the application has taken it, and at a bounded pace.

At most `delivery_window` events are on their way or with the client at a time; what follows waits here. After a
connection breaks, a client that comes back to the same incarnation gets what it lacks again.
"""

from collections.abc import Callable
from typing import Any

from gapless.events import Events
from gapless.protocols.fenced.client_messages import Delivery
from gapless.protocols.fenced.state import BrokerState, Session

__all__ = ["acknowledge", "deliver", "note", "repeat"]


def deliver(s: BrokerState, session: Session, events: Events, subscriptions: list[str]) -> None:
    """Send events for some of the client's subscriptions."""
    _put(s, session, lambda number: Delivery(session.number, number, events, subscriptions), len(events))


def note(s: BrokerState, session: Session, make: Callable[[int], Any]) -> None:
    """Send something else in its place among the deliveries."""
    _put(s, session, make, 0)


def _put(s: BrokerState, session: Session, make: Callable[[int], Any], size: int) -> None:
    session.unsent.append((make(session.next_number), size))
    session.next_number += 1
    _send_more(s, session)


def _send_more(s: BrokerState, session: Session) -> None:
    while session.unsent and session.is_connected and session.in_flight < s.options.delivery_window:
        message, size = session.unsent.popleft()
        session.sent.append((message, size))
        session.in_flight += size
        s.tell(session.client, message)


def acknowledge(s: BrokerState, session: Session, number: int) -> None:
    """The application has taken everything up to this number."""
    while session.sent and session.sent[0][0].number <= number:
        session.in_flight -= session.sent.popleft()[1]
    _send_more(s, session)


def repeat(s: BrokerState, session: Session, received: int) -> None:
    """The client came back to its session: send again what has not arrived."""
    acknowledge(s, session, received)
    again = [(_renumbered(message, session.number), size) for message, size in session.sent]
    session.sent.clear()
    session.sent.extend(again)
    unsent = [(_renumbered(message, session.number), size) for message, size in session.unsent]
    session.unsent.clear()
    session.unsent.extend(unsent)
    for message, _ in session.sent:
        s.tell(session.client, message)
    _send_more(s, session)


def _renumbered(message: Any, number: int) -> Any:
    return message.__class__(number, *(getattr(message, name) for name in message.__struct_fields__[1:]))

"""Check everything in a client's message before the message has any effect.

A broker trusts brokers, but a client can be any program. The decoder checks the types of its messages; this module
checks what types cannot express. An invalid message raises a `CallError`, and its client is disconnected with that
text. `check_message` needs only the message, and runs on arrival; `check_call` compares it with the session, and runs
when it is processed, which may be after a handover.

- *Numbers* are counts, so none is negative or beyond `NUMBER_MAX`: their sums and differences fit into 64 bits.
- *Timestamps* from a client are compared with those of brokers, and never advance a broker's clock.
- *Incarnations* name a broker of this network. A client cannot name an incarnation of this broker that has not begun.
- *Publications* are the client's own, with consecutive numbers.
- *Texts* and *effort*: the names and filters of one client are bounded in total, and so are the steps to analyse
  them, because a client that moves sends them all at once.
- *Waiting calls* (`Weight`), for a handover, an advertisement or the window, are bounded by what a regular client
  keeps.
"""

from typing import Any

from gapless.errors import CallError
from gapless.event_runs import EventRun
from gapless.filters import Filter, FilterError, parse
from gapless.positions import TIMESTAMP_MAX
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientGot,
    ClientLost,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWish,
)
from gapless.protocols.gapless.client_state import LocalState, Session
from gapless.protocols.gapless.durable.claims import check_durable_call
from gapless.protocols.gapless.durable.client_messages import DURABLE_CALLS
from gapless.protocols.gapless.identities import TIMES_MAX
from gapless.protocols.gapless.numbers import NUMBER_MAX, check_name, check_numbers
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.parts.bounds import READINGS_MAX, TEXT_MAX, check_readings

__all__ = [
    "EFFORT_MAX",
    "add_filter_cost",
    "check_call",
    "check_message",
    "check_room",
    "note_arrival",
    "note_taken",
    "subtract_filter_cost",
]

EFFORT_MAX = 300_000
"""The maximum number of steps to analyse all filters of one client, which take about 0.2 s. A typical filter needs a
few dozen."""
TICKET_MAX = 1 << 18
"""The maximum size in bytes of a ticket, which contains a filter and a few certificates."""
TEXTS_AT_ONCE = 50
"""The number of characters of names and filters that count as much as one event."""


def check_message(s: BrokerState, client: str, message: Any) -> None:
    """Reject a message that no regular client sends, whatever the state of its session."""
    if message.session < 1:
        raise CallError(f"{client!r} names session {message.session}, but sessions are numbered from 1")
    if message.session > NUMBER_MAX:
        check_numbers(client, message.session)
    match message:
        case ClientPublish():
            _check_events(client, message.events)
            _check_queue(s, client, message.events)
        case ClientGot():
            check_numbers(client, message.number)
        case Attach():
            _check_attach(s, client, message)
        case ClientSubscribe():
            check_name(client, message.subscription)
            _check_positions(client, message)
            _parse(client, message.filter)
        case ClientAdvertise():
            check_name(client, message.advertisement)
            _parse(client, message.filter)
        case ClientUnadvertise():
            check_name(client, message.advertisement)
        case ClientUnsubscribe():
            check_name(client, message.subscription)
        case ClientWish() if message.broker not in s.topology.overlay:
            raise CallError(f"{client!r} prefers broker {message.broker[:100]!r}, which is not in this network")
        case ClientLost():
            if len(message.times) > TIMES_MAX:
                raise CallError(
                    f"{client!r} reports {len(message.times)} times of lost events; the limit is {TIMES_MAX}"
                )
            times = (number for each in message.times for number in each)
            check_numbers(client, message.first, message.last, message.settled, *times)
            _parse(client, message.filter)
        case _ if isinstance(message, DURABLE_CALLS):
            check_durable_call(client, message)


def _check_attach(s: BrokerState, client: str, message: Attach) -> None:
    check_numbers(
        client, message.resumes, message.received, message.largest, message.published, message.confirmed,
        message.base, message.settled,
    )  # fmt: skip
    if message.resumes >= message.session:
        raise CallError(
            f"{client!r} opens session {message.session}, which is earlier than the session that it resumes, "
            f"{message.resumes}"
        )
    if message.confirmed > message.published:
        raise CallError(f"{client!r} published {message.published} events, of which {message.confirmed} are confirmed")
    if message.incarnation is None:
        return
    broker, number = message.incarnation
    check_numbers(client, number)
    if broker not in s.topology.overlay or (broker == s.name and number > s.number):
        raise CallError(
            f"{client!r} comes from {broker[:100]!r}, incarnation {number}, which never was in this network"
        )


def _check_positions(client: str, message: ClientSubscribe) -> None:
    if not -1 <= message.since <= TIMESTAMP_MAX or not 0 <= message.until <= TIMESTAMP_MAX:
        raise CallError(f"{client!r} reads from {message.since} to {message.until}: positions go to {TIMESTAMP_MAX}")
    if message.is_resumed and message.since < 0:
        raise CallError(f"{client!r} resumes {message.subscription!r} without a position")
    if message.survey is not None and (message.survey.events < 1 or message.survey.size < 0 or not message.until):
        raise CallError(f"{client!r} surveys up to {message.until}, {message.survey}: it needs an end and a volume")
    if len(message.ticket) > TICKET_MAX:
        raise CallError(f"{client!r} shows a ticket of {len(message.ticket):,} bytes; {TICKET_MAX:,} is the limit")


def _parse(client: str, text: str) -> Filter:
    try:
        return parse(text)
    except FilterError as error:
        raise CallError(f"{client!r} sent a filter that cannot be parsed: {error}") from None


def _check_events(client: str, events: EventRun) -> None:
    """Check that the events belong to the client and have consecutive numbers."""
    table = events.table
    check_numbers(client, events.first, events.last)
    if events.publisher != client:
        raise CallError(f"{client!r} cannot publish in the name of {events.publisher[:100]!r}")
    if events.numbers:
        raise CallError(f"{client!r} publishes {len(events)} events whose numbers are not consecutive")
    if events.first < 1:
        raise CallError(f"{client!r} publishes number {events.first}, but numbers begin with 1")
    if "" in table.shared or "" in table.columns:
        raise CallError(f"{client!r} publishes an attribute without a name; give it one")


# ---- checks against the session ------------------------------------------------------------------------------


def check_call(s: BrokerState, session: Session, message: Any) -> None:
    """Reject a call that contradicts the state of the session, or exceeds the limits of one client."""
    client = session.client
    match message:
        case ClientPublish():
            first = message.events.first
            if first > session.last_queued + 1:
                raise CallError(f"{client!r} publishes number {first}, but number {session.last_queued + 1} is next")
        case ClientLost() if not 0 < message.first <= message.last <= session.admitted:
            raise CallError(f"{client!r} has lost numbers {message.first} to {message.last}, which it never published")
        case ClientGot() if message.number >= session.next_number:
            raise CallError(
                f"{client!r} acknowledges delivery {message.number}, but was sent only {session.next_number - 1}"
            )
        case ClientSubscribe():
            if message.since >= 0 and not message.is_resumed:
                check_readings(client, 1 + _count_readings(session))
            _check_filter_cost(session, message.subscription, message.filter)
        case ClientAdvertise():
            _check_filter_cost(session, message.advertisement, message.filter)


def _count_readings(session: Session) -> int:
    """Return how many of the session's subscriptions read history from a position that the client chose."""
    count = 0
    for local in session.locals.values():
        if local.state is not LocalState.LIVE and local.since >= 0 and not local.is_resumed:
            count += 1
            if count > READINGS_MAX:
                break
    return count


def _check_filter_cost(session: Session, name: str, text: str) -> None:
    known = session.held.get(name)
    size = session.text_size + len(name) + len(text) - (len(name) + len(known.text) if known else 0)
    if size > TEXT_MAX:
        raise CallError(
            f"the subscriptions and advertisements of {session.client!r} have {size:,} characters, but {TEXT_MAX:,} is "
            "the limit; end some of them, or use a further client"
        )
    if session.effort + parse(text).effort - (known.effort if known else 0) > EFFORT_MAX:
        raise CallError(
            f"the filters of {session.client!r} take more than {EFFORT_MAX:,} steps to be parsed; simplify them, "
            "or use a further client"
        )


def add_filter_cost(session: Session, name: str, pattern: Filter) -> None:
    """Add a filter to the texts and the effort of the session's client."""
    subtract_filter_cost(session, name)
    session.held[name] = pattern
    session.text_size += len(name) + len(pattern.text)
    session.effort += pattern.effort


def subtract_filter_cost(session: Session, name: str) -> None:
    """Subtract a filter that the session no longer has."""
    pattern = session.held.pop(name, None)
    if pattern is not None:
        session.text_size -= len(name) + len(pattern.text)
        session.effort -= pattern.effort


# ---- deferred messages ---------------------------------------------------------------------------------------


def _weight(message: Any) -> int:
    """Return the weight of a message: the number of its events, or otherwise 1 plus the weight of its text."""
    match message:
        case ClientPublish():
            return len(message.events)
        case ClientSubscribe() | ClientAdvertise() | ClientLost():
            return 1 + len(message.filter) // TEXTS_AT_ONCE
    return 1


def _weight_max(s: BrokerState) -> int:
    """Return the maximum weight of a client's deferred messages: twice that of a regular client, which repeats all
    unanswered calls when it reconnects."""
    return 2 * (s.options.client_window + s.options.delivery_window + TEXT_MAX // TEXTS_AT_ONCE)


def _check_queue(s: BrokerState, client: str, events: EventRun) -> None:
    session = s.sessions.get(client)
    queued = len(events) + (session.queued_events if session is not None else 0)
    if queued > 2 * s.options.client_window:
        raise CallError(
            f"{client!r} has more than {2 * s.options.client_window:,} waiting publications; advertise the "
            "events, and wait until they are confirmed"
        )


def check_room(s: BrokerState, client: str, message: Any) -> None:
    """Reject a message that has to be deferred if the client has too many deferred messages already."""
    if s.waiting_weights.get(client, 0) + _weight(message) > _weight_max(s):
        raise CallError(f"{client!r} sends more than {_weight_max(s):,} messages while its broker cannot process them")


def note_arrival(s: BrokerState, client: str, message: Any) -> bool:
    """Count a deferred message. Return False if it replaces another deferred message of the client."""
    if isinstance(message, Attach):
        is_first = client not in s.waiting_attaches
        s.waiting_attaches[client] = message
        return is_first
    s.waiting_weights[client] = s.waiting_weights.get(client, 0) + _weight(message)
    return True


def note_taken(s: BrokerState, client: str, message: Any) -> Any:
    """Stop counting a deferred message; return it, or the message that has replaced it."""
    if isinstance(message, Attach):
        return s.waiting_attaches.pop(client, message)
    left = s.waiting_weights.pop(client, 0) - _weight(message)
    if left > 0:
        s.waiting_weights[client] = left
    return message

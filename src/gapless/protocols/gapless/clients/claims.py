"""What a client claims is looked at before any of it counts.

A broker believes brokers, but a client may be anybody's program. The types of its messages are checked where they are
decoded; here stands what types cannot say. Whatever is wrong raises a `CallError`: that client is sent away with the
sentence. All of it is looked at before anything is done: if a step fails halfway, its effects are lost, also those that
others wait for.

- *Numbers* only count what happened, so none is negative or beyond NUMBER_MAX: sums and products with them fit into 64
  bits wherever they travel. Publications are the client's own, and their numbers do not jump; nor does any of them
  look like a tombstone, which only brokers make.
- *Names* of subscriptions and advertisements that have a `/` belong to the client that stands before it. So nobody can
  use somebody else's name, not even before its owner does.
- *Texts* of all that a client asks for are bounded together, because the backups are told all of it with every change.
  The work to understand them is bounded, too, because a client that comes back brings them all at once.
- *Readings* of history are few for each client at a time.
- *What waits* is no more than an honest client keeps (INBOX_WINDOWS).

`sessions` makes sure that nothing is taken that was not sent. Only an heir, which may not know the cuts of a
subscription, relies on those that a client brings. A broker that held the session all the time knows them itself.
"""

from collections.abc import Iterable
from typing import Any

from gapless.errors import CallError, EventError
from gapless.events import EventRun, Events
from gapless.filters import Filter, parse
from gapless.printable import name_complaint
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
)
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.lives import is_life
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.tombstones import has_lost
from gapless.protocols.parts.bounds import check_readings, check_texts

__all__ = ["EFFORT_MAX", "NUMBER_MAX", "Claims", "check_name"]

NUMBER_MAX = 1 << 53
"""Beyond what anybody can count: a million a second for 285 years."""

NAME_MAX = 500
"""Characters in the name of a subscription or advertisement, which begins with that of its client."""

EFFORT_MAX = 300_000
"""Steps to understand all filters of one client, a fifth of a second: those that people write take some dozens each."""

INBOX_WINDOWS = 2
"""How many windows of a client's publications may wait: what it keeps, and the same again when it comes back."""


class Claims:
    """Judges what clients of one broker say."""

    def __init__(self, table: RoutingTable, client_window: int) -> None:
        self._table = table
        self._waiting_max = INBOX_WINDOWS * client_window

    def check_attach(self, client: str, message: Attach) -> None:
        """A client looks for its session."""
        if message.attempt < 1:
            raise CallError(f"{client!r} attaches with attempt {message.attempt}: attempts are counted from 1")
        _check_numbers(client, (message.attempt, message.first, message.unread, message.heard, message.silent_us))
        _check_home(client, message.home)
        _check_cuts(client, message.seen)
        check_readings(client, sum(not progress.is_live for progress in message.brought))
        for progress in message.brought:
            _check_positions(client, progress.since, progress.until)
            check_name(client, progress.subscription)
            _check_cuts(client, progress.cuts)
            _check_cuts(client, progress.got)
        for name, (_, first) in message.advertisements.items():
            self._check_advertisement(client, name, first)
        texts = [(progress.subscription, progress.filter) for progress in message.brought]
        texts += [(name, text) for name, (text, _) in message.advertisements.items()]
        check_texts(client, texts)
        _check_events(client, message.publications, message.first)

    def check_filters(self, client: str, message: Attach) -> None:
        """What a client brings that is given its session can be understood in time."""
        texts = [progress.filter for progress in message.brought]
        texts += [text for text, _ in message.advertisements.values()]
        _check_effort(client, map(parse, texts))

    def check_resume(self, session: Session, message: Attach) -> None:
        """A client begins or resumes its session here."""
        for progress in message.brought:
            self._check_subscription(session, progress.subscription)
        self._check_waiting(session, len(message.publications))

    def check_call(self, session: Session, message: Any) -> None:
        """A client with a session wants something."""
        client, kind = session.client, type(message)
        if kind is ClientPublish:
            _check_events(client, message.events, session.queued + 1)
            self._check_waiting(session, len(message.events))
        elif kind is ClientGot:
            _check_numbers(client, (message.number,))
        elif kind is ClientSubscribe:
            check_name(client, message.subscription)
            _check_positions(client, message.since, message.until)
            check_readings(client, len(session.read_texts) + (message.since >= 0))
            self._check_subscription(session, message.subscription)
            check_texts(client, (*session.texts(), (message.subscription, message.filter)))
            _check_effort(client, (*session.filters(), parse(message.filter)))
        elif kind is ClientAdvertise:
            self._check_advertisement(client, message.advertisement, message.first)
            check_texts(client, (*session.texts(), (message.advertisement, message.filter)))
            _check_effort(client, (*session.filters(), parse(message.filter)))
        elif kind is ClientUnadvertise:
            self._check_waiting(session, 1)

    def _check_subscription(self, session: Session, name: str) -> None:
        if name in self._table.subscriptions and name not in session.subscriptions:
            raise CallError(f"{session.client!r} cannot use the name {name!r}: another subscription has it")

    def _check_advertisement(self, client: str, name: str, first: int) -> None:
        check_name(client, name)
        _check_numbers(client, (first,))
        known = self._table.advertisements.get(name)
        if known is not None and known.publisher != client:
            raise CallError(f"{client!r} cannot use the name {name!r}: an advertisement of {known.publisher!r} has it")

    def _check_waiting(self, session: Session, more: int) -> None:
        """A client keeps what is not safe yet, and no more than a window of it. So no more than that can wait."""
        if len(session.inbox) + more > self._waiting_max:
            raise EventError(
                f"{session.client!r} has more than {self._waiting_max:,} publications that have to wait; "
                "advertise what you publish, and wait until it is safe"
            )


def _check_effort(client: str, filters: Iterable[Filter]) -> None:
    """What a client asks for has to be understood at once, when it comes back."""
    effort = 0
    for each in filters:
        effort += each.effort
        if effort > EFFORT_MAX:
            raise CallError(
                f"the filters of {client!r} take more than {EFFORT_MAX:,} steps to be understood; write them simpler, "
                "or use a further client"
            )


def _check_events(client: str, events: Events, first: int) -> None:
    """The events are the client's, and follow on each other and on what came before."""
    if not events:
        return
    if has_lost(events):
        raise EventError(f"{client!r} publishes an attribute without a name; give it one")
    begin = events[0]
    seq = begin.seq
    if seq > first:
        raise EventError(f"{client!r} publishes number {seq}, but number {first} is next")
    _check_numbers(client, (seq, events[-1].seq))
    count = len(events)
    if begin.publisher == client and (count == 1 or isinstance(events, EventRun)):
        return
    if [event.publisher for event in events].count(client) == count and [event.seq for event in events] == list(
        range(seq, seq + count)
    ):
        return
    for event in events:
        if event.publisher != client:
            raise EventError(f"{client!r} cannot publish in the name of {event.publisher!r}")
        if event.seq != seq:
            raise EventError(f"{client!r} publishes number {event.seq}, but number {seq} is next")
        seq += 1


def _check_cuts(client: str, cuts: Cuts) -> None:
    if cuts:
        # The cut after the last number that somebody may publish is an honest one.
        _check_numbers(client, (min(cuts.values()), max(cuts.values())), NUMBER_MAX + 1)


def _check_numbers(client: str, numbers: Iterable[int], most: int = NUMBER_MAX) -> None:
    for number in numbers:
        if not 0 <= number <= most:
            raise CallError(f"{client!r} speaks of number {number}: numbers go from 0 to {NUMBER_MAX}")


def _check_positions(client: str, since: int, until: int) -> None:
    """Positions are numbers, and -1 has a meaning of its own."""
    _check_numbers(client, (max(0, since), max(0, until)))


def _check_home(client: str, home: str) -> None:
    if home and not is_life(home):
        raise CallError(
            f"{client!r} comes from {home[:100]!r}: a session's home is a broker and its life, such as b0/0"
        )


def check_name(client: str, name: str) -> None:
    """What a client calls its own begins with its name, and has an end."""
    owner, slash, _ = name.rpartition("/")
    if slash and owner != client:
        raise CallError(f"{client!r} cannot use the name {name[:200]!r}, which belongs to {owner[:100]!r}")
    complaint = name_complaint("what a client calls its own", name, NAME_MAX)
    if complaint:
        raise CallError(f"{client!r} made a call that no client may make: {complaint}")

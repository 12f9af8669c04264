"""Checks the requests of a broker's clients before the protocol sees them.

- A **subscription** or **advertisement** must lie within the filters of its user. Otherwise the
  call is refused, and the client continues. If the users' file says so, a subscription is narrowed
  instead.
- An **event** must lie within the filters, too, and carry its client's own name. Advertisements
  were checked before, and a regular client publishes only what it advertised. So a client that
  sends another event is malicious, and its session ends.
- **Durable subscriptions** require the right `named`. A client that refers to one that it could not
  have opened is malicious. Listing all of them requires the right `status`.
- **History** requires the right `history`. A client that moves to another broker gets the events
  that it lacks in any case, as far as its ticket proves that it had the subscription
  (`security.tickets`).
- A client's names for its subscriptions and advertisements begin with the client's name. So no
  client can end or take over those of another.

**Limits** apply to a client's user (`quotas`), or to its address in a network without users, where
every request is allowed. The state that a client supplies when it attaches, perhaps thousands of
filters, is checked in pieces: cheap bounds first, then some filters in each turn. Meanwhile nothing
is read from the client.

A session can hold a filter that was allowed when it began, whatever its client sends later. So when
a client attaches, its session's subscriptions are checked as well. If one is refused, or if the
session reads history and its user may not any longer, the client does not get its session back: it
asks for everything again, with its tickets. So changed permissions take effect with a new
connection, at this broker or another.
"""

import time
from collections.abc import Callable, Collection, Generator, Sequence
from typing import Any

from gapless.errors import DeniedError
from gapless.event_runs import EventRun
from gapless.protocol import BrokerNode, Demand, Judging
from gapless.protocol.nodes import Owners
from gapless.runtime.audit_log import Actor, AuditLog
from gapless.runtime.broker_security import BrokerSecurity
from gapless.runtime.clock import now_us
from gapless.runtime.connection import Link
from gapless.runtime.host import UNJUDGED
from gapless.runtime.quotas import Quotas, Room
from gapless.security.filter_limits import check_text, understand
from gapless.security.identity import Identity, client_prefix, user_of
from gapless.security.limits import BrokerLimits, Bucket, Limits
from gapless.security.permissions import Within
from gapless.security.placeholders import USER
from gapless.security.users_file import User, Users

__all__ = ["Gate"]

SHOWN = 200
"""The number of characters of a filter that a message shows."""
ADDRESS_LIMITS, NO_LIMITS = Limits(), BrokerLimits()
PIECE_US = 4_000
"""How long the filters of one client are checked before other peers get their turn, in microseconds."""
DEBT_MIN_S = 0.1
"""The shortest pause of a client whose owner has used its share. There can be thousands of such clients."""
ATTACHES_PER_S = 10.0
"""The maximum rate of attempts to attach per connection. A client retries an unanswered attempt after 0.1 s or more."""


_NONE: Sequence[object] = ()


class _Client:
    """The state of one connected client's checks."""

    __slots__ = (
        "attaches", "attaching", "begun_ns", "ended", "owner", "understood", "work",
    )  # fmt: skip

    def __init__(self, owner: str, now: float) -> None:
        self.owner = owner
        """The user of the client, or its address if the network has no users."""
        self.attaching = Bucket(ATTACHES_PER_S, now)
        self.attaches = 0
        """The number of times that the client has attached since the last count."""
        self.begun_ns: int | None = None
        """The processor time at the beginning of a turn in which a request with filters is checked."""
        self.understood: Sequence[object] = _NONE
        """The parsed filters of the client's last message. While they are kept, parsing the same text returns the same
        object."""
        self.work: Generator[None, None, Any] | None = None
        """The unfinished check of the client's last message."""
        self.ended: set[str] = set()
        """The subscriptions that the client has ended and its session still holds."""


class Gate:
    """Checks the requests of one broker's clients. `deny` notifies a client of a refused call; `node` returns the node
    if it has joined.
    """

    def __init__(
        self,
        broker_security: BrokerSecurity | None,
        judging: Judging | None,
        audit: AuditLog,
        *,
        deny: Callable[[Link, str, str], None],
        node: Callable[[], BrokerNode | None],
        limits: Limits = ADDRESS_LIMITS,
        broker_limits: Limits = NO_LIMITS,
        clock: Callable[[], float] = time.monotonic,
        processor_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        """`broker_security` knows the users and their limits; if it is None, `limits` apply. If `judging` is None, the
        protocol cannot describe its clients' requests, and only connections are counted.
        """
        self._broker_security = broker_security
        self._audit = audit
        self._judging = judging or Judging(lambda message: None, lambda message, filters, without: message)
        self._demand = self._judging.demand
        self._deny = deny
        self._node = node
        self._clock = clock
        self._processor_ns = processor_ns
        self._limits = limits
        self._broker_limits = broker_limits
        self._clients: dict[str, _Client] = {}
        self._quotas = Quotas(self._limits_of, self._limits_together, clock)
        self._events = 0

    # ---- connections ----------------------------------------------------------------------------------------

    @property
    def _users(self) -> Users | None:
        return None if self._broker_security is None else self._broker_security.users

    def _limits_of(self, owner: str) -> Limits:
        return self._limits if self._users is None else self._users.limits_of(owner)

    def _limits_together(self) -> Limits:
        return self._broker_limits if self._users is None else self._users.broker_limits

    def _named(self, owner: str) -> str:
        return f"address {owner}" if self._users is None else f"user {owner!r}"

    def renew(self) -> None:
        """Apply changed limits."""
        self._quotas.renew()

    def owners(self) -> Owners:
        """Return an object that tells the protocol the owners of clients."""
        if self._users is None:
            return Owners()
        return Owners(user_of, self._names_max, True, self._ticket)

    def _ticket(self, client: str, text: str, position: int) -> bytes:
        if self._broker_security is None or not position:  # position 0 would grant all of history
            return b""
        return self._broker_security.ticket(client, text, position)

    def _names_max(self, user: str) -> int:
        return self._limits_of(user).names

    def _user(self, name: str) -> User | None:
        return None if self._broker_security is None else self._broker_security.user(name)

    def may_connect(self) -> bool:
        """Return whether the broker accepts another connection now, whatever the peer."""
        return self._quotas.may_connect()

    def why_not(self, identity: Identity, host: str, *, is_client: bool) -> str:
        """Return why a peer from this host cannot connect now, or an empty string."""
        owner = _owner(identity, host)
        if identity.kind == "broker" or (not is_client and identity.kind != "user"):
            return ""
        return self._quotas.why_not(owner, self._named(owner), is_client=is_client)

    def add_connection(self, link: Link, identity: Identity, host: str) -> None:
        """Count a client's new connection in place of its previous one."""
        self.remove_connection(link)
        owner = _owner(identity, host)
        self._clients[link.name] = _Client(owner, self._clock())
        self._quotas.add_connection(owner)

    def remove_connection(self, link: Link) -> None:
        """Stop counting a client's connection."""
        client = self._clients.pop(link.name, None)
        if client is not None:
            self._quotas.remove_connection(client.owner)

    # ---- requests -------------------------------------------------------------------------------------------

    def judge(self, link: Link, message: Any) -> Any:
        """Return the message as the protocol may see it. Return None if it is refused, or `UNJUDGED` if there was no
        time to check it.

        A `DeniedError` ends the session, another error of Gapless the connection.
        """
        client = self._clients[link.name]
        if client.work is None:
            asked = self._demand(message)
            if asked is None:
                return message
            if not asked.subscriptions and not asked.advertisements and not asked.is_resuming:
                return self._judge_small(link, client, asked, message)
            self._begin(client)
            if self._must_wait(client):
                return UNJUDGED
            client.attaches += asked.is_resuming
            client.work = self._judge_in_pieces(link, client, asked, message)
        self._begin(client)
        work, client.work = client.work, None
        begun = now_us()
        try:
            while True:
                next(work)
                if now_us() - begun > PIECE_US:
                    break
        except StopIteration as end:
            return end.value
        client.work = work
        return UNJUDGED

    def _begin(self, client: _Client) -> None:
        if client.begun_ns is None:
            client.begun_ns = self._processor_ns()

    def _must_wait(self, client: _Client) -> bool:
        """Return whether the owner has used its share of the time in which filters are checked."""
        return self._quotas.charge_attaching(client.owner, 0.0) > 0.0

    def wait_s(self, link: Link, size: int) -> float:
        """Return for how many seconds to pause reading a client that sent `size` bytes.

        The processor time spent on the message counts if it contained filters. So do the events checked since the last
        call, and the bytes of history that were sent to the client.
        """
        client = self._clients.get(link.name)
        if client is None:
            return 0.0
        events, self._events = self._events, 0
        attaches, client.attaches = client.attaches, 0
        node = self._node()
        read = 0 if node is None else node.take_history_bytes(link.name)
        wait_s = self._quotas.wait_s(client.owner, events=events, size=size, read=read)
        if client.begun_ns is None:
            return wait_s
        spent_ns, client.begun_ns = self._processor_ns() - client.begun_ns, None
        debt_s = self._quotas.charge_attaching(client.owner, spent_ns / 1e9)
        return max(wait_s, max(debt_s, DEBT_MIN_S) if debt_s else 0.0, client.attaching.take(attaches, self._clock()))

    def _judge_small(self, link: Link, client: _Client, asked: Demand, message: Any) -> Any:
        """Check a request that contains no filters."""
        client.understood = _NONE
        if asked.ended:
            self._note_ended(link.name, client, asked.ended)
        if self._users is None:
            self._events += len(asked.events)
            return message
        user = self._known_user(client)
        if asked.events:
            self._judge_events(link, user, asked)
        if asked.listing and not user.status:
            self._deny(
                link,
                asked.listing,
                f"user {user.name!r} may not list all durable subscriptions; this requires status = true",
            )
            return None
        self._judge_names(user, asked)
        if asked.lost and not user.may_publish.covers(asked.lost):
            within = user.may_publish.narrow(asked.lost) or user.may_publish.text
            return self._judging.rewrite(message, {"": within}, set())
        return message

    def _judge_in_pieces(self, link: Link, client: _Client, asked: Demand, message: Any) -> Generator[None, None, Any]:
        """Check a request that contains filters, yielding after each of them."""
        texts = [*asked.subscriptions.items(), *asked.advertisements.items()]
        check_text(link.name, texts, self._judging.text_max)
        client.understood = yield from understand(link.name, texts, self._judging.effort_max)
        if self._users is None:
            judged = self._judge_count(link, client, asked, message)
        else:
            if asked.events:
                self._judge_events(link, self._known_user(client), asked)
            self._judge_names(self._known_user(client), asked)
            judged = yield from self._judge_filters(link, client, asked, message)
        if asked.act and judged is not None:
            self._note_act(link, asked)
        return judged

    def _note_act(self, link: Link, asked: Demand) -> None:
        """Record a change of a durable subscription in the audit log, because other clients may use it."""
        connection = link.connection
        if connection is not None and connection.identity is not None:
            actor = Actor(connection.identity, connection.peer_address)
            for name in asked.named.values():
                self._audit.act(
                    asked.act, "a durable subscription is changed", actor, subscription=name, peer=link.name
                )

    def _known_user(self, client: _Client) -> User:
        """Return the user of a client. Raise an error if it was revoked since the last turn."""
        user = self._user(client.owner)
        if user is None:
            raise DeniedError(f"user {client.owner!r} was revoked")
        return user

    def _judge_events(self, link: Link, user: User, asked: Demand) -> None:
        self._events += len(asked.events)
        events, within = asked.events, user.may_publish
        publishers = {events.publisher} if isinstance(events, EventRun) else {event.publisher for event in events}
        if publishers != {link.name}:
            wrong = next(each for each in publishers if each != link.name)
            raise DeniedError(f"{link.name!r} cannot publish in the name of {wrong!r}")
        if isinstance(events, EventRun):
            is_allowed = within.allows(events.table)
        else:
            is_allowed = all(within.test(event.attributes) for event in events)
        if not is_allowed:
            raise DeniedError(f"user {user.name!r} may not publish this event; {_allowed(within)}")

    def _judge_names(self, user: User, asked: Demand) -> None:
        """Reject a client that refers to a durable subscription which it could not have opened."""
        for held, name in asked.named.items():
            if held not in asked.subscriptions and not user.may_hold.has(name):
                raise DeniedError(_not_held(user, name))

    def _judge_filters(self, link: Link, client: _Client, asked: Demand, message: Any) -> Generator[None, None, Any]:
        client.ended.difference_update(asked.subscriptions, asked.advertisements)
        refused: dict[str, str] = {}
        narrowed: dict[str, str] = {}
        node = self._node()
        must_begin_anew = False
        room = self._room(link, client, asked, "subscriptions")
        for name, text in asked.subscriptions.items():
            user = self._known_user(client)
            why = self._why_no_name(link, name) or ("" if asked.is_passing else room.why_not(name))
            if not why and name in asked.named and not user.may_hold.has(asked.named[name]):
                why = _not_held(user, asked.named[name])
            if not why and name in asked.histories and not user.history:
                why = f"user {user.name!r} may not read history; subscribe without `since`"
            if not why and not user.may_subscribe.covers(text):
                narrow = None if asked.is_exact or user.outside != "narrow" else user.may_subscribe.narrow(text)
                if narrow is None:
                    why = _outside(user, "subscribe to", text, user.may_subscribe)
                else:
                    narrowed[name] = narrow
            if not why and name in asked.resumed and not user.history:
                granted = self._granted(link.name, narrowed.get(name, text), *asked.resumed[name])
                if granted is None:
                    why = f"user {user.name!r} may not read history; {name!r} was not active then"
                elif granted != text:
                    narrowed[name] = granted
            if why:
                refused[name] = why
            yield
        if asked.is_resuming and node is not None:
            for name, text in node.held_by(link.name).items():
                why = self._why_not_held(self._known_user(client), text)
                if why:
                    refused[name] = why
                yield
            must_begin_anew = node.reads_history(link.name) and not self._known_user(client).history
        room = self._room(link, client, asked, "advertisements")
        for name, text in asked.advertisements.items():
            user = self._known_user(client)
            why = self._why_no_name(link, name) or room.why_not(name)
            if not why and not user.may_publish.covers(text):
                why = _outside(user, "publish", text, user.may_publish)
            if why:
                refused[name] = why
            yield
        return self._without(link, message, narrowed, refused, must_begin_anew)

    def _granted(self, client: str, text: str, position: int, ticket: bytes) -> str | None:
        """Return the part of the filter with which a client may continue from a position on. Return None if it had no
        such subscription.
        """
        granted = None if self._broker_security is None else self._broker_security.granted(ticket, client, position)
        if granted is None or granted == text:
            return granted
        within = Within([granted])
        return text if within.covers(text) else within.narrow(text)

    def _judge_count(self, link: Link, client: _Client, asked: Demand, message: Any) -> Any:
        """Check only the limits, in a network without users."""
        self._events += len(asked.events)
        client.ended.difference_update(asked.subscriptions, asked.advertisements)
        refused: dict[str, str] = {}
        for what, names in (("subscriptions", asked.subscriptions), ("advertisements", asked.advertisements)):
            if names and not (asked.is_passing and what == "subscriptions"):
                room = self._room(link, client, asked, what)
                refused |= {name: why for name in names if (why := room.why_not(name))}
        return self._without(link, message, {}, refused)

    def _without(
        self, link: Link, message: Any, narrowed: dict[str, str], refused: dict[str, str], must_begin_anew: bool = False
    ) -> Any:
        """Return the message with narrowed filters and without refused ones. With `must_begin_anew`, the client's
        session is not resumed.
        """
        if not refused and not narrowed and not must_begin_anew:
            return message
        for name, why in refused.items():
            self._deny(link, name, why)
        return self._judging.rewrite(message, narrowed, refused.keys())

    def _why_no_name(self, link: Link, name: str) -> str:
        if name.startswith(link.name + "/"):
            return ""
        raise DeniedError(
            f"{name!r} is not a valid name for client {link.name!r}; it has to begin with the client's own"
        )

    def _why_not_held(self, user: User, text: str) -> str:
        """Return why the session may no longer hold the filter, whatever its client sends now."""
        if not text or user.may_subscribe.covers(text):
            return ""
        return _outside(user, "subscribe any longer to", text, user.may_subscribe)

    def _room(self, link: Link, client: _Client, asked: Demand, what: str) -> Room:
        """Return the room for further subscriptions or advertisements. All sessions at this broker count, whether their
        clients are connected or not. A session's owner follows from its name; in a network without users, only
        connected clients count.
        """
        bounds = ((self._quotas.share(client.owner), client.owner), (self._quotas.all, ""))
        if not any(getattr(share.limits, what) for share, _ in bounds) or not getattr(asked, what):
            return Room(what, [], ())
        taken = []
        for share, owner in bounds:
            most = getattr(share.limits, what)
            if most:
                count = sum(len(self._held(each, what)) for each in self._sessions(owner))
                taken.append((count, most, self._named(owner) if owner else "this broker"))
        own = self._held(link.name, what)
        return Room(what, taken, own)

    def _sessions(self, owner: str) -> list[str]:
        """Return the clients with sessions at this broker, of one owner or of all."""
        node = self._node()
        sessions = [] if node is None else node.sessions()
        if not owner:
            return sessions
        if self._users is None:
            return [each for each, client in self._clients.items() if client.owner == owner]
        return [each for each in sessions if each.startswith(client_prefix(owner))]

    def _held(self, name: str, what: str) -> Collection[str]:
        """Return the registrations of a client's session, except those that the client has ended."""
        node = self._node()
        held: Collection[str] = () if node is None else node.names_held(name)[what == "advertisements"]
        client = self._clients.get(name)
        return held if client is None or not client.ended else {*held} - client.ended

    def _note_ended(self, name: str, client: _Client, ended: str) -> None:
        """Stop counting an ended registration, even if the protocol has not processed its end yet."""
        node = self._node()
        if node is None:
            return
        held = node.names_held(name)
        if any(ended in names for names in held):
            client.ended.add(ended)
        if len(client.ended) > sum(map(len, held)):
            client.ended = {each for each in client.ended if any(each in names for names in held)}

    # ---- revoked rights -------------------------------------------------------------------------------------

    def of_removed_users(self, sessions: list[str]) -> list[str]:
        """Return the clients whose users no longer exist."""
        return [client for client in sessions if self._user(user_of(client)) is None]


def _owner(identity: Identity, host: str) -> str:
    return identity.name if identity.kind == "user" else host


def _not_held(user: User, name: str) -> str:
    names = user.may_hold.text.replace(USER, user.name)
    return f"user {user.name!r} may not hold a subscription under the name {name[:SHOWN]!r}; {names}"


def _outside(user: User, what: str, text: str, within: Within) -> str:
    return f"user {user.name!r} may not {what} {_short(text)!r}; {_allowed(within)}"


def _allowed(within: Within) -> str:
    if within.is_nothing:
        return "nothing is allowed"
    denied = f", but not {_short(within.denied)}" if within.denied else ""
    return f"allowed: {_short(within.text)}{denied}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"

"""The gate: a broker judges what its clients ask for, before the protocol sees it.

- A **subscription** or **advertisement** must lie within the filters of its user. If it does not, the gate refuses the
  call, and the client goes on. If the users' file says so, the gate narrows a subscription instead.
- An **event** must lie within the filters, too, and carry its client's own name. The gate has judged the advertisements
  before, and an honest client publishes only what it advertised. So a client that sends another event cheats, and its
  session ends.
- **Names** in the network, under which subscriptions live on while no client is there, take the right `named`. A client
  that speaks of a name which it could not have opened cheats. The list of all names takes the right `status`.
- **History** takes the right `history`. A lagging client gets what it lacks in any case; the protocol asks
  `may_read_history` to decide how much of what the client says about itself it believes.
- A client's own names for its subscriptions and advertisements begin with the client's name. So nobody can end or take
  over those of another.

A session may hold a filter that was allowed when it began, whatever its client says of it later. So when a client
attaches, the gate also judges what the session holds. It leaves out what it refuses, and a session gives up what its
client does not bring. So a change of permissions takes no more than a new connection, here or at the broker that
inherited the session.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from gapless.errors import DeniedError
from gapless.events import Attributes, EventRun, Events
from gapless.protocol import BrokerNode, Demand, Judging
from gapless.runtime.audit_log import Actor, AuditLog
from gapless.runtime.connection import Link
from gapless.runtime.doors import Doors
from gapless.security.identity import Identity, client_prefix, user_of
from gapless.security.limits import Bucket, Limits
from gapless.security.permissions import Within
from gapless.security.users_file import User

__all__ = ["Gate"]

SHOWN = 200
"""Characters of a filter that a sentence repeats."""


class _Client:
    """What the gate knows of one connected client."""

    __slots__ = ("ended", "is_reading", "sent", "user")

    def __init__(self, user: str) -> None:
        self.user = user
        self.ended: set[str] = set()
        """What it ended, while its session has it still."""
        self.sent = 0
        """How many bytes had been sent to it when it was heard last."""
        self.is_reading = False
        """Whether it was brought history then."""


class _Room:
    """For how many more subscriptions, or advertisements, there is room."""

    def __init__(self, what: str, taken: list[tuple[int, int, str]], known: Collection[str]) -> None:
        """`taken` says for the user and the broker how many there are, how many there may be, and whose they are. Those
        that are `known` are counted already."""
        self._what = what
        self._taken = taken
        self._known = known
        self._more = 0

    def why_not(self, name: str) -> str:
        """Why there may not be one more; if there may, it counts from now on."""
        if name in self._known:
            return ""
        for count, most, whose in self._taken:
            if count + self._more >= most:
                return f"{whose} has {most} {self._what} here, the most that it may have; end one first"
        self._more += 1
        return ""


class _Share:
    """What one user, or all users together, take of a broker."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self.connections = 0
        self.coming = Bucket(limits.connections_per_s, now) if limits.connections_per_s else None
        self.publishing = Bucket(limits.publications_per_s, now) if limits.publications_per_s else None
        self.sending = Bucket(limits.bytes_per_s, now) if limits.bytes_per_s else None
        self.reading = Bucket(limits.history_bytes_per_s, now) if limits.history_bytes_per_s else None

    def limited(self, limits: Limits, now: float) -> "_Share":
        """The same, with other limits."""
        if limits == self.limits:
            return self
        found = _Share(limits, now)
        found.connections = self.connections
        return found

    def wait_s(self, events: int, size: int, read: int, now: float) -> float:
        """How long to wait after so many events, bytes, and bytes out of history."""
        waits = [0.0]
        if self.reading is not None and read:
            waits.append(self.reading.take(read, now))
        if self.publishing is not None and events:
            waits.append(self.publishing.take(events, now))
        if self.sending is not None and size:
            waits.append(self.sending.take(size, now))
        return max(waits)


class Gate:
    """Of one broker. `deny` tells a client that a call of it is refused; `node` is what takes part, if it does yet."""

    def __init__(
        self,
        doors: Doors,
        judging: Judging,
        audit: AuditLog,
        *,
        deny: Callable[[Link, str, str], None],
        node: Callable[[], BrokerNode | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._doors = doors
        self._audit = audit
        self._demand = judging.demand
        self._rewrite = judging.rewrite
        self._deny = deny
        self._node = node
        self._clock = clock
        self._clients: dict[str, _Client] = {}
        self._shares: dict[str, _Share] = {}
        self._all = _Share(self._broker_limits(), clock())
        self._events = 0

    # ---- who comes and goes -------------------------------------------------------------------------------

    def _broker_limits(self) -> Limits:
        users = self._doors.users
        assert users is not None
        return users.broker_limits

    def _share(self, user: str) -> _Share:
        share = self._shares.get(user)
        if share is None:
            assert self._doors.users is not None
            share = self._shares[user] = _Share(self._doors.users.limits_of(user), self._clock())
        return share

    def renew(self) -> None:
        """Other limits may count."""
        users = self._doors.users
        assert users is not None
        now = self._clock()
        self._all = self._all.limited(users.broker_limits, now)
        self._shares = {name: share.limited(users.limits_of(name), now) for name, share in self._shares.items()}

    def names_max(self, user: str) -> int:
        """How many names in the network may be the user's; 0 if there is no limit."""
        users = self._doors.users
        assert users is not None
        return users.limits_of(user).names

    def may_read_history(self, client: str) -> bool:
        """Whether the client's user may read what was published before its subscriptions began."""
        user = self._doors.user(user_of(client))
        return user is not None and user.history

    def may_come(self) -> bool:
        """Whether the broker takes one more connection in this moment, whoever dialled."""
        return self._all.coming is None or self._all.coming.try_take(self._clock())

    def why_not(self, identity: Identity, *, is_client: bool) -> str:
        """Why this user cannot come in now; empty if it can."""
        if identity.kind != "user":
            return ""
        share = self._share(identity.name)
        if share.coming is not None and not share.coming.try_take(self._clock()):
            rate = share.limits.connections_per_s
            return f"user {identity.name!r} connects more than {rate:g} times a second; wait a moment"
        if is_client:
            for which, whose in ((share, f"user {identity.name!r}"), (self._all, "this broker")):
                if which.limits.connections and which.connections >= which.limits.connections:
                    return f"{whose} has {which.connections} connections here, the most that it may have"
        return ""

    def came(self, link: Link, identity: Identity) -> None:
        """A client is connected; if it was already, the old connection is not counted any more."""
        self.left(link)
        self._clients[link.name] = _Client(identity.name)
        for share in (self._share(identity.name), self._all):
            share.connections += 1

    def left(self, link: Link) -> None:
        """A client is not connected any more."""
        client = self._clients.pop(link.name, None)
        if client is None:
            return
        share = self._share(client.user)
        for each in (share, self._all):
            each.connections -= 1
        if not share.connections and share.limits == Limits():
            del self._shares[client.user]

    # ---- what they ask for --------------------------------------------------------------------------------

    def judge(self, link: Link, message: Any) -> Any:
        """The message as the protocol may see it; None if it may not at all. A `DeniedError` ends the session."""
        asked = self._demand(message)
        if asked is None:
            return message
        client = self._clients[link.name]
        user = self._doors.user(client.user)
        if user is None:
            raise DeniedError(f"user {client.user!r} may not come in any more")
        if asked.events:
            self._judge_events(link, user, asked)
        if asked.ended:
            self._note_ended(link.name, client, asked.ended)
        if asked.listing and not user.status:
            self._deny(link, asked.listing, f"user {user.name!r} may not see all names; that takes status = true")
            return None
        self._judge_names(user, asked)
        if not asked.subscriptions and not asked.advertisements and not asked.is_whole:
            return message
        judged = self._judge_filters(link, client, user, asked, message)
        if asked.act and judged is not None:
            self._note_act(link, asked)
        return judged

    def _note_act(self, link: Link, asked: Demand) -> None:
        """Somebody changes a named subscription, perhaps one that others rely on."""
        connection = link.connection
        if connection is not None and connection.identity is not None:
            actor = Actor(connection.identity, connection.peer_address)
            for name in asked.named.values():
                self._audit.act(asked.act, "a named subscription is changed", actor, subscription=name, peer=link.name)

    def wait_s(self, link: Link, size: int, sent: int) -> float:
        """For how long not to read a client that has just sent so many bytes, and been sent so many on its connection.

        The events judged since the last time count, too. While the client reads history, all that it was sent counts as
        well.
        """
        client = self._clients.get(link.name)
        if client is None:
            return 0.0
        now = self._clock()
        events, self._events = self._events, 0
        node = self._node()
        was_reading, client.is_reading = client.is_reading, node is not None and node.reads_history(link.name)
        read = sent - client.sent if was_reading or client.is_reading else 0
        client.sent = sent
        return max(share.wait_s(events, size, read, now) for share in (self._all, self._share(client.user)))

    def _judge_events(self, link: Link, user: User, asked: Demand) -> None:
        self._events += len(asked.events)
        name, within = link.name, user.may_publish.test
        for publisher, attributes in _claimed(asked.events):
            if publisher != name:
                raise DeniedError(f"{name!r} cannot publish in the name of {publisher!r}")
            if not within(attributes):
                raise DeniedError(f"user {user.name!r} may not publish this event; {_allowed(user.may_publish)}")

    def _judge_names(self, user: User, asked: Demand) -> None:
        """A client that speaks of a named subscription which it could not have opened cheats."""
        for held, name in asked.named.items():
            if held not in asked.subscriptions and not user.may_hold.has(name):
                raise DeniedError(_not_held(user, name))

    def _judge_filters(self, link: Link, client: _Client, user: User, asked: Demand, message: Any) -> Any:
        client.ended.difference_update(asked.subscriptions, asked.advertisements)
        refused: dict[str, str] = {}
        narrowed: dict[str, str] = {}
        node = self._node()
        held = node.held_by(link.name) if asked.is_whole and node is not None else {}
        room = self._room(link, client, asked, "subscriptions")
        for name, text in asked.subscriptions.items():
            why = self._why_no_name(link, name) or ("" if asked.is_passing else room.why_not(name))
            if not why:
                why = self._why_not_held(user, held.get(name, ""))
            if not why and name in asked.named and not user.may_hold.has(asked.named[name]):
                why = _not_held(user, asked.named[name])
            if not why and name in asked.histories and not user.history:
                why = f"user {user.name!r} may not read what was published before; subscribe without `since`"
            if not why and not user.may_subscribe.covers(text):
                narrow = None if asked.is_exact or user.outside != "narrow" else user.may_subscribe.narrow(text)
                if narrow is None:
                    why = _outside(user, "subscribe to", text, user.may_subscribe)
                else:
                    narrowed[name] = narrow
            if why:
                refused[name] = why
        room = self._room(link, client, asked, "advertisements")
        for name, text in asked.advertisements.items():
            why = self._why_no_name(link, name) or room.why_not(name)
            if not why and not user.may_publish.covers(text):
                why = _outside(user, "publish", text, user.may_publish)
            if why:
                refused[name] = why
        if not refused and not narrowed:
            return message
        for name, why in refused.items():
            self._deny(link, name, why)
        return self._rewrite(message, narrowed, refused.keys())

    def _why_no_name(self, link: Link, name: str) -> str:
        if name.startswith(link.name + "/"):
            return ""
        raise DeniedError(f"{name!r} is no name that client {link.name!r} may give; it has to begin with its own")

    def _why_not_held(self, user: User, text: str) -> str:
        """A session holds the filter that it began with, whatever its client says of it now."""
        if not text or user.may_subscribe.covers(text):
            return ""
        return _outside(user, "subscribe any more to", text, user.may_subscribe)

    def _room(self, link: Link, client: _Client, asked: Demand, what: str) -> _Room:
        """For how many more there is room: sessions count that are here, whether their clients are or not."""
        user = self._share(client.user).limits
        bounds = ((getattr(user, what), client.user), (getattr(self._all.limits, what), ""))
        if not any(most for most, _ in bounds) or not getattr(asked, what):
            return _Room(what, [], ())
        node = self._node()
        sessions = [] if node is None else node.sessions()
        taken = []
        for most, name in bounds:
            if most:
                begins = client_prefix(name) if name else ""
                count = sum(len(self._held(each, what)) for each in sessions if each.startswith(begins))
                taken.append((count, most, f"user {name!r}" if name else "this broker"))
        own = self._held(link.name, what)
        if asked.is_whole:  # it gives up what it does not bring
            return _Room(what, [(count - len(own), most, whose) for count, most, whose in taken], ())
        return _Room(what, taken, own)

    def _held(self, name: str, what: str) -> Collection[str]:
        """What the session of a client has, without what the client has ended."""
        node = self._node()
        held: Collection[str] = () if node is None else node.names_held(name)[what == "advertisements"]
        client = self._clients.get(name)
        return held if client is None or not client.ended else {*held} - client.ended

    def _note_ended(self, name: str, client: _Client, ended: str) -> None:
        """It counts no more, though the protocol may take its time to end it."""
        node = self._node()
        if node is None:
            return
        held = node.names_held(name)
        if any(ended in names for names in held):
            client.ended.add(ended)
        if len(client.ended) > sum(map(len, held)):
            client.ended = {each for each in client.ended if any(each in names for names in held)}

    # ---- who lost what it had -----------------------------------------------------------------------------

    def strangers(self, sessions: list[str]) -> list[str]:
        """Of these clients, those whose users are gone."""
        return [client for client in sessions if self._doors.user(user_of(client)) is None]


def _claimed(events: Events) -> Iterable[tuple[str, Attributes]]:
    """In whose name, and with which attributes; of those in a run that are alike, once."""
    if isinstance(events, EventRun):
        return ((events.publisher, attributes) for attributes, _ in events.alike)
    return ((event.publisher, event.attributes) for event in events)


def _not_held(user: User, name: str) -> str:
    return (
        f"user {user.name!r} may not hold a subscription under the name {name[:SHOWN]!r}; {user.may_hold.text} allowed"
    )


def _outside(user: User, what: str, text: str, within: Within) -> str:
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return f"user {user.name!r} may not {what} {shown!r}; {_allowed(within)}"


def _allowed(within: Within) -> str:
    shown = within.text if len(within.text) <= SHOWN else within.text[:SHOWN] + "…"
    return "nothing is allowed" if within.is_nothing else f"allowed is {shown}"

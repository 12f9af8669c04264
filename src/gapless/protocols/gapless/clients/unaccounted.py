"""What a client knows of and nobody here does: more than f brokers are gone, or a hand-over is still to come.

- *What it published itself*, and was told to be safe. If nobody has it, it is lost.
- *What it was delivered* of publishers whose sessions were lost with all who held them, or came back with old disks. If
  the publisher's client did not hear that it is safe, that client publishes it again. If it heard so, or is gone as
  well, the event is lost.

The smallest story of the second: x has got p:1. Its broker dies, and so do all who held p:1, before p's client hears
that it is safe. x comes to b2 first and publishes x:1, then p comes to b2 and publishes p:1 again. An effect would be
there before its cause.

So the client is put off. For a while (`SHORT_US`) a hand-over may bring what it knows of. For as long again the
publisher of what it was delivered may come. If that one is put off, too, here or at another broker (`PutOff`), it is
known whether it brings the event: two clients must not wait for each other because of what both were told to be safe.
If it does, it is waited for. Then the client is let in. If the publisher waits and does not bring the event, that is
lost: there are tombstones before anything that the client publishes (`Publications.advance`). A publisher that comes
later is too late.

Within f nothing is lost: no publisher is gone, and nobody is asked what it was delivered.
"""

from collections.abc import Callable, Mapping

from gapless.protocols.gapless.client_messages import Attach
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.lives import Home
from gapless.protocols.gapless.messages import Cuts, PutOff
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["ANYBODY", "Unaccounted"]

ANYBODY = ""
"""Among those who are gone: whoever advertises nothing may be."""
SHORT_US = 3_000_000
"""For so long a client waits that knows of something and nobody here does: then that is lost."""
WAITING_MAX = 10_000


class Unaccounted:
    """Of the clients that come to one broker."""

    def __init__(
        self,
        home: Home,
        options: GaplessOptions,
        sessions: Mapping[str, Session],
        table: RoutingTable,
        done: Callable[[str], int],
        gone: Mapping[str, None],
        tell: Callable[[PutOff], None],
    ) -> None:
        """`done` tells up to which number what a client published has reached everyone, as far as is known here; `gone`
        has those whose sessions hand-overs found to be lost, or on disks that may be old; `tell` lets the other brokers
        know who waits."""
        self._home = home
        self._window = options.window
        self._counts = "tombstones" not in options.switched_off
        self._sessions = sessions
        self._table = table
        self._done = done
        self._gone = gone
        self._tell = tell
        self._waiting: dict[str, tuple[int, int]] = {}
        """By client that waits: since when, and the first number that it brings."""
        self._elsewhere: dict[str, tuple[int, int]] = {}
        """The same, of clients that wait, or have waited, at other brokers."""

    def note(self, message: PutOff, now: int) -> bool:
        """A client waits at another broker. Tell whether that is news: what it brings only grows.

        Its smallest story: p waits at b0, is told that another event is safe, and waits at b1. If what b0 says were
        news to who has heard b1, and the other way round, both words would go round for ever, and ever more of them.
        """
        known = self._elsewhere.get(message.client)
        if known is not None and known[1] >= message.first:
            return False
        self._elsewhere[message.client] = now, message.first
        forget_oldest(self._elsewhere, WAITING_MAX)
        return True

    def may_be_found(self, client: str, held: int, message: Attach, now: int) -> bool:
        """Whether what the client knows of, and nobody here does, may still come.

        Another story, of what it published itself: p publishes 1 at b5, which b1 and b4 back up. b0 was out meanwhile
        and does not know it. b5 dies, comes back without memory, and meets b0 first, which has an older copy of its
        journal. p would be told that 1 is lost, but b1 and b4 have it.
        """
        unseen = self._unseen(client, message)
        is_short = message.home != self._home and self.accounted(client, held, message) < message.first - 1
        if not unseen and not is_short:
            self._waiting.pop(client, None)
            return False
        since, first = self._waiting.get(client, (now, 0))
        if first != message.first:
            self._tell(PutOff(client, message.first))
        self._waiting[client] = since, message.first
        forget_oldest(self._waiting, WAITING_MAX)
        may_come = any(self._may_bring(publisher, seq) for publisher, seq in unseen.items())
        if now - since < (2 * SHORT_US if may_come else SHORT_US):
            return True
        return any(self._is_coming(publisher, seq, now) for publisher, seq in unseen.items())

    def accounted(self, client: str, held: int, message: Attach) -> int:
        """The last number of the client's up to which nothing is lost; its session holds all up to `held`."""
        return max(self._known(client, message.first - 1), self.passed_on(client, held, message))

    def passed_on(self, client: str, held: int, message: Attach) -> int:
        """The last number of the client's that whoever subscribed here was not promised.

        The smallest story: p publishes 1 and 2, and everyone who wants them has them. More than f die, and p's broker
        comes back with an old disk that has 1 only. c subscribes, and is told that it starts with 2. Then the broker
        hears that 2 had reached everyone. Nothing is lost, but c has to be told that 2 does not come.
        """
        known = max(self._table.passed.get(client, 0), held)
        # Nobody lets out more than a window before all of it has reached everyone: what is older has, or is not ours.
        known = max(known, message.first - 1 - self._window)
        return known if self._counts else max(known, message.first - 1)

    def _unseen(self, client: str, message: Attach) -> Cuts:
        """By publisher that is gone: the last number that the client was delivered and nobody here knows of."""
        if not self._gone or message.home == self._home:
            return {}
        found: Cuts = {}
        for seen in (message.seen, *(progress.got for progress in message.brought)):
            for publisher, seq in seen.items():
                if publisher != client and self.may_be_gone(publisher) and seq > self._known(publisher, seq):
                    found[publisher] = max(seq, found.get(publisher, 0))
        return found

    def may_be_gone(self, publisher: str) -> bool:
        """Whether the session of a publisher may have been lost with all who held it."""
        return publisher in self._gone or (ANYBODY in self._gone and not self._table.advertises(publisher))

    def lost(self, client: str, message: Attach) -> Cuts:
        """Of what the client was delivered and nobody here knows of: what is lost, as the publishers say themselves.

        They wait here, and were told that it is safe. Nobody else's word counts: a client cannot bury what others say.
        Of those who wait elsewhere, somebody there may know more.
        """
        unseen = self._unseen(client, message) if self._counts else {}
        lost = {name: min(seq, self._waiting.get(name, (0, 0))[1] - 1) for name, seq in unseen.items()}
        return {publisher: seq for publisher, seq in lost.items() if seq > 0}

    def _brings(self, publisher: str) -> int:
        """The first number that the publisher brings, if it waits; else 0."""
        return (self._waiting.get(publisher) or self._elsewhere.get(publisher) or (0, 0))[1]

    def _may_bring(self, publisher: str, seq: int) -> bool:
        """Whether the publisher may bring the event: not if it waits, and was told that the event is safe."""
        return self._brings(publisher) <= seq

    def _is_coming(self, publisher: str, seq: int, now: int) -> bool:
        """Whether the publisher is here, and what it brought waits to be admitted; or it brings it to another broker.

        The smallest story: x has got p:1, and nobody else has. x waits at b0 and p at b1, which brings p:1. If x were
        let in as soon as p, x:1 would be there before p:1.
        """
        since, first = self._elsewhere.get(publisher, (now, 0))
        if 0 < first <= seq and now - since < 2 * SHORT_US:
            return True
        session = self._sessions.get(publisher)
        return session is not None and not session.is_away and session.queued >= seq

    def _known(self, publisher: str, most: int) -> int:
        """All up to here has come by, or has reached everyone."""
        return max(self._table.passed.get(publisher, 0), min(self._done(publisher), most))

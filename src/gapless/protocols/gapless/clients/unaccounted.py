"""What a client knows of and nobody here does: more than f brokers are gone, or a hand-over is still to come.

- *What it published itself*, and was told to be safe. If nobody has it, it is lost.
- *What it was delivered* of publishers whose sessions were lost with all who held them. If the publisher's client did
  not hear that it is safe, that client publishes it again. If it heard so, or is gone as well, the event is lost.

The smallest story of the second: x has got p:1. Its broker dies, and so do all who held p:1, before p's client hears
that it is safe. x comes to b2 first and publishes x:1, then p comes to b2 and publishes p:1 again. An effect would be
there before its cause.

So the client is put off for a while (`SHORT_US`): a hand-over may bring what is missing, or the publisher's client. If
that one is put off here, too, for as long again; and if its session is here, until what waits in it is admitted. Then
it is lost. Tombstones are admitted in the place of it, before anything that the client publishes next, and its
publisher is told when it comes. A client whose session is over begins a new one, and has still seen what it has seen.

Within f nothing is lost: no publisher is gone, and nobody is asked what it was delivered.
"""

from collections.abc import Callable, Mapping

from gapless.protocols.gapless.client_messages import Attach
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.lives import Home
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["Unaccounted"]

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
    ) -> None:
        """`done` tells up to which number what a client published has reached everyone, as far as is known here; `gone`
        has the publishers whose sessions hand-overs found to be lost."""
        self._home = home
        self._window = options.window
        self._counts = "tombstones" not in options.switched_off
        self._sessions = sessions
        self._table = table
        self._done = done
        self._gone = gone
        self._since: dict[str, int] = {}
        """By client that waits: since when."""
        self._kept: dict[str, Cuts] = {}
        """By client whose session is over: what it was delivered and nobody here knew of."""

    def may_be_found(self, client: str, held: int, message: Attach, now: int) -> bool:
        """Whether what the client knows of, and nobody here does, may still come.

        Another story, of what it published itself: p publishes 1 at b5, which b1 and b4 back up. b0 was out meanwhile
        and does not know it. b5 dies, comes back without memory, and meets b0 first, which has an older copy of its
        journal. p would be told that 1 is lost, but b1 and b4 have it.
        """
        unseen = self.unseen(client, message)
        if not unseen and (message.home == self._home or self.accounted(client, held, message) >= message.first - 1):
            self._since.pop(client, None)
            return False
        forget_oldest(self._since, WAITING_MAX)
        waited = now - self._since.setdefault(client, now)
        return waited < SHORT_US or any(self._is_coming(*item, waited) for item in unseen.items())

    def _is_coming(self, publisher: str, seq: int, waited: int) -> bool:
        """Whether the publisher is here, with what it published, or will soon be."""
        session = self._sessions.get(publisher)
        if session is None:
            return publisher in self._since and waited < 2 * SHORT_US
        return not session.is_away and session.queued >= seq

    def accounted(self, client: str, held: int, message: Attach) -> int:
        """The last number of the client's up to which nothing is lost; its session holds all up to `held`."""
        known = max(self._known(client, message.first - 1), held)
        # Nobody lets out more than a window before all of it has reached everyone: what is older has, or is not ours.
        known = max(known, message.first - 1 - self._window)
        return known if self._counts else max(known, message.first - 1)

    def keep(self, client: str, message: Attach) -> None:
        """The client is told that its session is over: what it has seen counts for its next one."""
        unseen = self.unseen(client, message)
        if unseen:
            self._kept[client] = unseen
            forget_oldest(self._kept, WAITING_MAX)

    def take(self, client: str, message: Attach) -> Cuts:
        """What is lost of all that the client was delivered, now that it is let in."""
        self._since.pop(client, None)
        return self._kept.pop(client, {}) | self.unseen(client, message)

    def unseen(self, client: str, message: Attach) -> Cuts:
        """By publisher that is gone: the last number that the client was delivered and nobody here knows of."""
        if not self._gone or message.home == self._home or not self._counts:
            return {}
        found: Cuts = {}
        for progress in message.brought:
            for publisher, seq in progress.got.items():
                if publisher != client and publisher in self._gone and seq > self._known(publisher, seq):
                    found[publisher] = max(seq, found.get(publisher, 0))
        return {publisher: min(seq, self._known(publisher, seq) + self._window) for publisher, seq in found.items()}

    def _known(self, publisher: str, most: int) -> int:
        """All up to here has come by, or has reached everyone."""
        return max(self._table.passed.get(publisher, 0), min(self._done(publisher), most))

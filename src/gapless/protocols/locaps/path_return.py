"""Publishers whose broker has failed, and who go on here.

1. The client says what it offers, which of its events may not have come through, and what it has seen.
2. All live backups of its former brokers say what they hold of its stream.
3. That is sent to everyone again, under the same numbers and with the same pasts; and behind it, that the publisher is here
   now: the first message of the next epoch, which stands for everything in the former one.
4. From then on it is a new publisher of this broker: it is advertised, subscriptions get cuts behind the last event that
   was held (those that have a start keep it), and what the client published after that follows.

*Why.* An event that anyone processed is held by a backup, with its past; so nobody waits for it in vain, and its effects
do not overtake it. Nothing but that is needed to send it again, so nobody waits for one who waits for him. A
subscription whose marker was lost with the broker gets the same cut again, as nothing was let out behind the marker.
"""

from collections.abc import Callable
from typing import Any

from gapless.overlay import Overlay
from gapless.protocols.locaps.messages import AskEstate, ClientReturn, Content, Due, Estate
from gapless.protocols.locaps.path_keeping import Safekeeping, backups_of

__all__ = ["Inheritance", "Returns"]


class Inheritance:
    """What a publisher brings along."""

    def __init__(self, call: ClientReturn) -> None:
        self.call = call
        self.asked: dict[tuple[str, str], None] = {}
        """Broker that failed, and backup that has not answered."""
        self.last = 0
        self.items: dict[int, tuple[Content, Due]] = {}
        self.is_known = False
        """Whether all estates are in."""


class Returns:
    """The publishers that are coming over."""

    def __init__(
        self, name: str, overlay: Overlay, f: int, dead: dict[str, None], keeping: Safekeeping,
        send: Callable[[str, Any], None], complete: Callable[[str, Inheritance], None],
    ) -> None:  # fmt: skip
        self.coming: dict[str, Inheritance] = {}
        self._name = name
        self._overlay = overlay
        self._f = f
        self._dead = dead
        self._keeping = keeping
        self._send = send
        self._complete = complete

    def begin(self, client: str, call: ClientReturn) -> None:
        """A client whose broker has failed."""
        coming = self.coming[client] = Inheritance(call)
        for broker in call.brokers:
            for backup in backups_of(self._overlay, broker, self._f):
                if backup == self._name:
                    self._take(coming, self._keeping.estate(AskEstate(broker, client)))
                elif backup not in self._dead:
                    coming.asked[broker, backup] = None
                    self._send(backup, AskEstate(broker, client))
        self._go_on(client, coming)

    def hear_estate(self, backup: str, estate: Estate) -> None:
        """A backup has answered."""
        coming = self.coming.get(estate.publisher)
        if coming is not None and (estate.broker, backup) in coming.asked:
            del coming.asked[estate.broker, backup]
            self._take(coming, estate)
            self._go_on(estate.publisher, coming)

    def bury(self, broker: str) -> None:
        """Nobody waits for a backup that has failed."""
        for client, coming in list(self.coming.items()):
            for key in [key for key in coming.asked if key[1] == broker]:
                del coming.asked[key]
            self._go_on(client, coming)

    def _take(self, coming: Inheritance, estate: Estate) -> None:
        coming.last = max(coming.last, estate.last)
        coming.items.update({number: (content, due) for number, content, due in estate.items})

    def _go_on(self, client: str, coming: Inheritance) -> None:
        if not coming.asked and not coming.is_known:
            coming.is_known = True
            self._complete(client, coming)

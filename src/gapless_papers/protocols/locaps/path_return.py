"""Publishers whose broker has failed, and who go on here.

1. The client says what it offers, which of its events may not have come through, and what it has seen.
2. All live backups of its former brokers say what they hold of its stream.
3. That is given to this broker's own backups, and when they have it, sent to everyone again, under the same numbers and
   with the same pasts; and behind it, that the publisher is here now: the first message of the next epoch, which stands
   for everything in the former one.
4. From then on it is a new publisher of this broker: it is advertised, subscriptions get cuts behind the last event
   that was held (those that have a start keep it), and what the client published after that follows.

*Why.* An event that anyone processed is held by a backup, with its past; so nobody waits for it in vain, and its
effects do not overtake it. Nothing but that is needed to send it again, so nobody waits for one who waits for him. A
subscription whose marker was lost with the broker gets the same cut again, as nothing was let out behind the marker.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gapless.overlay import Overlay
from gapless_papers.protocols.locaps.messages import AskEstate, ClientReturn, Content, Due, Estate, Keep, Kept, Takeover
from gapless_papers.protocols.locaps.path_keeping import EPOCH, Safekeeping, backups_of

__all__ = ["Inheritance", "Returns"]


class Inheritance:
    """What a publisher brings along."""

    def __init__(self, client: str, call: ClientReturn) -> None:
        self.client = client
        self.call = call
        self.asked: dict[tuple[str, str], None] = {}
        """Broker that failed, and backup that has not answered."""
        self.last = 0
        self.items: dict[int, tuple[Content, Due]] = {}
        self.is_known = False
        """Whether all estates are in."""
        self.missing: dict[str, None] = {}
        """Backups of this broker that do not hold them yet."""
        self.is_sent = False

    @property
    def is_publisher(self) -> bool:
        """Whether the client has published, or will as things stand."""
        return bool(self.items or self.last or self.call.offers or self.call.events)

    @property
    def epoch(self) -> int:
        """The first number from here on."""
        return len(self.call.brokers) * EPOCH

    def takeover(self, everyone: Iterable[str]) -> Iterator[tuple[int, Content, Due]]:
        """What is to be sent: all that is left, each behind the one before it, and that the publisher is here."""
        before = 0
        for number, (content, due) in sorted(self.items.items()):
            yield number, content, {name: {**due.get(name, {}), **_up_to(self.client, before)} for name in everyone}
            before = number
        yield self.epoch, Takeover(self.last), {name: _up_to(self.client, before) for name in everyone}


class Returns:
    """The publishers that are coming over."""

    def __init__(
        self, name: str, overlay: Overlay, f: int, dead: dict[str, None], keeping: Safekeeping,
        send: Callable[[str, Any], None], complete: Callable[[str, Inheritance], None],
        stay: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.coming: dict[str, Inheritance] = {}
        self._name = name
        self._overlay = overlay
        self._f = f
        self._dead = dead
        self._keeping = keeping
        self._send = send
        self._complete = complete
        self._stay = stay

    def begin(self, client: str, call: ClientReturn) -> None:
        """A client whose broker has failed."""
        coming = self.coming[client] = Inheritance(client, call)
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

    def hear_kept(self, backup: str, message: Kept) -> None:
        """A backup of this broker holds something."""
        coming = self.coming.get(message.publisher)
        if coming is not None and message.number == coming.epoch:
            coming.missing.pop(backup, None)
            self._go_on(message.publisher, coming)

    def bury(self, broker: str) -> None:
        """Nobody waits for a backup that has failed."""
        for client, coming in list(self.coming.items()):
            for key in [key for key in coming.asked if key[1] == broker]:
                del coming.asked[key]
            coming.missing.pop(broker, None)
            self._go_on(client, coming)

    def _take(self, coming: Inheritance, estate: Estate) -> None:
        coming.last = max(coming.last, estate.last)
        coming.items.update({number: (content, due) for number, content, due in estate.items})

    def _go_on(self, client: str, coming: Inheritance) -> None:
        if coming.asked:
            return
        if not coming.is_known:
            coming.is_known = True
            if not coming.is_publisher:
                coming.is_sent = True
                self._stay(client)
                return
            own = backups_of(self._overlay, self._name, self._f)
            coming.missing = dict.fromkeys(name for name in own if name not in self._dead)
            for number, content, due in coming.takeover(self._overlay.brokers):
                for backup in coming.missing:
                    self._send(backup, Keep(client, number, content, due))
        if not coming.missing and not coming.is_sent:
            coming.is_sent = True
            self._complete(client, coming)


def _up_to(client: str, number: int) -> dict[str, int]:
    return {client: number} if number else {}

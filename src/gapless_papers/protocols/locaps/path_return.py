"""Moves publishers to this broker after their own broker has failed.

1. The client sends its advertisements, its unconfirmed events, and its causal past.
2. All live backups of its former brokers send their copies of its stream.
3. This broker replicates the copies to its own backups, and then sends them to all brokers again, under the same
   numbers
   and with the same pasts. After them it announces that the publisher is here now. This is the first message of the
   next epoch, and it stands for the whole former one.
4. From then on the client is a new publisher of this broker: it is advertised, and subscriptions get cuts after the
   last
   surviving event (those with a start keep it). The client's later events follow.

*Why.* An event that any broker processed survives at a backup, with its past. So no broker waits for it in vain, and
its effects do not overtake it. Nothing else is needed to send it again, so waiting is never circular. A subscription
whose marker was lost with the broker gets the same cut again, because nothing was released after the marker.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gapless.overlay import Overlay
from gapless_papers.protocols.locaps.messages import (
    AskBackup,
    BackupCopy,
    ClientReturn,
    Content,
    Due,
    Keep,
    Kept,
    Takeover,
)
from gapless_papers.protocols.locaps.path_keeping import EPOCH, Safekeeping, backups_of

__all__ = ["ReturningPublisher", "Returns"]


class ReturningPublisher:
    """The state of one publisher that moves here."""

    def __init__(self, client: str, call: ClientReturn) -> None:
        self.client = client
        self.call = call
        self.asked: dict[tuple[str, str], None] = {}
        """Pairs of a failed broker and one of its backups that has not answered."""
        self.last = 0
        self.items: dict[int, tuple[Content, Due]] = {}
        self.is_known = False
        """Whether all copies have arrived."""
        self.missing: dict[str, None] = {}
        """Backups of this broker that do not have the copies yet."""
        self.is_sent = False

    @property
    def is_publisher(self) -> bool:
        """Return whether the client has published, or has advertisements under which it can."""
        return bool(self.items or self.last or self.call.offers or self.call.events)

    @property
    def epoch(self) -> int:
        """Return the first number of the next epoch."""
        return len(self.call.brokers) * EPOCH

    def takeover(self, everyone: Iterable[str]) -> Iterator[tuple[int, Content, Due]]:
        """Yield the surviving entries, each dependent on its predecessor, and then the announcement."""
        before = 0
        for number, (content, due) in sorted(self.items.items()):
            yield number, content, {name: {**due.get(name, {}), **_up_to(self.client, before)} for name in everyone}
            before = number
        yield self.epoch, Takeover(self.last), {name: _up_to(self.client, before) for name in everyone}


class Returns:
    """The publishers that are moving here."""

    def __init__(
        self, name: str, overlay: Overlay, f: int, dead: dict[str, None], keeping: Safekeeping,
        send: Callable[[str, Any], None], complete: Callable[[str, ReturningPublisher], None],
        stay: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.coming: dict[str, ReturningPublisher] = {}
        self._name = name
        self._overlay = overlay
        self._f = f
        self._dead = dead
        self._keeping = keeping
        self._send = send
        self._complete = complete
        self._stay = stay

    def begin(self, client: str, call: ClientReturn) -> None:
        """Start moving a client whose broker has failed."""
        coming = self.coming[client] = ReturningPublisher(client, call)
        for broker in call.brokers:
            for backup in backups_of(self._overlay, broker, self._f):
                if backup == self._name:
                    self._take(coming, self._keeping.copy(AskBackup(broker, client)))
                elif backup not in self._dead:
                    coming.asked[broker, backup] = None
                    self._send(backup, AskBackup(broker, client))
        self._go_on(client, coming)

    def receive_copy(self, backup: str, copy: BackupCopy) -> None:
        """Process a backup's copy."""
        coming = self.coming.get(copy.publisher)
        if coming is not None and (copy.broker, backup) in coming.asked:
            del coming.asked[copy.broker, backup]
            self._take(coming, copy)
            self._go_on(copy.publisher, coming)

    def receive_kept(self, backup: str, message: Kept) -> None:
        """Record that a backup of this broker has an entry."""
        coming = self.coming.get(message.publisher)
        if coming is not None and message.number == coming.epoch:
            coming.missing.pop(backup, None)
            self._go_on(message.publisher, coming)

    def exclude(self, broker: str) -> None:
        """Stop waiting for a backup that has failed."""
        for client, coming in list(self.coming.items()):
            for key in [key for key in coming.asked if key[1] == broker]:
                del coming.asked[key]
            coming.missing.pop(broker, None)
            self._go_on(client, coming)

    def _take(self, coming: ReturningPublisher, copy: BackupCopy) -> None:
        coming.last = max(coming.last, copy.last)
        coming.items.update({number: (content, due) for number, content, due in copy.items})

    def _go_on(self, client: str, coming: ReturningPublisher) -> None:
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

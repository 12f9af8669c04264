"""The journal: entries are replicated in order to the electorate, and confirmed when f others hold them."""

from typing import Any

from model.membership import Entries, Ledger, Membership
from model.rules import Rule
from model.tree import Event, Incarnation


class Journal(Membership):
    """The admissions of this incarnation, and copies of other journals."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.journal: list[Event] = []
        self.released = 0
        self.held: dict[Incarnation, int] = {}
        self.replicas: list[Incarnation] = []
        self.high = 0
        """The largest timestamp of a confirmed event that this broker has processed, or that a neighbour knew."""

    def own_ledger(self) -> Ledger:
        return Ledger(tuple(self.journal))

    def may_release(self) -> bool:
        raise NotImplementedError

    def entry_released(self, event: Event) -> None:
        raise NotImplementedError

    def replicate(self) -> None:
        """Send the journal to its replicas. A new incarnation of a replica receives it from the beginning."""
        before, self.replicas = self.replicas, self.current(self.tree.others[self.me.name])
        for replica in self.replicas:
            if replica not in before and self.journal and not self.is_dead(replica):
                if Rule.REPLICATE_AGAIN in self.off:
                    old = [self.held.get(b, 0) for b in before if b.name == replica.name]
                    self.held[replica] = max(old, default=0)
                else:
                    self.send(replica, "hold", 0, tuple(self.journal))

    def append(self, event: Event) -> None:
        self.journal.append(event)
        for replica in self.replicas:
            if not self.is_dead(replica):
                self.send(replica, "hold", len(self.journal) - 1, (event,))

    def on_hold(self, source: Incarnation, at: int, entries: Entries) -> None:
        """Store a copy, unless this broker has promised to exclude the source."""
        ledger = self.ledger(source)
        fenced = ledger.promised > (0, "") and Rule.PROMISE_FENCES not in self.off
        if source in self.register.seals or fenced:
            return
        if len(ledger.copy) >= at and len(ledger.copy) < at + len(entries):
            ledger.copy = ledger.copy[:at] + entries
        self.send(source, "held", at + len(entries), self.view)

    def on_held(self, source: Incarnation, count: int, view: dict[str, tuple[int, int]]) -> None:
        """Count an acknowledgement after merging the view, because a superseded incarnation may have lost its copy."""
        self.learn(view)
        self.held[source] = max(self.held.get(source, 0), count)
        self.release()

    def release(self) -> None:
        """Release entries in order when f current replicas hold them."""
        if not self.alive or not self.may_release():
            return
        if Rule.COUNT_CURRENT in self.off:
            best: dict[str, int] = {}
            for replica, count in self.held.items():
                best[replica.name] = max(count, best.get(replica.name, 0))
            counts = sorted(best.values(), reverse=True)
        else:
            counts = sorted((self.held.get(r, 0) for r in self.replicas), reverse=True)
        confirmed = counts[self.f - 1] if len(counts) >= self.f else 0
        while self.released < min(confirmed, len(self.journal)):
            self.released += 1
            self.entry_released(self.journal[self.released - 1])

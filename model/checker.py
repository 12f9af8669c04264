"""The checker observes the calls and deliveries of applications and, at the end, the table of the last final
position."""

from dataclasses import dataclass, field

from model.handover import Rows
from model.routing import Filter
from model.tree import Event

Key = tuple[str, int]


class ViolationError(Exception):
    """A violated guarantee. The first word of the text is its kind."""


@dataclass
class Observed:
    """The deliveries that an application saw for a subscription."""

    client: str
    filter: Filter
    cuts: dict[str, int] = field(default_factory=dict)
    active: int | None = None
    ended: bool = False
    got: dict[Key, Event] = field(default_factory=dict)


class Checker:
    """Checks exactly-once delivery, gaps from the cut on, causal order per client, and that confirmed events
    survive.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.topics: dict[Key, int] = {}
        self.past: dict[Key, frozenset[Key]] = {}
        """The causes of each publication."""
        self.begun: dict[Key, int] = {}
        self.known: dict[str, frozenset[Key]] = {}
        """The events that each client has received or published."""
        self.acknowledged: set[Key] = set()
        self.subscriptions: dict[str, Observed] = {}
        self.order: dict[str, list[tuple[int, Key]]] = {}

    def _step(self) -> int:
        self.steps += 1
        return self.steps

    def published(self, client: str, number: int, topic: int) -> None:
        key = (client, number)
        known = self.known.get(client, frozenset())
        self.topics[key], self.past[key], self.begun[key] = topic, known, self._step()
        self.known[client] = known | {key}

    def confirmed(self, publisher: str, number: int) -> None:
        self.acknowledged.add((publisher, number))

    def subscribed(self, client: str, name: str, wanted: Filter) -> None:
        self.subscriptions[name] = Observed(client, wanted)

    def unsubscribed(self, name: str) -> None:
        self.subscriptions[name].ended = True

    def became_active(self, name: str, cuts: dict[str, int]) -> None:
        s = self.subscriptions[name]
        if s.active is not None:
            raise ViolationError(f"twice-active: {name}")
        s.active, s.cuts = self._step(), cuts

    def delivered(self, name: str, event: Event) -> None:
        s, key, step = self.subscriptions[name], event.key, self._step()
        if s.active is None:
            raise ViolationError(f"before-active: {name} {key}")
        if key in s.got:
            raise ViolationError(f"duplicate: {name} {key}")
        if event.topic not in s.filter or self.topics[key] != event.topic:
            raise ViolationError(f"mismatch: {name} {key}")
        if key[1] < s.cuts.get(key[0], 0):
            raise ViolationError(f"before-cut: {name} {key}")
        order = self.order.setdefault(s.client, [])
        for at, effect in order:
            if at > s.active and key in self.past[effect]:
                raise ViolationError(f"inversion: {name}: {effect} before its cause {key}")
        for cause in self.past[key]:
            due = cause[0] in s.cuts and cause[1] >= s.cuts[cause[0]]
            if due and self.topics[cause] in s.filter and cause not in s.got:
                raise ViolationError(f"missing-cause: {name}: {key} without {cause}")
        s.got[key] = event
        order.append((step, key))
        self.known[s.client] = self.known.get(s.client, frozenset()) | self.past[key] | {key}

    def end(self, table: Rows) -> None:
        for key in self.acknowledged:
            if key not in table:
                raise ViolationError(f"lost-confirmed: {key}")
        for name, s in self.subscriptions.items():
            for key, event in s.got.items():
                if table.get(key) != (event.timestamp, event.origin):
                    raise ViolationError(f"phantom: {name} {key} was delivered and is not in the table")
            if s.active is not None:
                for key, topic in self.topics.items():
                    if topic in s.filter and key in table and key not in s.got:
                        self._check_missing(name, s, s.active, key)

    def _check_missing(self, name: str, s: Observed, active: int, key: Key) -> None:
        """Check an event that was not delivered. For an ended subscription, only gaps count."""
        later = any(key in self.past[g] or (g[0] == key[0] and g[1] > key[1]) for g in s.got)
        if s.ended and not later:
            return
        if self.begun[key] > active:
            kind = "late-start"
        elif key[0] in s.cuts and key[1] >= s.cuts[key[0]]:
            kind = "gap"
        elif key[1] > min((n for p, n in s.got if p == key[0]), default=key[1]):
            kind = "gap-after-first"
        elif any(cause in s.got for cause in self.past[key]):
            kind = "missing-effect"
        else:
            return
        raise ViolationError(f"{kind}: {name} {key} cuts={s.cuts} got={list(s.got)}")

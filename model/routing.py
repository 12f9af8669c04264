"""Subscriptions and advertisements on the links of the tree: markers, answers, cuts, covering."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from model.journal import Journal
from model.rules import Rule
from model.tree import Event, Incarnation

Filter = frozenset[int]
Attempt = tuple[int, int]
"""(session, restarts): grows with each move and each restart."""
LinkName = tuple[Any, ...]
LOCAL: LinkName = ("local",)


class Link(NamedTuple):
    """One end of a link. Both ends are created with the same content, and a link has no state to preserve."""

    peer: Incarnation
    bypassed: frozenset[str]


@dataclass
class Subscription:
    """A broker's state of a subscription; `source` is the link from which it came, or LOCAL."""

    name: str
    filter: Filter
    attempt: Attempt
    source: LinkName
    active: bool


@dataclass
class Advertisement:
    """A broker's state of an advertisement; it acknowledges when the links in `waiting` have acknowledged."""

    name: str
    filter: Filter
    publisher: str
    attempt: Attempt
    source: LinkName
    waiting: set[LinkName] = field(default_factory=set)
    stable: bool = False


class LocalState(Enum):
    """The states of a client's subscription at its broker."""

    PENDING = auto()  # the cut is not whole
    READING = auto()  # resumed: the cut is whole, history is being read
    LIVE = auto()


@dataclass
class Local:
    """The state of a subscription of a client of this broker. If it is resumed, the client supplies position, cuts,
    begin and last numbers."""

    client: str
    name: str
    filter: Filter
    attempt: Attempt
    resumed: bool = False
    position: int = 0
    cuts: dict[str, int] = field(default_factory=dict)
    begin: int = 0
    last: dict[str, int] = field(default_factory=dict)
    state: LocalState = LocalState.PENDING
    answers: dict[str, int] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    buffer: list[Event] = field(default_factory=list)


class Routing(Journal):
    """The routing tables, and the processing of messages on links."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.links: dict[LinkName, Link] = {}
        self.sent: dict[LinkName, dict[str, tuple[Attempt, bool]]] = {}
        """The subscriptions that the peer knows from this broker."""
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, Advertisement] = {}
        self.locals: dict[str, Local] = {}
        self.seen: dict[str, int] = {}
        """For each publisher, the last processed number; every later event has a larger one."""
        self.log: dict[tuple[str, int], Event] = {}
        """Processed events that some broker may not have processed."""

    def out(self, link: LinkName, kind: str, *arguments: Any) -> None:
        self.send(self.links[link].peer, "link", link, self.high, kind, arguments)

    def add_link(self, link: LinkName, peer: Incarnation, bypassed: frozenset[str]) -> None:
        self.links[link] = Link(peer, bypassed)
        self.sent[link] = {}

    def deliver(self, local: Local, event: Event) -> None:
        raise NotImplementedError

    def became_whole(self, local: Local) -> None:
        raise NotImplementedError

    def became_stable(self, advertisement: Advertisement) -> None:
        raise NotImplementedError

    # ---- events
    def process(self, event: Event, source: LinkName | None) -> None:
        """Process each event once: deliver it to local subscriptions, and send it over links with matching ones."""
        if event.number <= self.seen.get(event.publisher, 0):
            return
        self.seen[event.publisher] = event.number
        self.clock = max(self.clock, event.timestamp)
        self.high = max(self.high, event.timestamp)
        self.log[event.key] = event
        for local in self.locals.values():
            if event.topic in local.filter:
                if local.state is LocalState.LIVE:
                    self.deliver(local, event)
                else:
                    local.buffer.append(event)
        wanted = {s.source for s in self.subscriptions.values() if event.topic in s.filter} - {LOCAL, source}
        for link in self.links:
            if link in wanted:
                self.out(link, "event", event)

    def link_event(self, link: LinkName, event: Event) -> None:
        self.process(event, link)

    # ---- subscriptions
    def behind(self, wanted: Filter, link: LinkName) -> list[Advertisement]:
        return [a for a in self.advertisements.values() if a.source == link and a.filter & wanted]

    def represented(self, s: Subscription, link: LinkName) -> bool:
        """Return whether the peer has an active subscription from here that covers this one (I6)."""
        for name in self.sent[link]:
            r = self.subscriptions.get(name)
            ready = r and (r.active or Rule.ACTIVE_REPRESENTS in self.off)
            if r and r is not s and ready and r.source != link and r.filter >= s.filter:
                return True
        return False

    def spread(self, s: Subscription) -> None:
        """Send a subscription once towards each overlapping advertisement. Answer for represented ones and for
        publishers here with the number after the last one that passed here."""
        answers: dict[str, int] = {}
        for link in list(self.links):
            found = self.behind(s.filter, link) if link != s.source else []
            if found and self.represented(s, link):
                answers.update((a.publisher, self.seen.get(a.publisher, 0) + 1) for a in found)
            elif found:
                self.send_subscription(s, link)
        for a in self.behind(s.filter, LOCAL):
            answers[a.publisher] = self.seen.get(a.publisher, 0) + 1
        if answers and not s.active:
            self.answer(s, answers)

    def send_subscription(self, s: Subscription, link: LinkName) -> None:
        if self.sent[link].get(s.name) != (s.attempt, s.active):
            self.sent[link][s.name] = (s.attempt, s.active)
            self.out(link, "subscribe", s.name, s.filter, s.attempt, s.active)

    def refresh(self, link: LinkName) -> None:
        """Send overlapping subscriptions that are no longer represented, active ones first."""
        for s in sorted(self.subscriptions.values(), key=lambda s: (not s.active, s.name)):
            unsent = s.source != link and s.name not in self.sent[link]
            if unsent and self.behind(s.filter, link) and not self.represented(s, link):
                self.send_subscription(s, link)

    def link_subscribe(self, link: LinkName, name: str, wanted: Filter, attempt: Attempt, active: bool) -> None:
        """Process a subscription; ignore older attempts."""
        old = self.subscriptions.get(name)
        if old and old.attempt > attempt:
            return
        if old and old.attempt == attempt:
            active = active or old.active
        self.subscriptions[name] = s = Subscription(name, wanted, attempt, link, active)
        self.spread(s)

    def answer(self, s: Subscription, answers: dict[str, int]) -> None:
        if s.source != LOCAL:
            self.out(s.source, "answer", s.name, s.attempt, answers)
            return
        local = self.locals[s.name]
        for publisher, number in answers.items():  # the first answer is the cut
            local.answers.setdefault(publisher, number)
        self.check_whole(local)

    def link_answer(self, link: LinkName, name: str, attempt: Attempt, answers: dict[str, int]) -> None:
        """Record an answer: later events on this link are not older than the cut."""
        s = self.subscriptions.get(name)
        if s and s.attempt == attempt:
            for publisher, number in answers.items():
                self.seen[publisher] = max(self.seen.get(publisher, 0), number - 1)
            if not s.active:
                self.answer(s, answers)

    def activate(self, s: Subscription) -> None:
        """Notify every broker that knows the subscription from here that its cut is complete."""
        s.active = True
        for link, names in self.sent.items():
            if s.name in names:
                names[s.name] = (s.attempt, True)
                self.out(link, "active", s.name, s.attempt)

    def link_active(self, link: LinkName, name: str, attempt: Attempt) -> None:
        s = self.subscriptions.get(name)
        if s and s.attempt == attempt:
            self.activate(s)

    def remove_subscription(self, name: str) -> None:
        """Remove a subscription after sending those that it represented."""
        self.subscriptions.pop(name, None)
        for link, names in self.sent.items():
            if names.pop(name, None):
                self.refresh(link)
                self.out(link, "unsubscribe", name)

    def link_unsubscribe(self, link: LinkName, name: str) -> None:
        s = self.subscriptions.get(name)
        if s and s.source == link:
            self.remove_subscription(name)

    # ---- local subscriptions
    def begin(self, local: Local) -> None:
        """Begin an attempt: wait for an answer of each publisher with an overlapping advertisement."""
        if not local.resumed:
            local.begin = self.clock if Rule.BEGIN_CONFIRMED in self.off else self.high
            local.position = self.position()
        local.state, local.answers, local.buffer = LocalState.PENDING, {}, []
        local.expected = {a.publisher for a in self.advertisements.values() if a.filter & local.filter}
        self.subscriptions[local.name] = s = Subscription(local.name, local.filter, local.attempt, LOCAL, False)
        self.spread(s)
        self.check_whole(local)

    def position(self) -> int:
        raise NotImplementedError

    def restart(self, local: Local) -> None:
        local.attempt = (local.attempt[0], local.attempt[1] + 1)
        self.begin(local)

    def check_whole(self, local: Local) -> None:
        if local.state is LocalState.PENDING and local.expected <= local.answers.keys():
            if not local.resumed:
                local.cuts = dict(local.answers)
            self.became_whole(local)
            self.activate(self.subscriptions[local.name])

    # ---- advertisements
    def flood(self, a: Advertisement) -> None:
        """Send an advertisement with the last number over all other links; acknowledge when every link has
        acknowledged.
        """
        for link in [x for x in self.links if x in a.waiting]:
            last = self.seen.get(a.publisher, 0)
            self.out(link, "advertise", a.name, a.filter, a.publisher, a.attempt, last)
        self.check_waiting(a)

    def link_advertise(
        self, link: LinkName, name: str, wanted: Filter, publisher: str, attempt: Attempt, last: int
    ) -> None:
        if Rule.ADV_CARRIES_LAST not in self.off:
            self.seen[publisher] = max(self.seen.get(publisher, 0), last)
        old = self.advertisements.get(name)
        if old is None or old.attempt <= attempt:
            a = Advertisement(name, wanted, publisher, attempt, link, self.links.keys() - {link})
            self.advertisements[name] = a
            self.refresh(link)
            self.flood(a)

    def check_waiting(self, a: Advertisement) -> None:
        if a.waiting:
            return
        if a.source in self.links:
            self.out(a.source, "advertised", a.name, a.attempt)
        elif a.source == LOCAL and not a.stable:
            a.stable = True
            self.became_stable(a)

    def link_advertised(self, link: LinkName, name: str, attempt: Attempt) -> None:
        a = self.advertisements.get(name)
        if a and a.attempt == attempt and link in a.waiting:
            a.waiting.discard(link)
            self.check_waiting(a)

    def link_unadvertise(self, link: LinkName, name: str, attempt: Attempt) -> None:
        a = self.advertisements.get(name)
        if a and a.source == link and a.attempt <= attempt:
            self.remove_advertisement(a)

    def remove_advertisement(self, a: Advertisement) -> None:
        del self.advertisements[a.name]
        for link in self.links:
            if link != a.source:
                self.out(link, "unadvertise", a.name, a.attempt)
        self.restart_waiting(a)

    def restart_waiting(self, a: Advertisement) -> None:
        """Restart a pending subscription that expects an answer of this publisher, without it."""
        left = [b for b in self.advertisements.values() if b.publisher == a.publisher]
        for local in list(self.locals.values()):
            expects = local.state is LocalState.PENDING and a.publisher in local.expected
            if expects and not any(b.filter & local.filter for b in left):
                if Rule.UNADV_RESTARTS in self.off:
                    local.expected.discard(a.publisher)
                    self.check_whole(local)
                else:
                    self.restart(local)

    # ---- voiding
    def link_void(self, link: LinkName | None, kind: str, name: str, attempt: Attempt) -> None:
        """Restart a pending operation whose path a handover crossed."""
        x: Subscription | Advertisement | None
        x = self.subscriptions.get(name) if kind == "subscription" else self.advertisements.get(name)
        if x is None or x.attempt != attempt:
            return
        if x.source != LOCAL:
            if x.source in self.links:
                self.out(x.source, "void", kind, name, attempt)
        elif isinstance(x, Subscription):
            if not x.active:
                self.restart(self.locals[name])
        elif not x.stable:
            x.attempt = (x.attempt[0], x.attempt[1] + 1)
            x.waiting = set(self.links)
            self.flood(x)

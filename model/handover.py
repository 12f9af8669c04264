"""The handover: live brokers in and around a region contribute, and each computes the same function of the union."""

from dataclasses import dataclass, field
from typing import Any

from model.membership import Entries, State
from model.routing import Advertisement, Attempt, Filter, LinkName, Routing, Subscription
from model.rules import Rule
from model.tree import Event, Incarnation, Status, View, is_excluded, is_joined, membership

Key = tuple[frozenset[tuple[str, Status]], frozenset[tuple[str, int]]]
"""The statuses of the region, and the incarnations of its group."""
Rows = dict[tuple[str, int], tuple[int, Incarnation]]
"""(publisher, number) -> (timestamp, incarnation that admitted it)."""


@dataclass
class Contribution:
    """The state of a member when it stops."""

    view: View
    high: int
    stable: int
    log: list[Event]
    seen: dict[str, int]
    seals: dict[Incarnation, Entries]
    applied: dict[Incarnation, Rows]
    subscriptions: dict[str, tuple[Filter, Attempt, bool]]
    advertisements: dict[str, tuple[Filter, str, Attempt]]


@dataclass
class Handover:
    """A handover in progress: it waits for contributions and seals."""

    key: Key
    region: frozenset[str]
    group: frozenset[str]
    mine: Contribution
    got: dict[str, Contribution] = field(default_factory=dict)
    sent: bool = False


class Handovers(Routing):
    """Regions, contributions, and their completion."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.handover: Handover | None = None
        self.stable = 0
        self.applied: dict[Incarnation, Rows] = {}
        """The rows of sealed incarnations that handovers of this broker, or of its groups, have processed."""
        self.dead_links: set[LinkName] = set()
        self.early: dict[LinkName, list[tuple[Any, ...]]] = {}
        self.cut: set[LinkName] = set()
        self.cut_sent: set[str] = set()
        """The entries sent over the links that the current handover removed."""
        self.completed: list[Key] = []
        self.contributions: dict[str, tuple[Key, Contribution]] = {}
        self.reports: dict[Key, set[str]] = {}

    # ---- choosing the handover
    def adjusted(self, view: View) -> View:
        """Return the statuses in which a member of the region that was declared joined is joining again."""
        if self.handover and Rule.UNSETTLE not in self.off:
            for n in self.handover.region:
                if is_joined(view[n]):
                    view[n] = (view[n][0], view[n][1] + 1)
        return view

    def look(self) -> None:
        """Begin the handover that the view requires, one region at a time."""
        mine = [(r, g) for r, g in self.tree.regions(membership(self.view)) if self.me.name in g]
        h = self.handover
        for region, group in mine:
            if h and not region & h.region:
                continue
            if h and self.key(region, group) == h.key:
                self.complete()
                return
            if h or not self.is_completed(region, group):
                self.begin_handover(region, group)
                return

    def key(self, region: frozenset[str], group: frozenset[str]) -> Key:
        view = membership(self.view)
        return frozenset((n, view[n]) for n in region), frozenset((n, view[n][0]) for n in group)

    def is_completed(self, region: frozenset[str], group: frozenset[str]) -> bool:
        now = self.key(region, group)
        return any(now[0] <= key[0] and now[1] <= key[1] for key in self.completed)

    def wave_lost(self, links: set[LinkName]) -> None:
        raise NotImplementedError

    def begin_handover(self, region: frozenset[str], group: frozenset[str]) -> None:
        """Remove the links into the region, stop, and contribute. A larger region includes links removed earlier."""
        for link, end in list(self.links.items()):
            if self.me.name in region or end.peer.name in region or end.bypassed & region:
                del self.links[link]
                self.dead_links.add(link)
                self.cut.add(link)
                self.cut_sent |= self.sent.pop(link).keys()
        self.wave_lost(self.cut)
        subscriptions = [s for s in self.subscriptions.values() if s.source not in self.cut]
        advertisements = [a for a in self.advertisements.values() if a.source not in self.cut]
        mine = Contribution(
            self.view,
            self.high,
            self.stable,
            list(self.log.values()),
            dict(self.seen),
            dict(self.register.seals),
            dict(self.applied),
            {s.name: (s.filter, s.attempt, s.active) for s in subscriptions},
            {a.name: (a.filter, a.publisher, a.attempt) for a in advertisements},
        )
        self.handover = Handover(self.key(region, group), region, group, mine)
        self.joined_enough()

    def joined_enough(self) -> None:
        h = self.handover
        if h and not h.sent and self.may_contribute(h.group):
            h.sent = True
            h.got[self.me.name] = h.mine
            self.contribute(h)
            for name, (key, contribution) in self.contributions.items():
                if key == h.key:
                    h.got[name] = contribution
            self.complete()

    def contribute(self, h: Handover) -> None:
        for x in self.current(sorted(h.group - {self.me.name})):
            self.send(x, "contribute", h.key, h.mine)

    def seal_stored(self, incarnation: Incarnation) -> None:
        """Send the group a seal of the region that was decided after this broker contributed."""
        h = self.handover
        if h and incarnation.name in h.region:
            h.mine.seals[incarnation] = self.register.seals[incarnation]
            if h.sent:
                self.contribute(h)
                self.complete()

    def on_contribute(self, source: Incarnation, key: Key, contribution: Contribution) -> None:
        self.contributions[source.name] = (key, contribution)
        self.learn(contribution.view)
        h = self.handover
        if self.alive and h and h.key == key:
            h.got[source.name] = contribution
            self.complete()

    # ---- completion
    def complete(self) -> None:
        h = self.handover
        if h is None or not h.sent or h.got.keys() != h.group:
            return
        contributions = list(h.got.values())
        view = membership(self.view)
        dead = [Incarnation(n, i) for n in sorted(h.region) for i in range(view[n][0] + is_excluded(view[n]))]
        seals = {x: entries for c in contributions for x, entries in c.seals.items()}
        if not all(x in seals for x in dead) and Rule.SEALS_FIRST not in self.off:
            return
        sealed = {x: seals.get(x, ()) for x in dead}
        self.handover = None
        self.state = State.MEMBER
        self.process_union(contributions, sealed)
        new = self.install(h)
        self.void_pending(h, *new)
        self.completed.append(h.key)
        for x in self.current(sorted(h.group)):
            if not is_joined(self.view[x.name]):
                self.send(x, "done", h.key)
        self.after_handover()
        for link, end in self.links.items():
            for arguments in self.early.pop(link, ()):
                self.enqueue(end.peer, "link", (link, *arguments))
        self.replicate()
        self.look()
        if self.handover is None:
            self.resume()

    def process_union(self, contributions: list[Contribution], sealed: dict[Incarnation, Entries]) -> None:
        """Process logs and seals by timestamp, for this side only, except events that all brokers have processed."""
        union = {e.key: e for c in contributions for e in c.log}
        for x, entries in sealed.items():
            self.applied[x] = {e.key: (e.timestamp, x) for e in entries}
            union.update((e.key, e) for e in entries)
        floor = max(c.stable for c in contributions)
        if Rule.SORT_UNION in self.off:
            events = sorted(union.values(), key=lambda e: (e.publisher, e.number))
        else:
            events = sorted(union.values(), key=lambda e: e.order)
        for event in events:
            if event.timestamp > floor:
                self.process(event, None)
        for c in contributions:
            self.high = max(self.high, c.high)
            self.applied = {**c.applied, **self.applied}
            if Rule.SHARE_SEEN not in self.off:
                for publisher, number in c.seen.items():
                    self.seen[publisher] = max(self.seen.get(publisher, 0), number)
        self.clock = max(self.clock, self.high)

    def install(self, h: Handover) -> tuple[set[str], set[str]]:
        """Install the new links, with all subscriptions and advertisements of both sides at both ends."""
        links = self.tree.links(membership(self.view), h.region, h.group)
        hop = self.tree.next_hops(self.me.name, links)
        names: dict[str, LinkName] = {}
        for a, b, bypassed in links:
            if self.me.name in (a, b):
                peer = b if a == self.me.name else a
                names[peer] = (h.key, a, b)
                self.add_link(names[peer], self.current([peer])[0], bypassed)
        subscriptions, advertisements = set[str](), set[str]()
        for member in sorted(h.group - {self.me.name}):
            link, theirs = names[hop[member]], h.got[member]
            for name, (wanted, attempt, active) in theirs.subscriptions.items():
                if name not in h.mine.subscriptions or attempt > self.subscriptions[name].attempt:
                    self.subscriptions[name] = Subscription(name, wanted, attempt, link, active)
                    subscriptions.add(name)
            for name, (wanted, publisher, attempt) in theirs.advertisements.items():
                if name not in h.mine.advertisements or attempt > self.advertisements[name].attempt:
                    self.advertisements[name] = Advertisement(name, wanted, publisher, attempt, link)
                    advertisements.add(name)
        for link in names.values():
            for s in self.subscriptions.values():
                if s.source != link and s.source not in self.cut:
                    self.sent[link][s.name] = (s.attempt, s.active)
        self.remove_lost([x for x in self.links if x not in names.values()])
        return subscriptions, advertisements

    def remove_lost(self, own: list[LinkName]) -> None:
        """Remove entries that came through the region and that no member contributes; send new entries first."""
        gone = [s for s in self.subscriptions.values() if s.source in self.cut]
        for s in gone:
            del self.subscriptions[s.name]
        for link in own:
            self.refresh(link)
            for s in gone:
                if self.sent[link].pop(s.name, None):
                    self.out(link, "unsubscribe", s.name)
        ended = [a for a in self.advertisements.values() if a.source in self.cut]
        for a in ended:
            del self.advertisements[a.name]
            for link in own:
                self.out(link, "unadvertise", a.name, a.attempt)
        for a in ended:
            self.restart_waiting(a)

    def void_pending(self, h: Handover, subscriptions: set[str], advertisements: set[str]) -> None:
        """Restart pending operations of this side that were sent into the region. Only its owner knows whether an
        advertisement is stable, so all are voided. Entries that became active elsewhere are forwarded.
        """
        self.cut = set()
        sent, self.cut_sent = self.cut_sent, set()
        if Rule.VOID not in self.off:
            for name in sorted(sent):
                s = self.subscriptions.get(name)
                if s and name in h.mine.subscriptions and name not in subscriptions and not s.active:
                    self.link_void(None, "subscription", name, s.attempt)
        for name in h.mine.advertisements:
            a = self.advertisements.get(name)
            if a and name not in advertisements:
                self.link_void(None, "advertisement", name, a.attempt)
        for name in sorted(subscriptions):
            s = self.subscriptions.get(name)
            if s and s.active:
                for link, names in self.sent.items():
                    if name in names and names[name] != (s.attempt, True):
                        names[name] = (s.attempt, True)
                        self.out(link, "active", name, s.attempt)

    def after_handover(self) -> None:
        raise NotImplementedError

    def resume(self) -> None:
        raise NotImplementedError

    def on_done(self, source: Incarnation, key: Key) -> None:
        """Declare the region's members joined, in a joining member, when all members have completed."""
        done = self.reports.setdefault(key, set())
        done.add(source.name)
        if done < {n for n, _ in key[1]} or is_joined(self.view[self.me.name]) or self.handover:
            return
        view = membership(self.view)
        if all(view[n] == status for n, status in key[0]):
            joined = {n: (s[0], s[1] + 1) for n, s in key[0] if not is_excluded(s)}
            self.learn({**self.view, **joined})
            if self.alive:
                self.tell_all()

    # ---- links
    def on_link(self, source: Incarnation, link: LinkName, high: int, kind: str, arguments: tuple[Any, ...]) -> None:
        """Drop a message of a removed link. Delay a message of a future link."""
        if link in self.links:
            self.high = max(self.high, high)
            getattr(self, "link_" + kind)(link, *arguments)
        elif link not in self.dead_links:
            self.early.setdefault(link, []).append((high, kind, arguments))

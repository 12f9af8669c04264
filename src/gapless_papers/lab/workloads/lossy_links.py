"""Links that lose messages, and gossip that recovers them (paper 004, section 5).

Brokers form a random tree of degree 4 at most. Each pattern is one attribute; each event has a few of them, drawn by
the seed. Subscribers are distributed over the brokers and patterns in turn, so that all patterns have equally many.
Publishers publish steadily. Only events in the middle of the run count. Before it, every subscriber has time to receive
something from every source once, because pull cannot detect a loss otherwise; after it there is time to recover.

With `burst_ms` a link does not lose single messages: it goes down for that long, as often as needed to be down for the
share `loss` of the time. With `relinks` that many links of the tree are replaced, one after the other, starting one
second into the middle. During each replacement the tree is split in two for `gap_ms`.

| measure | subject | value |
| --- | --- | --- |
| `delivered` | `percent` | deliveries of events published in the middle, as a percentage of those due |
| `delivered-course` | second | the same percentage for events published in the quarter of a second that begins then |
| `overhead` | `messages` | recovery messages between brokers, for each event published |
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from gapless.simulator import Scenario
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import (
    Action,
    Client,
    Cut,
    Fault,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Relink,
    Run,
    SubscribeAction,
)
from gapless_papers.lab.measures import Measure, Observed, Pair
from gapless_papers.lab.workloads.workload import ScenarioWorkload

__all__ = ["LossyLinks"]

START_MS = 2_000.0
"""When all brokers know all subscriptions, although links also lose subscription messages."""
LINK_MS = 5.0
SPAN_US = 250_000
GOSSIP = ("PushDigest", "SubscriberPull", "PublisherPull", "Request", "Retransmission")
"""The messages of `epidemic` that count as recovery overhead."""


class LossyLinks(ScenarioWorkload, frozen=True):
    """All times are milliseconds."""

    brokers: int = 50
    loss: float = 0.2
    publishers: int = 4
    rate: float = 40.0
    """Events per second of each publisher."""
    patterns: int = 10
    patterns_per_event: int = 1
    subscribers: int = 50
    interest: float = 0.0
    """The share of all patterns that each subscriber wants; at least one pattern."""
    burst_ms: float = 0.0
    relinks: int = 0
    gap_ms: float = 100.0
    warm_ms: float = 5_000.0
    measured_ms: float = 3_000.0
    drain_ms: float = 3_000.0

    own_measures: ClassVar[tuple[str, ...]] = ("delivered", "delivered-course", "overhead")

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss is {self.loss:g}, but must be at least 0 and less than 1")
        if not 0 <= self.interest <= 1:
            raise ValueError(f"interest is {self.interest:g}, but must be from 0 to 1")
        if self.burst_ms < 0 or self.relinks < 0 or self.gap_ms < 0:
            raise ValueError("burst_ms, relinks and gap_ms must not be negative")
        if not 1 <= self.patterns_per_event <= self.patterns:
            raise ValueError(f"an event cannot have {self.patterns_per_event} of {self.patterns} patterns")

    def cost(self) -> float:
        """Return the expected number of messages."""
        return self.brokers * self.publishers * self.rate * (1 + self.patterns_per_event)

    def measures(self) -> Mapping[str, Measure]:
        """Return the delivered share, and the cost of recovery."""
        return {"delivered": self._delivered, "delivered-course": self._course, "overhead": _overhead}

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario; the seed selects the places of clients and the events."""
        dice = random.Random(f"{seed}/lossy-links")
        names = [f"b{number}" for number in range(self.brokers)]
        places = [*dice.sample(names, self.brokers), *(dice.choice(names) for _ in range(self.subscribers))]
        subscribers = [Client(f"c{number}", places[number]) for number in range(self.subscribers)]
        publishers = [Client(f"p{number}", dice.choice(names)) for number in range(self.publishers)]
        actions = [*self._subscriptions(), *self._publications(dice)]
        network = Network(
            "random", brokers=self.brokers, tree_seed=seed, max_degree=4, loss=0.0 if self.burst_ms else self.loss,
            latency=LatencySpec(ms=LINK_MS),
        )  # fmt: skip
        edges = overlay_of(network).edges
        faults = [*self._bursts(edges, dice), *self._relinks(edges, dice)]
        return Scenario(
            name="lossy-links",
            network=network,
            protocol=ProtocolChoice(protocol, dict(options)),
            run=Run(seed=seed, settle_ms=500.0, max_steps=1_000_000_000),
            clients=(*subscribers, *publishers),
            actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
            faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
        )

    @property
    def _middle_ms(self) -> float:
        return START_MS + self.warm_ms

    def _bursts(self, edges: Sequence[tuple[str, str]], dice: random.Random) -> Iterator[Fault]:
        if not self.burst_ms or not self.loss:
            return
        end_ms = self._middle_ms + self.measured_ms + self.drain_ms
        between_ms = self.burst_ms * (1 - self.loss) / self.loss
        for edge in edges:
            at_ms = START_MS + dice.expovariate(1 / between_ms)
            while at_ms + self.burst_ms < end_ms:
                yield Cut(round(at_ms, 3), edge)
                yield Heal(round(at_ms + self.burst_ms, 3), edge)
                at_ms += self.burst_ms + dice.expovariate(1 / between_ms) + 0.01

    def _relinks(self, edges: Sequence[tuple[str, str]], dice: random.Random) -> Iterator[Fault]:
        """Yield link replacements; each new link joins the two parts at newly drawn brokers."""
        left = list(edges)
        for turn in range(self.relinks):
            old = left.pop(dice.randrange(len(left)))
            part = _part(old[0], left)
            rest = sorted({name for edge in (*left, old) for name in edge} - part)
            new = old
            while set(new) == set(old):
                new = (dice.choice(sorted(part)), dice.choice(rest))
            left.append(new)
            yield Relink(round(self._middle_ms + 1000 + turn * (self.gap_ms + 1), 3), old, new, self.gap_ms)

    def _subscriptions(self) -> Iterator[Action]:
        each = max(1, round(self.patterns * self.interest))
        for number in range(self.subscribers):
            for turn in range(each):
                pattern = (number * each + turn) % self.patterns
                yield SubscribeAction(0.0, f"c{number}", f"s{number}.{turn}", f"p{pattern} = TRUE")

    def _publications(self, dice: random.Random) -> Iterator[Action]:
        end_ms = START_MS + self.warm_ms + self.measured_ms + self.drain_ms
        for number in range(self.publishers):
            at_ms = START_MS + dice.uniform(0, 1000 / self.rate)
            while at_ms < end_ms:
                drawn = dice.sample(range(self.patterns), self.patterns_per_event)
                yield PublishAction(round(at_ms, 3), f"p{number}", {f"p{pattern}": True for pattern in drawn})
                at_ms += 1000 / self.rate

    def _delivered(self, run: Observed) -> Iterator[Pair]:
        """Yield the percentage of pairs of a counted event and a matching subscription that were delivered."""
        events = list(self._events(run))
        yield "percent", 100 * sum(came for _, _, came in events) / sum(due for _, due, _ in events)

    def _course(self, run: Observed) -> Iterator[Pair]:
        spans: dict[int, list[int]] = {}
        for after_us, due, came in self._events(run):
            total = spans.setdefault(after_us // SPAN_US, [0, 0])
            total[0] += due
            total[1] += came
        for span, (due, came) in sorted(spans.items()):
            if due:
                yield f"{span * SPAN_US / 1e6:g}", 100 * came / due

    def _events(self, run: Observed) -> Iterator[tuple[int, int, int]]:
        """Yield the publication time, the deliveries due, and the actual deliveries of each counted event."""
        wanted: dict[str, int] = {}
        for action in run.scenario.actions:
            if isinstance(action, SubscribeAction):
                pattern = action.filter.split()[0]
                wanted[pattern] = wanted.get(pattern, 0) + 1
        numbers: dict[str, int] = {}
        since_us, length_us = round(self._middle_ms * 1000), self.measured_ms * 1000
        for action in run.scenario.actions:
            if isinstance(action, PublishAction):
                seq = numbers[action.client] = numbers.get(action.client, 0) + 1
                after_us = run.observer.published_us[action.client, seq] - since_us
                if 0 <= after_us < length_us:
                    due = sum(wanted.get(pattern, 0) for pattern in action.attributes)
                    yield after_us, due, run.observer.deliveries.get((action.client, seq), 0)


def _part(start: str, edges: Sequence[tuple[str, str]]) -> set[str]:
    """Return the brokers connected with `start` by these edges."""
    found, ring = {start}, [start]
    while ring:
        name = ring.pop()
        for a, b in edges:
            for other in (b,) if a == name else (a,) if b == name else ():
                if other not in found:
                    found.add(other)
                    ring.append(other)
    return found


def _overhead(run: Observed) -> Iterator[Pair]:
    """Yield the number of recovery messages between brokers per published event."""
    counts = run.result.message_counts
    yield "messages", sum(counts.get(kind, 0) for kind in GOSSIP) / max(1, len(run.observer.published_us))

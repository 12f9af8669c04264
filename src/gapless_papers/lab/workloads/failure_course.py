"""Measures deliveries over time while brokers or links fail and return (paper 003, sections VII to IX).

The brokers are a tree filled level by level. Some brokers or links, drawn by the seed, fail at once, and return
together or never. Each surviving broker has a client that subscribes to everything, and some of the clients publish in
turn, all the time. A broker that returns without memory is equivalent to a new one with the same place and name: this
is how the workload replaces a broker that left permanently.

| measure | subject | value |
| --- | --- | --- |
| `throughput` | second | deliveries in the half second that begins then, in percent of those due without failures |
| `delivered` | `percent` | deliveries in the whole run, as a percentage of those due |
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from gapless.simulator import Scenario
from gapless.simulator.scenario import Crash, Cut, Fault, Heal, PublishAction, Restart
from gapless_papers.lab.measures import Measure, Observed, Pair
from gapless_papers.lab.observer import COURSE_US
from gapless_papers.lab.workloads.everybody import delivered, everybody_subscribes
from gapless_papers.lab.workloads.tree_failures import filled_tree
from gapless_papers.lab.workloads.workload import ScenarioWorkload

__all__ = ["FailureCourse"]

START_MS = 3_000.0
"""By now all subscriptions are active."""
FAIL_MS = 5_000.0
SPAN_MS = 500.0


class FailureCourse(ScenarioWorkload, frozen=True):
    """All times are milliseconds."""

    brokers: int = 120
    fanout: int = 3
    delta: int = 1
    failed: int = 20
    """The number of brokers or links that fail."""
    what: Literal["brokers", "links"] = "brokers"
    away_ms: float = 0.0
    """How long they stay down; 0 means that they never return."""
    memory: bool = False
    """Whether returning brokers still have their state."""
    every_ms: float = 50.0
    length_ms: float = 8_000.0
    """How long clients publish. They begin two seconds before the failures."""

    own_measures: ClassVar[tuple[str, ...]] = ("throughput", "delivered")

    def __post_init__(self) -> None:
        if not 0 <= self.failed < self.brokers - 1:
            raise ValueError(f"failed is {self.failed}, but there are {self.brokers} brokers, and two must live")
        if self.every_ms <= 0 or self.length_ms <= 0:
            raise ValueError("every_ms and length_ms must be more than 0")

    def cost(self) -> float:
        """Return the expected number of messages."""
        return self.brokers * self.length_ms / self.every_ms

    def measures(self) -> Mapping[str, Measure]:
        """Return the deliveries, over time and in total."""
        return {"throughput": self._throughput, "delivered": self._delivered}

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario; the seed selects the failing parts and the publishers."""
        dice = random.Random(f"{seed}/failure-course")
        tree = filled_tree(self.brokers, self.fanout)
        order = dice.sample(range(self.brokers), self.brokers)
        gone = order[: self.failed] if self.what == "brokers" else []
        living = sorted(set(order) - set(gone))
        publications = [
            PublishAction(START_MS + turn * self.every_ms, f"c{dice.choice(living)}", {"turn": turn})
            for turn in range(int(self.length_ms / self.every_ms))
        ]
        faults = self._faults(gone, dice.sample(tree.edges, self.failed))
        return everybody_subscribes(
            "failure-course", tree, self.delta, living, publications, faults,
            protocol=protocol, options=options, seed=seed,
        )  # fmt: skip

    def _faults(self, gone: list[int], links: list[tuple[str, str]]) -> Iterator[Fault]:
        back_ms = FAIL_MS + self.away_ms
        if self.what == "links":
            yield from (Cut(FAIL_MS, link) for link in links)
            yield from (Heal(back_ms, link) for link in links if self.away_ms)
            return
        yield from (Crash(FAIL_MS, f"b{number}") for number in gone)
        yield from (Restart(back_ms, f"b{number}", self.memory) for number in gone if self.away_ms)

    def _clients(self) -> int:
        return self.brokers - (self.failed if self.what == "brokers" else 0)

    def _throughput(self, run: Observed) -> Iterator[Pair]:
        per_span = int(SPAN_MS * 1000) // COURSE_US
        due = self._clients() * SPAN_MS / self.every_ms
        first, last = (int(at_ms / SPAN_MS) for at_ms in (START_MS, START_MS + self.length_ms))
        for span in range(first, last):
            came = sum(run.observer.course[part] for part in range(span * per_span, (span + 1) * per_span))
            yield f"{span * SPAN_MS / 1000:g}", 100 * came / due

    def _delivered(self, run: Observed) -> Iterator[Pair]:
        return delivered(run, int(self.length_ms / self.every_ms) * self._clients())

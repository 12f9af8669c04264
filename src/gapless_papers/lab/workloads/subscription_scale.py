"""Measures the cost of one subscription in a large tree: its latency, and the messages it causes.

The set-up is that of `tree-subscriptions`: a full binary tree with constant hops, one publisher at the root, one
newcomer at a leaf, and, if `covered`, a subscription that covers it, met `pivot` hops above the newcomer. The messages
are those of a run with the newcomer minus those of the same run before it subscribed. They include clients' messages,
but not the acknowledgements of links, which `gryphon` sends.

With `is_model` both are computed by closed forms, which tests compare with runs. With n brokers, d hops from the leaf
to the root, k hops to the pivot:

| system | latency in hops | messages, not covered | messages, covered |
| --- | --- | --- | --- |
| `delta` | 4·d: to the farthest leaf and back | 2·(n - 1) + 2 | the same |
| `gryphon` | 2·d | 2·d + 2 | the same |
| `locaps`, one path | 2·min(k + f, d), or 2·d | 2·d + 2 | plus the paths from its pivots below the root |
| `gapless` | 2·k, or 2·d | 3·d + 3 | 3·k + 3 |
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import msgspec

from gapless.overlay import binary
from gapless.simulator import Scenario
from gapless.simulator.scenario import SubscribeAction
from gapless.simulator.scenario_run import prepare, run_prepared
from gapless_papers.lab.measures import Pair
from gapless_papers.lab.observer import Observer
from gapless_papers.lab.workloads.tree_subscriptions import TreeSubscriptions
from gapless_papers.lab.workloads.workload import DirectWorkload

__all__ = ["SubscriptionScale"]

OPTIONS: Mapping[str, dict[str, Any]] = {"gapless": {"wave_ms": 60_000}, "locaps": {"paths": "one"}}
"""Options that spare large trees the traffic that is unrelated to subscriptions."""
OF_LINKS = frozenset({"Acknowledgement"})
HOP_MS = 50.0


class SubscriptionScale(DirectWorkload, frozen=True):
    """All distances are hops."""

    own_measures: ClassVar[tuple[str, ...]] = ("latency", "messages-caused")

    system: Literal["delta", "gryphon", "locaps", "gapless"]
    depth: int
    covered: bool = False
    pivot: int = 1
    f: int = 1
    is_model: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= 16:
            raise ValueError(f"depth is {self.depth}, but must be from 1 to 16")
        if not 0 <= self.pivot <= self.depth:
            raise ValueError(f"pivot is {self.pivot}, but a leaf is {self.depth} hops below the root")

    def cost(self) -> float:
        """Return the number of brokers."""
        return 1.0 if self.is_model else 2.0 ** (self.depth + 2)

    def results(self, seed: int) -> Mapping[str, Iterable[Pair]]:
        """Return the latency in milliseconds, and the number of messages."""
        hops, messages = self._computed() if self.is_model else self._measured(seed)
        return {"latency": [("ms", hops * HOP_MS)], "messages-caused": [("count", messages)]}

    def _computed(self) -> tuple[float, float]:
        d, k, f = self.depth, self.pivot, self.f
        last = min(k + f, d)
        match self.system:
            case "delta":
                return 4.0 * d, 2.0 * (2 ** (d + 1) - 2) + 2
            case "gryphon":
                return 2.0 * d, 2.0 * d + 2
            case "locaps" if self.covered:
                return 2.0 * last, 2.0 * d + 2 + sum(hops for hops in range(k, last + 1) if hops < d)
            case "locaps":
                return 2.0 * d, 2.0 * d + 2
            case "gapless":
                way = k if self.covered else d
                return 2.0 * way, 3.0 * way + 3

    def _measured(self, seed: int) -> tuple[float, float]:
        tree = TreeSubscriptions(
            depth=self.depth, f=self.f, covered=float(self.covered), pivot=self.pivot, newcomers=1, hop_ms=HOP_MS
        )
        scenario = tree.scenario(self.system, OPTIONS.get(self.system, {}), seed)
        before = msgspec.structs.replace(scenario, actions=tuple(filter(_is_not_the_newcomers, scenario.actions)))
        with_it, latency_ms = _run(scenario, seed)
        without, _ = _run(before, seed)
        assert latency_ms is not None, "a newcomer subscribes"
        return latency_ms / HOP_MS, with_it - without


def _is_not_the_newcomers(action: object) -> bool:
    return not (isinstance(action, SubscribeAction) and action.client.startswith("new"))


def _run(scenario: Scenario, seed: int) -> tuple[int, float | None]:
    """Return the number of messages of the scenario, and the latency of the newcomer, if there is one."""
    name = scenario.protocol.name
    observer = Observer(
        keeps_trace=False, run=name, protocol=name, guarantee="gcd", scenario=scenario.name, seed=seed,
        brokers=len(binary(scenario.network.depth or 0).brokers), f=scenario.network.f,
    )  # fmt: skip
    result = run_prepared(scenario, prepare(scenario, observer, seed))
    messages = sum(count for kind, count in result.message_counts.items() if kind not in OF_LINKS)
    latencies = observer.subscription_latencies_ms()
    return messages, next((ms for name, ms in latencies.items() if name.startswith("new")), None)

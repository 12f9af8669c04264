"""Random scenarios on graphs with cycles: those of `generator`, laid over a graph that the same seed draws.

What clients do is drawn as for a tree, and then the tree makes way for a graph over the same brokers: the tree with
bypasses, the tree with some links more, a ring, a grid, or a random regular graph. All draws are of their own, so
nothing that a seed means on trees depends on them.

**Crashes** are for ever. On a tree with bypasses at most f brokers of a neighbourhood crash, on other graphs at most
f in all; there any two brokers have f + 1 ways to each other that share no third.
"""

import random
from collections.abc import Mapping
from itertools import combinations
from math import ceil, isqrt
from typing import Any

import msgspec

from gapless.errors import ScenarioError
from gapless.overlay import Overlay, disjoint_paths, from_edges, grid, random_regular, ring, with_bypasses
from gapless.simulator.budget import FaultBudget
from gapless.simulator.fault_plan import fault_kinds
from gapless.simulator.generator import GeneratorLimits, generate
from gapless.simulator.scenario import Crash, Network, Scenario, SubscribeAction

__all__ = ["GRAPH", "generate_on_graph"]

GRAPH = "graph"
"""The scale of a search that means these."""

GRIDS = 1 / 6
"""How many of the graphs are grids."""


def generate_on_graph(
    seed: int, protocol: str, faults: str = "none", options: Mapping[str, Any] | None = None,
    limits: GeneratorLimits | None = None,
) -> Scenario:  # fmt: skip
    """The scenario of this seed; `faults` is none or crash."""
    kinds = fault_kinds(faults)
    if any(kind != "crash" for kind in kinds):
        raise ScenarioError(f"faults: on graphs there are crashes only, and you ask for {faults}; choose none or crash")
    scenario = generate(seed, protocol, "none", options, limits)
    dice = random.Random(f"{seed}/graph")
    f = _draw_f(dice, limits, crashes=bool(kinds))
    is_grid = random.Random(f"{seed}/graph-grid").random() < GRIDS
    network, overlay = _draw_graph(dice, scenario.network, f, robust=bool(kinds), is_grid=is_grid)
    found = msgspec.structs.replace(scenario, name=f"random-graph-{faults}-{seed}", network=network)
    if kinds:
        found = msgspec.structs.replace(found, faults=_draw_crashes(dice, found, overlay))
    return found


def _draw_f(dice: random.Random, limits: GeneratorLimits | None, *, crashes: bool) -> int:
    drawn = dice.randint(1, 3) if crashes else dice.randint(0, 3)
    return drawn if limits is None or limits.f is None else limits.f


def _draw_graph(
    dice: random.Random, network: Network, f: int, *, robust: bool, is_grid: bool
) -> tuple[Network, Overlay]:
    """A graph over at least as many brokers as there were: clients keep their places."""
    tree = from_edges(network.edges or ())
    size = max(len(tree.brokers), f + 3)
    kind = dice.choice(["bypass", "bypass", "ring", "regular", "links"])
    if is_grid:
        kind = "grid"
    if kind == "bypass" and f > 0:
        changed = msgspec.structs.replace(network, f=f, bypass=f)
        return changed, with_bypasses(tree, f)
    overlay = ring(size) if kind == "ring" else _draw_regular(dice, size, f)
    if kind == "grid":
        overlay = _draw_grid(dice, size)
    if kind == "links":
        overlay = from_edges([*tree.edges, *_draw_links(dice, tree)])
    if robust:
        overlay = _made_robust(dice, overlay, f)
    return msgspec.structs.replace(network, f=f, edges=overlay.edges), overlay


def _draw_grid(dice: random.Random, size: int) -> Overlay:
    """Of two rows or more, and no fewer columns."""
    rows = dice.randint(2, max(2, isqrt(size)))
    return grid(rows, max(2, ceil(size / rows)))


def _draw_regular(dice: random.Random, size: int, f: int) -> Overlay:
    degree = min(max(3, f + 1), size - 1)
    return random_regular(size + size * degree % 2, degree, dice.randrange(1 << 30))


def _draw_links(dice: random.Random, tree: Overlay) -> list[tuple[str, str]]:
    """Some links that the tree lacks."""
    free = [pair for pair in combinations(tree.brokers, 2) if pair[1] not in tree.neighbours(pair[0])]
    return dice.sample(free, min(len(free), dice.randint(1, 4)))


def _made_robust(dice: random.Random, overlay: Overlay, f: int) -> Overlay:
    """The graph with links added until any two brokers have a link or f + 1 ways to each other."""
    while True:
        weak = [pair for pair in combinations(overlay.brokers, 2) if _is_weak(overlay, *pair, f)]
        if not weak:
            return overlay
        overlay = from_edges([*overlay.edges, dice.choice(weak)])


def _is_weak(overlay: Overlay, a: str, b: str, f: int) -> bool:
    return b not in overlay.neighbours(a) and len(disjoint_paths(overlay.neighbours, a, b, f + 1)) <= f


def _draw_crashes(dice: random.Random, scenario: Scenario, overlay: Overlay) -> tuple[Crash, ...]:
    """Mostly of brokers that have clients, mostly while a subscription is under way."""
    network = scenario.network
    budget = FaultBudget(overlay, network.f, 0.0)
    slowest_ms = network.latency.max_ms or 0.0
    starts = [action.at_ms for action in scenario.actions if isinstance(action, SubscribeAction)] or [0.0]
    end_ms = max((action.at_ms for action in scenario.actions), default=0.0)
    found: list[Crash] = []
    for _ in range(dice.randint(1, 2 * network.f + 1)):
        broker = dice.choice(scenario.clients).broker if dice.random() < 0.7 else dice.choice(overlay.brokers)
        soon = dice.choice(starts) + dice.uniform(0, 3 * slowest_ms)
        at_ms = round(soon if dice.random() < 0.6 else dice.uniform(0, end_ms), 3)
        fits = network.bypass > 0 or len(found) < network.f
        if fits and len(found) < len(overlay.brokers) - 2 and budget.take(broker, at_ms):
            found.append(Crash(at_ms, broker))
    return tuple(sorted(found, key=lambda crash: crash.at_ms))

"""Generates random scenarios on graphs with cycles, from those that `generator` draws for trees.

The actions of clients are drawn as for a tree. Then the tree is replaced by a graph over the same
brokers: the tree with bypasses, the tree with some more links, a ring, a grid, or a random regular
graph. It has its own random generator, so that seeds mean the same on trees.

**Crashes** are permanent. On a tree with bypasses at most f brokers of a neighbourhood crash, on
other graphs at most f in total; there any two brokers have f + 1 disjoint paths.

There are two scales:

- **graph**: graphs of every kind with at least 4 to 12 brokers. A neighbourhood is measured in
  links, bypasses included, so hardly ever do more than f brokers crash.
- **large-graph**: trees of every shape with bypasses and 15 to 40 brokers. A neighbourhood is
  measured on the primary tree, so many more than f crash in total. Most faults hit an operation in
  flight (`in_flight`). Some are suspicions: a suspected broker is excluded permanently, so a
  suspicion costs as much of the budget as a crash.
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
from gapless.simulator.fault_plan import IN_FLIGHT, fault_kinds
from gapless.simulator.generator import GeneratorLimits, generate
from gapless.simulator.generator_scales import GRAPH, LARGE, LARGE_GRAPH, LONG, MIXED, SMALL
from gapless.simulator.in_flight import draw_target, operations_of
from gapless.simulator.scenario import Crash, Fault, Network, Scenario, SubscribeAction, Suspect, Trust

__all__ = ["LASTING_KINDS", "choose_graph_scale", "generate_on_graph"]

LASTING_KINDS = frozenset({"crash", IN_FLIGHT, "suspicion"})
"""The faults that exclude a broker permanently, in protocols that do not let brokers return."""

GRIDS = 1 / 6
"""The fraction of grids among the graphs."""


def choose_graph_scale(scale: str, seed: int, faults: str) -> str:
    """Return the scale for graphs that corresponds to one for trees. Half of the mixed seeds are large."""
    if scale == LONG:
        raise ScenarioError(
            "scale: in long scenarios every broker crashes and returns, and with this protocol crashed brokers do not "
            f"return; choose {SMALL}, {LARGE} or {MIXED}"
        )
    if fault_kinds(faults) != ("crash",):
        if scale in (SMALL, GRAPH):
            raise ScenarioError(
                f"scale: on small graphs there are crashes only, but faults is {faults}; choose {LARGE} or {MIXED}"
            )
        return LARGE_GRAPH
    if scale == MIXED:
        return random.Random(f"{seed}/scale").choice((GRAPH, LARGE_GRAPH))
    return {SMALL: GRAPH, LARGE: LARGE_GRAPH}.get(scale, scale)


def generate_on_graph(
    seed: int, protocol: str, faults: str = "none", options: Mapping[str, Any] | None = None,
    limits: GeneratorLimits | None = None, scale: str = GRAPH,
) -> Scenario:  # fmt: skip
    """Return the random scenario of a seed on a graph. `faults` is none or crash, and on large graphs also in-flight
    and suspicion.
    """
    kinds = fault_kinds(faults)
    if scale == LARGE_GRAPH:
        return _generate_large(seed, protocol, faults, options, limits)
    if any(kind != "crash" for kind in kinds):
        raise ScenarioError(f"faults: on graphs there are crashes only, but faults is {faults}; choose none or crash")
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
    """Return a graph with at least as many brokers as the tree, so that clients keep their places."""
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
    """Return a grid with at least two rows, and at least as many columns."""
    rows = dice.randint(2, max(2, isqrt(size)))
    return grid(rows, max(2, ceil(size / rows)))


def _draw_regular(dice: random.Random, size: int, f: int) -> Overlay:
    degree = min(max(3, f + 1), size - 1)
    return random_regular(size + size * degree % 2, degree, dice.randrange(1 << 30))


def _draw_links(dice: random.Random, tree: Overlay) -> list[tuple[str, str]]:
    """Return some links that the tree does not have."""
    free = [pair for pair in combinations(tree.brokers, 2) if pair[1] not in tree.neighbours(pair[0])]
    return dice.sample(free, min(len(free), dice.randint(1, 4)))


def _made_robust(dice: random.Random, overlay: Overlay, f: int) -> Overlay:
    """Return the graph with links added until any two brokers have a link or f + 1 disjoint paths."""
    while True:
        weak = [pair for pair in combinations(overlay.brokers, 2) if _is_weak(overlay, *pair, f)]
        if not weak:
            return overlay
        overlay = from_edges([*overlay.edges, dice.choice(weak)])


def _is_weak(overlay: Overlay, a: str, b: str, f: int) -> bool:
    return b not in overlay.neighbours(a) and len(disjoint_paths(overlay.neighbours, a, b, f + 1)) <= f


def _draw_crashes(dice: random.Random, scenario: Scenario, overlay: Overlay) -> tuple[Crash, ...]:
    """Return crashes, mostly of brokers with clients and while a subscription is in progress."""
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


# ---- large graphs


def _generate_large(
    seed: int, protocol: str, faults: str, options: Mapping[str, Any] | None, limits: GeneratorLimits | None
) -> Scenario:
    kinds = fault_kinds(faults)
    unfit = [kind for kind in kinds if kind not in LASTING_KINDS]
    if unfit:
        raise ScenarioError(
            f"faults: on large graphs there are crash, {IN_FLIGHT} and suspicion, but not {', '.join(unfit)}"
        )
    scenario = generate(seed, protocol, "none", options, limits, scale=LARGE_GRAPH)
    dice = random.Random(f"{seed}/large-graph")
    f = _draw_f(dice, limits, crashes=True)
    network = msgspec.structs.replace(scenario.network, f=f, bypass=f)
    found = msgspec.structs.replace(scenario, name=f"random-large-graph-{faults}-{seed}", network=network)
    if kinds:
        found = msgspec.structs.replace(found, faults=_LastingFaults(dice, found, kinds).draw())
    return found


class _LastingFaults:
    """Draws faults that exclude brokers permanently, at most f in a neighbourhood of the primary tree."""

    def __init__(self, dice: random.Random, scenario: Scenario, kinds: tuple[str, ...]) -> None:
        self._dice = dice
        self._kinds = kinds
        self._network = network = scenario.network
        self._clients = scenario.clients
        self._tree = from_edges(network.edges or ())
        self._graph = with_bypasses(self._tree, network.f)
        self._budget = FaultBudget(self._tree, network.f, 0.0)
        self._operations = operations_of(scenario.actions, scenario.clients)
        self._end_ms = max(action.at_ms for action in scenario.actions)
        self._faults: list[Fault] = []

    def draw(self) -> tuple[Fault, ...]:
        """Return faults of up to a third of the brokers, as far as the budget allows, some of them in quick
        succession.
        """
        dice = self._dice
        for _ in range(dice.randint(1, len(self._tree.brokers) // 3)):
            broker, at_ms = self._draw_place()
            self._take(broker, at_ms)
            while dice.random() < 0.4:
                broker = dice.choice(self._tree.within(broker, 2 * self._network.f + 3))
                at_ms = round(at_ms + dice.uniform(0, 2 * self._network.detection.max_ms), 3)
                self._take(broker, at_ms)
        return tuple(sorted(self._faults, key=lambda fault: fault.at_ms))

    def _draw_place(self) -> tuple[str, float]:
        dice = self._dice
        if self._operations and (self._kinds == (IN_FLIGHT,) or dice.random() < 0.7):
            places = [client.broker for client in self._clients]
            hop_ms = self._network.latency.max_ms or 0.0
            return draw_target(dice, self._tree, self._operations, places, hop_ms)
        return dice.choice(self._tree.brokers), round(dice.uniform(0, self._end_ms), 3)

    def _take(self, broker: str, at_ms: float) -> None:
        if not self._budget.take(broker, at_ms):
            return
        if self._dice.choice(self._kinds) == "suspicion":
            self._faults += self._draw_suspicion(broker, at_ms)
        else:
            self._faults.append(Crash(at_ms, broker))

    def _draw_suspicion(self, target: str, at_ms: float) -> list[Fault]:
        """Let one or two neighbours or clients suspect a broker, most of them temporarily."""
        dice = self._dice
        own = [client.name for client in self._clients if client.broker == target]
        observers = [*self._graph.neighbours(target), *own]
        found: list[Fault] = []
        for observer in dice.sample(observers, min(len(observers), dice.choice([1, 1, 2]))):
            start_ms = round(at_ms + dice.uniform(0, 50), 3)
            found.append(Suspect(start_ms, observer, target))
            if dice.random() < 0.7:
                found.append(Trust(round(start_ms + dice.choice([5.0, 100.0, 600.0]), 3), observer, target))
        return found

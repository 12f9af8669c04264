"""Defines the sizes and lengths of random scenarios.

- **small**: failures among a few brokers, thousands of runs in minutes.
- **large**: trees of every shape with up to 40 brokers and a diameter of up to 12, and up to 60
  clients: failures that need brokers out of each other's sight.
- **long**: every broker fails and returns at least once, with other faults on top: failures after a
  long history.
- **large-graph**: trees of every shape with 15 to 40 brokers and few clients, for
  `graph_scenarios`.
- **mixed**: each seed has one of these, by `SHARES`; small ones are the small scenarios of the same
  seeds. The others take about as long together as all the small ones.
"""

import random

import msgspec

from gapless.errors import ScenarioError
from gapless.simulator.generator_trees import DEPTH

__all__ = [
    "GRAPH",
    "LARGE",
    "LARGE_GRAPH",
    "LONG",
    "MIXED",
    "SCALES",
    "SHARES",
    "SMALL",
    "GeneratorLimits",
    "Scale",
    "choose_scale",
]


SMALL = "small"
LARGE = "large"
LONG = "long"
GRAPH = "graph"
LARGE_GRAPH = "large-graph"
MIXED = "mixed"


class GeneratorLimits(msgspec.Struct, frozen=True):
    """The limits of random scenarios: large enough to fail, small enough to run thousands."""

    brokers: tuple[int, int] = (4, 12)
    publishers: tuple[int, int] = (3, 6)
    subscribers: tuple[int, int] = (2, 5)
    subscriptions: tuple[int, int] = (8, 20)
    publications: tuple[int, int] = (50, 110)
    """The number of scripted publications, in addition to replies."""
    active_ms: tuple[int, int] = (1000, 2500)
    """How long clients are active."""
    settle_ms: float = 4000.0
    """The time at the end of a run for all events to arrive."""
    f: int | None = None
    """The number of failures of adjacent brokers to tolerate; by default it is drawn."""


class Scale(msgspec.Struct, frozen=True):
    """How the scenarios of one scale differ from small ones."""

    limits: GeneratorLimits = GeneratorLimits()
    faults: tuple[int, int] = (2, 8)
    """The number of faults to draw, of which some may not fit the budget."""
    is_wide: bool = False
    """Whether trees have every shape, clients are far from and next to each other, and faults follow one another at
    every distance."""
    depth: int = DEPTH
    """The maximum depth of these trees."""
    is_rolling: bool = False
    """Whether every broker first has a temporary fault. Clients are active for as long as that takes."""


SCALES = {
    SMALL: Scale(),
    LARGE: Scale(
        GeneratorLimits(
            brokers=(8, 40), publishers=(3, 12), subscribers=(4, 48), subscriptions=(15, 60), publications=(60, 150),
            active_ms=(1500, 4000), settle_ms=15_000.0,
        ),
        faults=(4, 30),
        is_wide=True,
    ),
    LONG: Scale(
        GeneratorLimits(
            brokers=(5, 24), publishers=(3, 8), subscribers=(2, 12), subscriptions=(15, 50), publications=(100, 250),
            active_ms=(5000, 15_000), settle_ms=15_000.0,
        ),
        faults=(0, 15),
        is_wide=True,
        is_rolling=True,
    ),
    LARGE_GRAPH: Scale(
        GeneratorLimits(
            brokers=(15, 40), publishers=(3, 5), subscribers=(2, 4), subscriptions=(8, 20), publications=(20, 50),
            settle_ms=15_000.0,
        ),
        is_wide=True,
        depth=20,
    ),
}  # fmt: skip
SHARES = {SMALL: 0.8, LARGE: 0.1, LONG: 0.1}


def choose_scale(name: str, seed: int) -> str:
    """Return the scale of a seed, which the seed determines if the scale is `mixed`."""
    if name == MIXED:
        [name] = random.Random(f"{seed}/scale").choices([*SHARES], [*SHARES.values()])
    if name not in SCALES:
        raise ScenarioError(f"scale: there is no {name!r}; choose one of {', '.join([*SCALES, GRAPH, MIXED])}")
    return name

"""Plans the deletion of publishers' events by an operator, from its own random generator on top of the faults."""

import random

from gapless.simulator.fault_plan import Hazards
from gapless.simulator.scenario import DeleteEvents, Fault

__all__ = ["DELETE", "draw_deletions", "draws_deletions"]

DELETE = "delete"
_SHARE = 0.1
"""The fraction of runs with all kinds of faults in which events are deleted."""


def draws_deletions(seed: int) -> bool:
    """Return whether events are deleted in this run with all kinds of faults."""
    return random.Random(f"{seed}/with deletions").random() < _SHARE


def draw_deletions(
    seed: int, brokers: tuple[str, ...], publishers: list[str], hazards: Hazards, faults: tuple[Fault, ...]
) -> tuple[Fault, ...]:  # fmt: skip
    """Return the faults with one to three deletions added, each requested from one broker or from all."""
    rng = random.Random(f"{seed}/deletions")
    rows: list[Fault] = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        at_ms, publisher = round(rng.uniform(0, 1.2 * hazards.until_ms), 3), rng.choice(publishers)
        receivers = brokers if rng.random() < 0.5 else [rng.choice(brokers)]
        rows += [DeleteEvents(at_ms, publisher, name) for name in receivers]
    return tuple(sorted([*rows, *faults], key=lambda fault: fault.at_ms))

"""Plans wrong clocks, from its own random generator on top of the other faults.

Some brokers are milliseconds apart, some an hour, a day or ten years. Some clocks drift. Some are
set while the broker runs, forward or back, and a restarted broker may have another clock than
before. Only differences matter, so a broker that is an hour late is one that all others are an hour
ahead of.
"""

import random

from gapless.overlay import Overlay
from gapless.simulator.scenario import Fault, Restart, SetClock

__all__ = ["CLOCK", "draw_clocks", "draws_clocks"]

CLOCK = "clock"
_AHEAD_MS = (0.0, 0.0, 1.0, 50.0, 400.0, 5_000.0, 3_600_000.0, 86_400_000.0, 315_360_000_000.0)
_DRIFTS = (0.0, 0.0, 0.0, 0.0005, -0.0005, 0.1, -0.1)
LONGEST_MS = 200_000.0
"""The offset between clocks, longer than any run: no clock is ever behind the run's, by which queries such as "since
10:32" are checked."""
_SHARE = 0.1
"""The fraction of runs with all kinds of faults in which clocks are wrong."""
_SET = 0.3
"""The probability that a clock is set while its broker runs, or is different after a restart."""


def draws_clocks(seed: int) -> bool:
    """Return whether clocks are wrong in this run with all kinds of faults."""
    return random.Random(f"{seed}/with clocks").random() < _SHARE


def draw_clocks(seed: int, overlay: Overlay, faults: tuple[Fault, ...], until_ms: float) -> tuple[Fault, ...]:
    """Return the faults, with changes of clocks added."""
    rng = random.Random(f"{seed}/clocks")
    wrong = rng.sample(overlay.brokers, rng.randint(1, len(overlay.brokers)))
    rows: list[Fault] = [_drawn(rng, broker, 0.0) for broker in wrong]
    rows += [
        _drawn(rng, broker, round(rng.uniform(0, until_ms), 3)) for broker in overlay.brokers if rng.random() < _SET
    ]
    rows += [
        _drawn(rng, fault.broker, fault.at_ms)
        for fault in faults
        if isinstance(fault, Restart) and not fault.memory and rng.random() < _SET
    ]
    return tuple(sorted([*rows, *faults], key=lambda fault: fault.at_ms))


def _drawn(rng: random.Random, broker: str, at_ms: float) -> SetClock:
    ahead_ms, drift = rng.choice(_AHEAD_MS) * rng.uniform(0.5, 1), rng.choice(_DRIFTS)
    return SetClock(at_ms, broker, round(ahead_ms + max(0.0, -drift) * LONGEST_MS, 3), drift)

"""Explores all interleavings of a small scenario with the real code of a protocol, instead of random ones.

| module | contents |
| --- | --- |
| `threads` | the acts of a scenario, and which of them keep their order |
| `places` | the state of one node, as a number; the result of an input is computed once |
| `world` | the state of the whole network, its transitions, and which of them commute |
| `exploring` | the search: sleep sets, visited states, delay bounds |
| `schedules` | one schedule: run, checked, written to a file and read from it |
"""

from gapless.simulator.explorer.exploring import Bounds, Report, explore
from gapless.simulator.explorer.schedules import load_schedule, run_schedule, save_schedule

__all__ = ["Bounds", "Report", "explore", "load_schedule", "run_schedule", "save_schedule"]

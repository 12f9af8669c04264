"""Explores the interleavings of a small scenario on the shipped code of a protocol, instead of drawing some of them.

| file | contents |
| --- | --- |
| `threads` | what happens in a scenario, and which of it keeps its order |
| `places` | the state of one node, as a number; what an input makes of it is computed once |
| `world` | the state of everything, its transitions, and which of them commute |
| `exploring` | the search: sleep sets, states that were met before, delay bounds |
| `schedules` | one schedule: run, judged, written into a file and read from it |
"""

from gapless.simulator.explorer.exploring import Bounds, Report, explore
from gapless.simulator.explorer.schedules import load_schedule, run_schedule, save_schedule

__all__ = ["Bounds", "Report", "explore", "load_schedule", "run_schedule", "save_schedule"]

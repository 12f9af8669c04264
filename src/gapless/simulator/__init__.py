"""The simulator: runs a protocol over a tree of brokers in virtual time, with all kinds of faults.

>>> from gapless.simulator import generate
>>> generate(7, "gapless", faults="crash").name
'random-crash-7'
"""

from gapless.simulator.comparison import Entry, compare
from gapless.simulator.engine import Simulation
from gapless.simulator.expected_anomalies import drop_expected
from gapless.simulator.failures import NodeError, RunawayError, SimulationError
from gapless.simulator.generator import GeneratorLimits, generate
from gapless.simulator.latency import Latency
from gapless.simulator.replies import ReplyRule
from gapless.simulator.result import Result
from gapless.simulator.run_metrics import Figures
from gapless.simulator.scenario import Scenario
from gapless.simulator.scenario_checks import check_scenario
from gapless.simulator.scenario_file import load_scenario, parse_scenario
from gapless.simulator.scenario_run import run_scenario
from gapless.simulator.search import Finding, Progress, SearchReport, search
from gapless.simulator.settings import NodeModel, Settings
from gapless.simulator.shrink import shrink
from gapless.simulator.trial import Outcome, try_scenario

__all__ = [
    "Entry", "Figures", "Finding", "GeneratorLimits", "Latency", "NodeError", "NodeModel", "Outcome", "Progress",
    "ReplyRule", "Result", "RunawayError", "Scenario", "SearchReport", "Settings", "Simulation", "SimulationError",
    "check_scenario", "compare", "drop_expected", "generate", "load_scenario", "parse_scenario", "run_scenario",
    "search", "shrink", "try_scenario",
]  # fmt: skip

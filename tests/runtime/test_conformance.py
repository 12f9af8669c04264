"""The same scenarios through the simulator and through TCP, with the same outcome.

The comparison uses only results that do not depend on latencies: for each subscription and publisher, the events
delivered, in order, and the cuts. The checker runs on both.
"""

from pathlib import Path

import msgspec
import pytest

from gapless.checkers import check
from gapless.runtime.event_loop import run
from gapless.simulator import load_scenario, run_scenario
from gapless.simulator.scenario import ProtocolChoice
from gapless.trace import Trace

from .live_scenario import run_live

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE / "scenarios").glob("*.toml"))
EXAMPLES = HERE.parents[1] / "examples"


def outcome(trace: Trace, names: dict[str, str]) -> dict[str, dict[str, list[object]]]:
    found: dict[str, dict[str, list[object]]] = {
        names.get(row.subscription_id, row.subscription_id): {} for row in trace.subscriptions
    }
    for cut in trace.cuts:
        found[names.get(cut.subscription_id, cut.subscription_id)][cut.publisher] = [f"from {cut.from_seq}"]
    for act in sorted(trace.history, key=lambda row: (row.client, row.step)):
        if act.subscription_id is not None:
            publisher = act.event_id.rpartition(":")[0]
            found[names.get(act.subscription_id, act.subscription_id)][publisher].append(act.event_id)
    return found


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: str(file.stem))
def test_the_outcome_is_that_of_the_simulator(file: Path, tmp_path: Path) -> None:
    scenario = load_scenario(file)
    simulated = run_scenario(scenario).trace
    assert simulated is not None
    assert check(simulated).status == "valid"
    live, names = run(run_live(scenario, tmp_path, speed=2.0, patient=True))
    verdict = check(live)
    assert verdict.status == "valid", verdict.reason
    assert outcome(live, names) == outcome(simulated, {})


@pytest.mark.parametrize("name", ["late_publisher", "request_reply"])
def test_the_examples_hold_what_they_promise(name: str, tmp_path: Path) -> None:
    live, _ = run(run_live(load_scenario(EXAMPLES / f"{name}.toml"), tmp_path, speed=2.0))
    verdict = check(live)
    assert verdict.status == "valid", verdict.reason


@pytest.mark.parametrize("name", ["filters", "requests"])
def test_another_protocol_runs_on_the_same_brokers(name: str, tmp_path: Path) -> None:
    scenario = load_scenario(HERE / "scenarios" / f"{name}.toml")
    other = msgspec.structs.replace(scenario, protocol=ProtocolChoice("locaps"))
    simulated = run_scenario(other).trace
    assert simulated is not None
    live, names = run(run_live(other, tmp_path, speed=2.0, patient=True))
    assert check(live).status == "valid"
    assert outcome(live, names) == outcome(simulated, {})

"""Every invariant of the protocol detects a planted defect before any client is affected."""

from collections.abc import Callable

import pytest

from gapless.protocol import InvariantError
from gapless.protocols.gapless import handover, inputs, journal, local, positions
from gapless.protocols.gapless.journal_messages import Hold
from gapless.protocols.gapless.routing_state import WaveState
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.parts.clock import Clock
from gapless.simulator import generate, try_scenario
from gapless.simulator.failures import NodeError
from gapless.simulator.scenario_run import run_scenario

Patch = pytest.MonkeyPatch


def release_at_once(patch: Patch) -> None:
    patch.setattr(journal, "_confirmed_length", lambda s: len(s.journal))


def hold_after_a_promise(patch: Patch) -> None:
    take = journal.receive_hold

    def take_anyway(s: BrokerState, peer: str, message: Hold) -> None:
        acceptor = s.acceptors[peer]
        promised, acceptor.promised_below = acceptor.promised_below, 0
        take(s, peer, message)
        acceptor.promised_below = promised

    patch.setitem(inputs.AT_ONCE, Hold, take_anyway)


def ignore_clocks(patch: Patch) -> None:
    patch.setattr(Clock, "see", lambda self, stamp: None)


def forget_logs(patch: Patch) -> None:
    patch.setattr(positions, "trim", lambda s: s.log.clear())


def echo_at_once(patch: Patch) -> None:
    patch.setattr(positions, "WaveState", lambda at, origin, need, *rest: WaveState(at, origin, 0, *rest))


def expect_nobody(patch: Patch) -> None:
    patch.setattr(local, "overlap", lambda one, other: False)


def install_nothing(patch: Patch) -> None:
    patch.setattr(handover, "_install_subscription", lambda *arguments: None)


DEFECTS: list[tuple[str, Callable[[Patch], None], str, int]] = [
    ("I1", release_at_once, "crash", 1),
    ("I1", hold_after_a_promise, "crash,suspicion", 22),
    ("I2", ignore_clocks, "clock", 0),
    ("I3", forget_logs, "none", 0),
    ("I4", echo_at_once, "crash", 9),
    ("I5", expect_nobody, "none", 0),
    ("I5", install_nothing, "crash", 1),
]


@pytest.mark.parametrize(
    ("name", "defect", "faults", "seed"), DEFECTS, ids=lambda each: getattr(each, "__name__", each)
)
def test_a_defect_breaks_its_invariant(
    name: str, defect: Callable[[Patch], None], faults: str, seed: int, monkeypatch: Patch
) -> None:
    scenario = generate(seed, "gapless", faults=faults, scale="small")
    defect(monkeypatch)
    assert try_scenario(scenario).symptoms == (f"invariant {name}",)


@pytest.mark.parametrize(
    ("name", "rule", "faults", "seed"),
    [("I1", "majority", "all", 0), ("I6", "active-only", "all", 0)],
)
def test_a_rule_that_is_switched_off_breaks_an_invariant(name: str, rule: str, faults: str, seed: int) -> None:
    scenario = generate(seed, "gapless", faults=faults, scale="small", options={"switched_off": (rule,)})
    assert try_scenario(scenario).symptoms == (f"invariant {name}",)


def test_without_the_assertions_the_run_continues(monkeypatch: Patch) -> None:
    scenario = generate(0, "gapless", faults="none", scale="small")
    forget_logs(monkeypatch)
    assert try_scenario(scenario, invariants=False).status == "valid"


def test_the_error_names_the_broker_the_time_and_the_reason(monkeypatch: Patch) -> None:
    scenario = generate(1, "gapless", faults="crash", scale="small")
    release_at_once(monkeypatch)
    with pytest.raises(NodeError) as caught:
        run_scenario(scenario, check_invariants=True)
    assert "acceptors had 0" in str(caught.value)
    assert isinstance(caught.value.__cause__, InvariantError)

"""No guarantee depends on clocks: runs in the simulator with wrong clocks at brokers."""

import pytest

from gapless.registry import find_protocol, protocols
from gapless.simulator import generate, parse_scenario, search, try_scenario
from gapless.simulator.clock_plan import draws_clocks
from gapless.simulator.clocks import NodeClock
from gapless.simulator.scenario import SetClock

ROBUST = [name for name, spec in sorted(protocols().items()) if "clock" in spec.copes_with]
READABLE = [name for name in ROBUST if find_protocol(name).keeps_history]


def test_protocols_that_stamp_events_claim_it() -> None:
    assert {"gapless"} <= set(ROBUST)


@pytest.mark.parametrize("protocol", ROBUST)
@pytest.mark.parametrize("faults", ["clock", "clock,crash"])
@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_no_violation_with_clocks_that_are_wrong(protocol: str, faults: str, times: int) -> None:
    report = search(protocol, 4 * times, first_seed=0, faults=faults, processes=1, scale="small")
    assert report.finding is None, report.finding.repeat


def test_runs_with_all_kinds_of_faults_have_wrong_clocks_now_and_then() -> None:
    seed = next(seed for seed in range(100) if draws_clocks(seed))
    drawn = [fault for fault in generate(seed, "gapless", "all").faults if isinstance(fault, SetClock)]
    assert drawn
    assert not any(isinstance(fault, SetClock) for fault in generate(seed, "gapless", "crash").faults)


def readings(protocol: str, *clocks: str) -> str:
    """Run a scenario with two publishers at the ends of a chain, and a client between them that repeatedly reads all of
    history."""
    script = [
        f'name = "readings"\nprotocol = {{ name = "{protocol}" }}\nrun = {{ settle_ms = 10000 }}',
        'network = { shape = "chain", brokers = 5, f = 1, latency = { ms = 2 } }',
        'clients = [{ name = "p", broker = "b0" }, { name = "q", broker = "b4" }, { name = "c", broker = "b2" }]',
    ]
    for client in "pq":
        call = f'[[actions]]\nclient = "{client}"\n'
        script.append(f'{call}do = "advertise"\nadvertisement = "{client}/a"\nfilter = "x > 0"\nat_ms = 1')
        publish = 'do = "publish"\nattributes = { x = 1 }\ncount = 400\nevery_ms = 10'
        script.append(f"{call}{publish}\nat_ms = 2000")
    for number in range(8):
        read = f'do = "subscribe"\nsubscription = "s{number}"\nfilter = "x > 0"\nsince_ms = 0\nuntil_ms = -1'
        script.append(f'[[actions]]\nclient = "c"\n{read}\nat_ms = {2_100 + number * 487}')
    return "\n".join([*script, *(f'[[faults]]\nkind = "clock"\n{clock}' for clock in clocks)])


HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.mark.parametrize("protocol", READABLE)
@pytest.mark.parametrize(
    "clocks",
    [
        [f'broker = "b4"\nat_ms = 0\nahead_ms = {DAY_MS}'],
        [f'broker = "b0"\nat_ms = 0\nahead_ms = {HOUR_MS}', f'broker = "b4"\nat_ms = 0\nahead_ms = {DAY_MS}'],
        [f'broker = "b4"\nat_ms = 3000\nahead_ms = {DAY_MS}', 'broker = "b4"\nat_ms = 4000\nahead_ms = 0'],
        ['broker = "b0"\nat_ms = 0\ndrift = 0.5', 'broker = "b3"\nat_ms = 0\nahead_ms = 30000\ndrift = -0.5'],
    ],
    ids=["a day ahead", "an hour and a day", "set while it runs", "drift"],
)
def test_a_read_ends_with_what_was_confirmed_before_the_call(protocol: str, clocks: list[str]) -> None:
    outcome = try_scenario(parse_scenario(readings(protocol, *clocks)))
    assert outcome.status == "valid", outcome.summary


def test_a_node_clock_does_not_advance_when_it_is_set_back() -> None:
    clock = NodeClock()
    assert clock(1_000) == 1_000
    clock.set(1_000, 500, 0.0)
    assert clock(1_100) == 1_600
    clock.set(1_100, 0, 0.0)
    assert [clock(now) for now in (1_200, 1_600, 1_700)] == [1_600, 1_600, 1_700]
    clock.set(1_700, 0, 0.5)
    assert clock(1_900) == 2_000
    clock.set(1_900, -900, 0.0)
    clock.begin()
    assert clock(2_000) == 1_100, "a restarted broker accepts its clock as it is"

"""Random runs with joins and leaves: no violation with the repairs, and one soon without each of them.

Longer searches: `gapless sim search --protocol vcube --runs 5000`.
"""

import msgspec
import pytest

from gapless.errors import ScenarioError
from gapless.registry import find_protocol
from gapless.simulator import GeneratorLimits, generate, run_scenario, search, shrink, try_scenario
from gapless.trace import Trace

CROWDED = GeneratorLimits(
    brokers=(8, 16), publishers=(6, 10), subscribers=(4, 10), subscriptions=(60, 120), publications=(100, 200)
)


@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation(times: int) -> None:
    report = search("vcube", 5 * times, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown == 0


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_no_violation_with_many_subscriptions(times: int) -> None:
    for seed in range(2 * times):
        outcome = try_scenario(generate(seed, "vcube", limits=CROWDED))
        assert outcome.status == "valid", (seed, outcome.symptoms)


@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_where_brokers_stop_acknowledging_at_once(times: int) -> None:
    report = search("vcube", 3 * times, first_seed=500, options={"waiting_max": 1}, processes=1)
    assert report.finding is None, report.finding.repeat


@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_with_the_order_and_the_barriers_of_the_printed_algorithm(times: int) -> None:
    report = search("vcube", 5 * times, first_seed=800, options={"first": "smallest", "barrier": "all"}, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown == 0


@pytest.mark.parametrize(("repair", "limits"), [("receivers", CROWDED), ("starting-cut", None)])
def test_without_a_repair_a_violation_is_found(repair: str, limits: GeneratorLimits | None) -> None:
    report = search("vcube", 400, options={"switched_off": [repair]}, processes=1, limits=limits, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.symptom in {"unobserved", "causal-inversion", "gap"}


def missed(trace: Trace) -> list[str]:
    """Return the events that were published on a topic while a subscription to it was active and never arrived."""
    delivered = {(row.subscription_id, row.event_id) for row in trace.history if row.kind == "deliver"}
    return [
        f"{event.event_id} for {row.subscription_id}"
        for row in trace.subscriptions
        if row.active_ms is not None and row.ended_ms is None
        for event in trace.events
        if event.published_ms > row.active_ms
        and f"topic = '{msgspec.json.decode(event.attributes)['topic']}'" == row.filter
        and (row.subscription_id, event.event_id) not in delivered
    ]


@pytest.mark.parametrize("protocol", ["vcube", "srpt"])
def test_from_activation_on_nothing_is_missed(protocol: str) -> None:
    """This is stricter than the guarantee, which would allow a subscription to start with its first event."""
    judged = 0
    for seed in range(15):
        trace = run_scenario(generate(seed, protocol)).trace
        assert trace is not None
        assert missed(trace) == []
        judged += sum(row.active_ms is not None and row.ended_ms is None for row in trace.subscriptions)
    assert judged > 50


def test_the_same_seed_gives_the_same_trace() -> None:
    first, second = (run_scenario(generate(11, "vcube"), with_messages=True).trace for _ in range(2))
    assert first == second


def test_it_is_registered() -> None:
    spec = find_protocol("vcube")
    assert spec.guarantee == "topic-causal"
    assert spec.topics_only
    assert spec.copes_with == frozenset()


def test_a_search_refuses_sizes_that_the_protocol_refuses() -> None:
    with pytest.raises(
        ScenarioError, match=r"limits.brokers: protocol 'vcube' supports no number of brokers from 5 to 7"
    ):
        generate(0, "vcube", limits=GeneratorLimits(brokers=(5, 7)))


def test_a_finding_is_reduced_to_a_scenario_that_the_protocol_accepts() -> None:
    """The protocol tolerates no faults, so one crash suffices; no broker can be removed, because seven do not form a
    hypercube.
    """
    minimal = shrink(generate(0, "vcube", "crash"), "unobserved")
    assert len({name for edge in minimal.network.edges or () for name in edge}) == 8
    assert len(minimal.actions) == len(minimal.faults) == 1

"""Random scenarios stay within the fault budget and the bounds, and contain the faults that they claim."""

from collections import Counter
from functools import cache
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.errors import ScenarioError
from gapless.filters import parse
from gapless.overlay import Overlay, chain
from gapless.simulator import GeneratorLimits, Scenario, check_scenario, generate, parse_scenario, run_scenario
from gapless.simulator.budget import FaultBudget
from gapless.simulator.generator_scales import SHARES, choose_scale
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import (
    AdvertiseAction,
    Crash,
    Cut,
    Heal,
    PublishAction,
    Restart,
    SubscribeAction,
    Suspect,
    Trust,
    UnsubscribeAction,
)

from .flooding import FLOODING

KINDS = ("none", "crash", "cut", "suspicion", "all")


@cache
def scenarios(faults: str) -> list[Scenario]:
    return [generate(seed, "flooding", faults) for seed in range(60)]


def faulty_spans(scenario: Scenario) -> list[tuple[str, float, float]]:
    spans = []
    faults = scenario.faults
    for fault in faults:
        match fault:
            case Crash(at, broker):
                ends = [f.at_ms for f in faults if isinstance(f, Restart) and f.broker == broker and f.at_ms >= at]
            case Cut(at, between):
                broker = between[0]
                ends = [f.at_ms for f in faults if isinstance(f, Heal) and f.between == between and f.at_ms >= at]
            case Suspect(at, observer, broker):
                ends = [
                    f.at_ms
                    for f in faults
                    if isinstance(f, Trust) and (f.observer, f.target) == (observer, broker) and f.at_ms >= at
                ]
            case _:
                continue
        spans.append((broker, at, min(ends, default=inf)))
    return spans


def most_at_once(scenario: Scenario, overlay: Overlay, margin_ms: float) -> int:
    spans = [(broker, start, end + margin_ms) for broker, start, end in faulty_spans(scenario)]
    worst = 0
    for centre in overlay.brokers:
        ball = {name for name in overlay.brokers if overlay.distance(centre, name) <= scenario.network.f + 1}
        for _, moment, _ in spans:
            faulty = {broker for broker, start, end in spans if broker in ball and start <= moment < end}
            worst = max(worst, len(faulty))
    return worst


@pytest.mark.parametrize("faults", KINDS[1:])
def test_never_more_than_f_faulty_brokers_in_a_neighbourhood(faults: str) -> None:
    at_the_limit = 0
    for scenario in scenarios(faults):
        assert 1 <= scenario.network.f <= 3
        margin_ms = scenario.network.detection.max_ms + (scenario.network.latency.max_ms or 0.0)
        worst = most_at_once(scenario, overlay_of(scenario.network), margin_ms)
        assert worst <= scenario.network.f
        at_the_limit += worst == scenario.network.f
    assert at_the_limit >= 15


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50), st.integers(0, 20)), max_size=30), st.integers(1, 3))
@settings(max_examples=60)
def test_the_budget_never_gives_too_much(wishes: list[tuple[int, int, int]], f: int) -> None:
    overlay = chain(7)
    budget = FaultBudget(overlay, f, margin_ms=3)
    taken = [
        (f"b{number}", start, start + length + 3)
        for number, start, length in wishes
        if budget.take(f"b{number}", start, start + length)
    ]
    for centre in overlay.brokers:
        for moment in range(80):
            faulty = [b for b, start, end in taken if overlay.distance(centre, b) <= f + 1 and start <= moment < end]
            assert len(faulty) <= f


def test_the_budget_gives_what_it_can() -> None:
    budget = FaultBudget(chain(9), 1, margin_ms=10)
    assert budget.take("b0", 0, 100)
    assert not budget.take("b0", 105, 106)
    assert not budget.take("b4", 50, 60)
    assert budget.take("b5", 50)
    assert budget.take("b0", 110)


@pytest.mark.parametrize("faults", KINDS)
def test_scenarios_can_be_run_and_saved(faults: str) -> None:
    for scenario in scenarios(faults)[:15]:
        check_scenario(scenario, FLOODING)
        assert parse_scenario(scenario.to_toml(), protocol=FLOODING) == scenario
    result = run_scenario(scenarios(faults)[0], protocol=FLOODING)
    assert result.quiesced
    assert result.refusals == ()


def test_scenarios_keep_their_bounds() -> None:
    for scenario in scenarios("none"):
        assert 0 <= scenario.network.f <= 2
        assert scenario.faults == ()
        assert 4 <= len(overlay_of(scenario.network).brokers) <= 12
        publishers = {action.client for action in scenario.actions if isinstance(action, AdvertiseAction)}
        assert 3 <= len(publishers) <= 6
        kinds = Counter(type(action) for action in scenario.actions)
        assert kinds[SubscribeAction] >= 8
        assert kinds[SubscribeAction] - kinds[UnsubscribeAction] <= 20
        assert 50 <= kinds[PublishAction] <= 122


def test_published_events_have_been_advertised() -> None:
    for scenario in scenarios("all")[:20]:
        filters: dict[str, str] = {}
        for action in scenario.actions:
            if isinstance(action, AdvertiseAction):
                filters[action.client] = action.filter
            if isinstance(action, PublishAction):
                assert parse(filters[action.client]).matches(action.attributes)


def test_together_they_show_everything_that_can_hurt() -> None:
    seen: Counter[str] = Counter()
    for scenario in scenarios("all"):
        at = {client.broker for client in scenario.clients}
        detect = scenario.network.detection
        crashes = {f.broker: f.at_ms for f in scenario.faults if isinstance(f, Crash)}
        seen["never returned"] += any(end == inf for _, _, end in faulty_spans(scenario))
        seen["clients of the dead"] += bool(at.intersection(crashes))
        for fault in scenario.faults:
            if isinstance(fault, Restart):
                away = fault.at_ms - crashes[fault.broker]
                seen["with memory" if fault.memory else "without memory"] += 1
                seen["before detection"] += 0 < away < detect.min_ms
                seen["after detection"] += away > detect.max_ms
            if isinstance(fault, Cut):
                seen["client cut"] += not fault.between[1].startswith("b")
                seen["link cut"] += fault.between[1].startswith("b")
            seen["suspicion"] += isinstance(fault, Suspect)
        times = sorted(crashes.values())
        seen["crash after crash"] += any(b - a < detect.max_ms * 1.5 for a, b in pairwise(times))
        seen["late publisher"] += any(isinstance(a, AdvertiseAction) and a.at_ms > 100 for a in scenario.actions)
        seen["reply"] += bool(scenario.replies)
        seen["late client"] += any(client.join_ms > 0 for client in scenario.clients)
        filters = [parse(a.filter) for a in scenario.actions if isinstance(a, SubscribeAction)]
        seen["covering"] += any(a is not b and a.text != b.text and a.covers(b) for a in filters for b in filters)
    expected = {
        "never returned", "clients of the dead", "with memory", "without memory", "before detection",
        "after detection", "client cut", "link cut", "suspicion", "crash after crash", "late publisher", "reply",
        "late client", "covering",
    }  # fmt: skip
    assert {name for name in expected if seen[name] >= 5} == expected


def test_limits_are_obeyed() -> None:
    limits = GeneratorLimits(brokers=(6, 6), publishers=(1, 1), publications=(3, 3), settle_ms=7.0)
    scenario = generate(3, "flooding", limits=limits)
    assert len(overlay_of(scenario.network).brokers) == 6
    assert scenario.run.settle_ms == 7.0


@pytest.mark.parametrize("f", [0, 1, 3, 6])
def test_f_can_be_chosen(f: int) -> None:
    for seed in range(20):
        scenario = generate(seed, "flooding", "crash", limits=GeneratorLimits(f=f))
        assert scenario.network.f == f
        assert len(overlay_of(scenario.network).brokers) >= f + 2


def test_unknown_kinds_of_fault_are_refused() -> None:
    assert generate(0, "flooding", "crash, cut").name == "random-crash, cut-0"
    with pytest.raises(
        ScenarioError, match="faults: there is no kind 'meteor'; choose none, all, or some of crash, cut"
    ):
        generate(0, "flooding", "crash,meteor")


def test_repetitions_get_enough_time() -> None:
    settles = {faults: generate(1, "gryphon", faults).run.settle_ms for faults in ("none", "duplication", "loss")}
    assert settles == {"none": 4000.0, "duplication": 4000.0, "loss": 12_000.0}


# ---- large and long scenarios


@cache
def scenarios_of(scale: str) -> list[Scenario]:
    return [generate(seed, "flooding", "all", scale=scale) for seed in range(60)]


@pytest.mark.parametrize("scale", ["large", "long"])
def test_larger_and_longer_ones_keep_to_the_budget_and_can_be_run(scale: str) -> None:
    for scenario in scenarios_of(scale):
        margin_ms = scenario.network.detection.max_ms + (scenario.network.latency.max_ms or 0.0)
        assert most_at_once(scenario, overlay_of(scenario.network), margin_ms) <= scenario.network.f
        assert len(scenario.clients) <= 60
        check_scenario(scenario, FLOODING)
    assert parse_scenario(scenario.to_toml(), protocol=FLOODING) == scenario
    assert run_scenario(scenario, protocol=FLOODING).quiesced


def test_large_ones_have_every_shape() -> None:
    trees = [overlay_of(scenario.network) for scenario in scenarios_of("large")]
    assert max(len(tree.brokers) for tree in trees) >= 38
    assert {tree.diameter for tree in trees} == set(range(2, 13))
    degrees = [max(len(tree.neighbours(name)) for name in tree.brokers) for tree in trees]
    assert min(degrees) == 2, "a chain"
    assert any(degree == len(tree.brokers) - 1 for tree, degree in zip(trees, degrees, strict=True)), "a star"
    assert max(len(scenario.clients) for scenario in scenarios_of("large")) >= 50


def test_in_long_runs_every_broker_has_a_fault_and_most_are_excluded_and_rejoin() -> None:
    back = brokers = 0
    for scenario in scenarios_of("long"):
        names = overlay_of(scenario.network).brokers
        faulty = {broker for broker, _, end in faulty_spans(scenario) if end < inf}
        assert faulty == set(names)
        back += len({fault.broker for fault in scenario.faults if isinstance(fault, Restart)})
        brokers += len(names)
        last_ms = max(fault.at_ms for fault in scenario.faults)
        assert max(action.at_ms for action in scenario.actions) > 0.7 * last_ms, "clients are busy all the time"
    assert back > 0.75 * brokers
    crashes = generate(1, "flooding", "crash", scale="long")
    restarted = {fault.broker for fault in crashes.faults if isinstance(fault, Restart)}
    assert restarted == set(overlay_of(crashes.network).brokers)


def test_clients_are_far_from_each_other_and_near() -> None:
    apart: Counter[int] = Counter()
    for scenario in scenarios_of("large"):
        tree = overlay_of(scenario.network)
        for one, other in pairwise(scenario.clients):
            apart[tree.distance(one.broker, other.broker)] += 1
    assert all(apart[distance] >= 5 for distance in range(13))


def test_a_mixed_seed_is_that_seed_of_one_scale() -> None:
    seen: Counter[str] = Counter()
    for seed in range(1000):
        seen[choose_scale("mixed", seed)] += 1
    assert all(abs(seen[name] / 1000 - share) < 0.05 for name, share in SHARES.items())
    for seed in range(30):
        scale = choose_scale("mixed", seed)
        mixed = generate(seed, "flooding", "all", scale="mixed")
        assert mixed == generate(seed, "flooding", "all", scale=scale)
        assert (mixed == generate(seed, "flooding", "all")) == (scale == "small")


def test_f_can_be_chosen_at_every_scale() -> None:
    for scale in ("small", "large", "long"):
        assert generate(5, "flooding", "crash", limits=GeneratorLimits(f=2), scale=scale).network.f == 2


def test_unknown_scales_are_refused() -> None:
    with pytest.raises(ScenarioError, match="no 'huge'; choose one of small, large, long, large-graph, graph, mixed"):
        generate(0, "flooding", scale="huge")


@pytest.mark.parametrize("scale", ["large", "long"])
def test_protocols_for_topics_have_larger_and_longer_ones_too(scale: str) -> None:
    for seed in range(10):
        scenario = generate(seed, "vcube", scale=scale)
        assert len(overlay_of(scenario.network).brokers) in (8, 16, 32)
        check_scenario(scenario)


@pytest.mark.parametrize("faults", ["crash", "partition", "beyond-f"])
def test_f_is_lowered_where_the_tree_is_too_small_to_wait_in_a_partition(faults: str) -> None:
    drawn = [generate(seed, "gapless", faults) for seed in range(40)]
    for scenario in drawn:
        check_scenario(scenario)
        assert len(overlay_of(scenario.network).brokers) > 2 * scenario.network.f
    assert {scenario.network.f for scenario in drawn} == {1, 2, 3}


def test_a_cut_and_a_suspicion_of_the_same_two_are_distinguished() -> None:
    """One broker suspects another while they are cut off from each other, and a full outage follows."""
    for seed in (5397, 5783):
        scenario = generate(seed, "gapless", "all")
        check_scenario(scenario)
        for begin, end in ((Cut, Heal), (Suspect, Trust)):
            begun = sum(isinstance(fault, begin) for fault in scenario.faults)
            assert sum(isinstance(fault, end) for fault in scenario.faults) <= begun

"""Workloads: their runs agree with formulas and with independent, simpler programs."""

import random
from statistics import fmean
from typing import Any

import pytest

from gapless.errors import ExperimentError
from gapless.overlay import Overlay, binary
from gapless.simulator import check_scenario
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import Relink
from gapless.trace import Trace
from gapless_papers.lab.conduct import conduct
from gapless_papers.lab.experiment_file import workload_of
from gapless_papers.lab.figures.data import Run
from gapless_papers.lab.figures.estimate import estimate
from gapless_papers.lab.grid import Case
from gapless_papers.lab.workloads import ScenarioWorkload
from gapless_papers.lab.workloads.lossy_links import LossyLinks
from gapless_papers.lab.workloads.tree_failures import connected_pairs, filled_tree, legitimate_pairs, live_sessions
from gapless_papers.lab.workloads.tree_queues import TreeQueues
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood


def run(
    workload: str, protocol: str, measure: str, *, seed: int = 0, trace: bool = False, options: Any = None, **given: Any
) -> tuple[dict[str, float], Trace | None]:
    """Return one measure of one run."""
    case = Case("test", {"seed": seed}, workload, given, protocol, options or {}, seed, (measure,), trace)
    metrics, found = conduct(case)
    return {metric.subject: metric.value for metric in metrics if metric.metric == measure}, found


# ---- 001


@pytest.mark.parametrize("protocol", ["locaps", "gapless", "gryphon"])
def test_subscribing_takes_a_round_trip_to_the_publisher(protocol: str) -> None:
    for distance in (1, 4, 7):
        found, _ = run("tree-subscriptions", protocol, "subscription-latency", depth=4, distance=distance, newcomers=5)
        assert len(found) == 5
        assert set(found.values()) == {2 * distance * 50.0}


@pytest.mark.parametrize("pivot", [0, 3])
def test_covered_subscriptions_wait_for_the_pivot_and_in_locaps_for_f_more(pivot: int) -> None:
    for f in (1, 2):
        for protocol, hops in (("gapless", pivot), ("locaps", pivot + f)):
            found, _ = run(
                "tree-subscriptions", protocol, "subscription-latency", depth=6, f=f, covered=1.0, pivot=pivot,
                newcomers=4,
            )  # fmt: skip
            assert set(found.values()) == {2 * hops * 50.0}


def confirmed_after(tree: Overlay, broker: str, back: str, dice: random.Random) -> float:
    """Return when all brokers beyond this one have confirmed, if each hop takes 0 to 100 ms and no message waits for
    another.
    """
    others = [other for other in tree.neighbours(broker) if other != back]
    hops = [(dice.uniform(0, 100), dice.uniform(0, 100)) for _ in others]
    return max(
        (there + confirmed_after(tree, other, broker, dice) + again
         for other, (there, again) in zip(others, hops, strict=True)),
        default=0.0,
    )  # fmt: skip


@pytest.mark.slow
def test_with_jitter_subscriptions_of_delta_take_what_independent_hops_take_and_delay_each_other_at_once() -> None:
    def latency(newcomers: int, gap_ms: float = 0.0) -> list[float]:
        return [
            fmean(run("tree-subscriptions", "delta", "subscription-latency", seed=seed, depth=5, jitter=True,
                      newcomers=newcomers, gap_ms=gap_ms)[0].values())
            for seed in range(30)
        ]  # fmt: skip

    tree, dice = binary(5), random.Random(1)
    expected = fmean(confirmed_after(tree, tree.brokers[-1], "", dice) for _ in range(1000))
    alone, apart, at_once = estimate(latency(1)), estimate(latency(5, gap_ms=5000)), estimate(latency(20))
    assert alone is not None
    assert apart is not None
    assert at_once is not None
    assert alone.mean == pytest.approx(expected, abs=alone.half_width)
    assert apart.mean == pytest.approx(expected, abs=2 * (apart.half_width or 0))
    assert at_once.mean - (at_once.half_width or 0) > expected


def test_delta_waits_for_the_farthest_broker() -> None:
    found, _ = run("tree-subscriptions", "delta", "subscription-latency", depth=4, distance=3, newcomers=3)
    assert set(found.values()) == {2 * 8 * 50.0}


@pytest.mark.parametrize("protocol", ["delta", "locaps"])
def test_with_jitter_the_slowest_newcomer_counts_too(protocol: str) -> None:
    given: dict[str, Any] = {"depth": 4, "distance": 8, "jitter": True, "newcomers": 10, "options": {}}
    if protocol == "locaps":
        given["options"] = {"paths": "one"}
    found, _ = run("tree-subscriptions", protocol, "subscription-latency", **given)
    assert len(found) == 10
    assert max(found.values()) > 1000.0


def test_newcomers_are_covered_as_often_as_asked() -> None:
    found, _ = run("tree-subscriptions", "gapless", "subscription-latency", depth=5, covered=0.5, newcomers=200)
    covered = sum(value == 100.0 for value in found.values())
    assert set(found.values()) == {100.0, 500.0}
    assert 70 < covered < 130


# ---- 002


@pytest.mark.parametrize("nodes", [8, 64])
def test_vcube_sends_as_many_messages_as_there_are_other_subscribers(nodes: int) -> None:
    found, _ = run("topic-broadcast", "vcube", "pub-messages", nodes=nodes, subscribers=0.25)
    assert found == {"down": nodes // 4 - 1, "to-root": 0}


def test_one_message_takes_a_hop_for_each_bit() -> None:
    """A hop takes 1 for transmission, 100 for propagation and 1 for processing; a copy also waits for those sent
    before it.
    """
    found, _ = run("topic-broadcast", "vcube", "delivery-latency", nodes=2)
    assert found["mean"] == 102.0
    found, _ = run("topic-broadcast", "vcube", "delivery-latency", nodes=4)
    assert found["max"] == 204.0
    assert found["mean"] == pytest.approx((102 + 103 + 204) / 3)


def test_every_node_receives_every_publication() -> None:
    found, _ = run("topic-publishers", "srpt", "deliveries", nodes=16, publishers=1.0)
    assert found == {"others": 16 * 15, "own": 16}
    found, _ = run("topic-publishers", "vcube", "deliveries", nodes=16, publishers=0.0)
    assert found == {"others": 15, "own": 1}


def test_half_of_the_nodes_of_srpts_tree_transmit_nothing() -> None:
    found, _ = run("topic-publishers", "srpt", "queue-length", nodes=32, publishers=1.0)
    assert sum(value == 0 for value in found.values()) == 16


@pytest.mark.parametrize("wait", [1, 4])
def test_every_node_answers_once_in_a_discussion_after_enough_messages(wait: int) -> None:
    sizes, trace = run("topic-discussion", "vcube", "barrier-size", nodes=16, wait=wait, trace=True)
    assert sum(sizes.values()) == 16
    assert sizes["0"] == wait
    assert trace is not None
    assert len(trace.events) == 16
    received: dict[str, int] = {}
    opening = {event.publisher for event in trace.events[:wait]}
    for act in trace.history:
        if act.kind == "deliver":
            received[act.client] = received.get(act.client, 0) + 1
        elif act.client not in opening:
            assert received[act.client] >= wait


@pytest.mark.parametrize("wait", [1, 5])
@pytest.mark.parametrize(
    "how",
    [{}, {"pause": "exponential", "pause_ms": 185.0}, {"barrier": "all", "within_ms": 500.0, "first": "smallest"}],
    ids=str,
)
def test_the_model_of_barriers_agrees_with_the_protocol_in_a_discussion(wait: int, how: dict[str, Any]) -> None:
    for measure in ("barrier-size", "barrier-delay"):
        given: dict[str, Any] = {"nodes": 32, "wait": wait, "seed": 3, **how}
        modelled, _ = run("topic-discussion", "vcube", measure, is_model=True, **given)
        assert modelled == run("topic-discussion", "vcube", measure, **given)[0]


def test_jitter_that_overtakes_holds_back_more_than_jitter_in_order() -> None:
    given: dict[str, Any] = {"nodes": 64, "jitter_ms": 30.0, "is_model": True}
    late = []
    for in_order in (True, False):
        delays, _ = run("topic-discussion", "vcube", "barrier-delay", in_order=in_order, **given)
        assert sum(delays.values()) == 64 * 63
        late.append(sum(count for delay, count in delays.items() if float(delay) > 0))
    assert 0 < late[0] < late[1]


def test_only_the_model_knows_links_that_do_not_keep_order() -> None:
    with pytest.raises(ValueError, match="set is_model = true"):
        run("topic-discussion", "vcube", "barrier-size", nodes=8, in_order=False)


def test_popular_topics_get_more() -> None:
    _, trace = run("topic-popularity", "srpt", "messages", nodes=8, topics=4, messages=400, zipf=2.0, trace=True)
    assert trace is not None
    assert len(trace.events) == 400
    counts = [sum(f"t0.{number}" in event.attributes for event in trace.events) for number in range(4)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[1]


def test_one_map_of_topics_to_roots_can_serve_all_runs() -> None:
    given: dict[str, Any] = {"nodes": 16, "topics": 6, "messages": 50}
    names = []
    for seed, more in ((1, {}), (2, {}), (1, {"map": 2}), (2, {"map": 2})):
        _, trace = run("topic-popularity", "srpt", "messages", seed=seed, trace=True, **given, **more)
        assert trace is not None
        names.append({text for event in trace.events for text in event.attributes.split('"') if text.startswith("t")})
    own, other, mapped, same = ({name.partition(".")[0] for name in found} - {"topic"} for found in names)
    assert own == {"t1"}
    assert other == mapped == same == {"t2"}


def test_each_leaving_node_gets_one_unwanted_message_and_each_joining_node_misses_one() -> None:
    given: dict[str, Any] = {"nodes": 32, "churn": 0.25, "messages": 8}
    assert run("topic-churn", "vcube", "false-positives", **given)[0] == {"count": 6}
    assert run("topic-churn", "vcube", "deliveries", **given)[0] == {"others": 24 * 8 - 8 - 6, "own": 8}


@pytest.mark.parametrize("protocol", ["vcube", "srpt"])
@pytest.mark.parametrize("first", ["largest", "smallest"])
def test_the_model_of_queues_agrees_with_the_protocols_when_all_publish(protocol: str, first: str) -> None:
    for measure in ("reception-latency", "queue-length", "queue-peak"):
        given: dict[str, Any] = {"nodes": 32, "first": first, "seed": 3}
        modelled, _ = run("topic-publishers", protocol, measure, is_model=True, **given)
        assert modelled == pytest.approx(run("topic-publishers", protocol, measure, **given)[0])


@pytest.mark.parametrize("protocol", ["vcube", "srpt"])
@pytest.mark.parametrize("gaps", ["uniform", "exponential", "fixed"])
def test_the_model_of_queues_agrees_with_the_protocols_on_many_topics(protocol: str, gaps: str) -> None:
    """The model and the protocol may order messages that arrive at the same moment differently, which changes
    little.
    """
    given: dict[str, Any] = {"nodes": 16, "topics": 6, "messages": 300, "zipf": 1.0, "gaps": gaps, "every_ms": 120.0}
    for measure in ("reception-latency", "queue-length"):
        modelled, _ = run("topic-popularity", protocol, measure, is_model=True, **given)
        assert modelled == pytest.approx(run("topic-popularity", protocol, measure, **given)[0], rel=0.02)


def test_a_source_waits_for_its_acknowledgements_in_the_model_too() -> None:
    """One source publishes two messages at once; the second starts when the first is acknowledged."""
    queues = TreeQueues(4, 101_000, 1_000, largest_first=True)
    found = dict(queues.run([(0, 0, "t"), (0, 0, "t")], None)["reception-latency"])
    first = (102 + 103 + 204) / 3
    assert found == {"mean": pytest.approx((first + first + 204 + 202) / 2)}


@pytest.mark.parametrize("drawn", ["once", "with replacement"])
@pytest.mark.parametrize("measure", ["deliveries", "false-positives"])
def test_effects_of_churn_follow_from_joining_and_leaving_members(drawn: str, measure: str) -> None:
    for seed in range(3):
        given: dict[str, Any] = {"nodes": 64, "churn": 0.25, "messages": 8, "drawn": drawn, "seed": seed}
        modelled, _ = run("topic-churn", "vcube", measure, is_model=True, **given)
        assert modelled == run("topic-churn", "vcube", measure, **given)[0]


def test_with_replacement_fewer_leave_and_fewer_still_join() -> None:
    given: dict[str, Any] = {"nodes": 256, "churn": 0.25, "messages": 100, "is_model": True}
    due = 192 * 100
    once, replaced = (
        sum(run("topic-churn", "vcube", "deliveries", drawn=drawn, **given)[0].values())
        for drawn in ("once", "with replacement")
    )
    assert due - once == 48
    assert replaced < once - 100


def test_measures_that_need_a_run_are_not_computed() -> None:
    with pytest.raises(ExperimentError, match="messages needs a run"):
        run("topic-churn", "vcube", "messages", nodes=8, is_model=True)
    with pytest.raises(ExperimentError, match="supports only the repaired algorithm"):
        run("topic-churn", "vcube", "deliveries", nodes=8, is_model=True, algorithm="as printed")
    with pytest.raises(ExperimentError, match="supports no jitter here"):
        run("topic-publishers", "vcube", "reception-latency", nodes=8, is_model=True, jitter_ms=3.0)


def test_barriers_with_causes_of_causes_are_larger_and_delay_nothing_longer() -> None:
    given: dict[str, Any] = {"nodes": 32, "pause": "exponential", "pause_ms": 150.0, "jitter_ms": 20.0}
    sizes = [
        run("topic-discussion", "vcube", "barrier-size", barrier=barrier, **given)[0] for barrier in ("direct", "all")
    ]
    direct, whole = (sum(int(size) * count for size, count in found.items()) for found in sizes)
    assert direct < whole
    delays = [
        run("topic-discussion", "vcube", "barrier-delay", barrier=barrier, **given)[0] for barrier in ("direct", "all")
    ]
    assert delays[0] == delays[1]


# ---- 003


def test_connected_pairs_agree_with_a_simple_count() -> None:
    for seed in range(60):
        dice = random.Random(seed)
        brokers, fanout, delta = dice.randint(2, 30), dice.randint(1, 4), dice.randint(0, 3)
        failed = frozenset(dice.sample(range(brokers), dice.randint(0, brokers - 1)))
        tree = filled_tree(brokers, fanout)
        living = [number for number in range(brokers) if number not in failed]
        counted = sum(
            _longest_run(tree.path(f"b{a}", f"b{b}"), failed) <= delta for a in living for b in living if a != b
        )
        parents = [(number - 1) // fanout for number in range(brokers)]
        assert connected_pairs(parents, failed, delta) == counted, seed


def _longest_run(path: tuple[str, ...], failed: frozenset[int]) -> int:
    longest = current = 0
    for name in path:
        current = current + 1 if int(name[1:]) in failed else 0
        longest = max(longest, current)
    return longest


def test_legitimate_pairs_agree_with_a_simple_count() -> None:
    for seed in range(40):
        dice = random.Random(seed)
        brokers, fanout, delta = dice.randint(2, 30), dice.randint(1, 4), dice.randint(0, 3)
        failed = frozenset(dice.sample(range(brokers), dice.randint(0, brokers - 1)))
        tree = filled_tree(brokers, fanout)
        living = [number for number in range(brokers) if number not in failed]
        counted = sum(
            _is_legitimate(tree.path(f"b{a}", f"b{b}"), failed, delta) for a in living for b in living if a != b
        )
        parents = [(number - 1) // fanout for number in range(brokers)]
        assert legitimate_pairs(parents, failed, delta) == counted, seed


def _is_legitimate(path: tuple[str, ...], failed: frozenset[int], delta: int) -> bool:
    gone = [int(name[1:]) in failed for name in path]
    return all(sum(gone[first : first + 2 * delta + 1]) <= delta for first in range(len(gone)))


@pytest.mark.parametrize("delta", [1, 2])
def test_delta_with_strict_legitimacy_delivers_one_event_to_the_legitimate_subscriber(delta: int) -> None:
    """A single event waits behind no other, so it reaches exactly the brokers that legitimacy allows."""
    for seed in range(4):
        given = {"brokers": 40, "fanout": 2, "delta": delta, "failed": 12, "events": 1}
        case = Case("test", {}, "broadcast-failures", given, "delta", {}, seed, ("delivered",), True)
        _, trace = conduct(case)
        assert trace is not None
        (event,) = trace.events
        tree = filled_tree(40, 2)
        dead = frozenset(random.Random(f"{seed}/broadcast-failures").sample(range(40), 40)[:12])
        came = {int(row.client[1:]) for row in trace.history if row.kind == "deliver"}
        start = f"b{event.publisher[1:]}"
        assert came == {
            number for number in set(range(40)) - dead if _is_legitimate(tree.path(start, f"b{number}"), dead, delta)
        }


def test_messages_waiting_for_legitimacy_delay_those_of_other_sources() -> None:
    """Runs therefore deliver less than legitimacy alone would allow (section VIII)."""
    shares = {}
    for legitimacy in ("wait", "relaxed"):
        given: dict[str, Any] = {"brokers": 100, "fanout": 3, "delta": 1, "failed": 17, "events": 40}
        options = {"legitimacy": legitimacy}
        shares[legitimacy] = run("broadcast-failures", "delta", "delivered", options=options, **given)[0]["percent"]
    parents = [(number - 1) // 3 for number in range(100)]
    dead = frozenset(random.Random("0/broadcast-failures").sample(range(100), 100)[:17])
    strict = 100 * (legitimate_pairs(parents, dead, 1) + 83) / 83**2
    assert shares["wait"] < strict - 3 < shares["relaxed"]


@pytest.mark.parametrize("what", ["brokers", "links"])
def test_everything_is_delivered_when_what_failed_is_back(what: str) -> None:
    given: dict[str, Any] = {
        "brokers": 30, "failed": 8, "delta": 1, "what": what, "away_ms": 1000.0, "length_ms": 5000.0,
    }  # fmt: skip
    found, _ = run("failure-course", "delta", "throughput", **given)
    assert list(found) == [f"{3 + half / 2:g}" for half in range(10)]
    assert found["5.5"] < 95
    assert max(found.values()) > 120
    assert run("failure-course", "delta", "delivered", **given)[0] == {"percent": 100.0}


def test_a_replacement_for_a_broker_that_left_permanently_repairs_the_tree() -> None:
    options = {"legitimacy": "relaxed"}
    given: dict[str, Any] = {"brokers": 15, "failed": 3, "delta": 0, "length_ms": 6000.0}
    never, _ = run("failure-course", "delta", "throughput", options=options, **given)
    replaced, _ = run("failure-course", "delta", "throughput", options=options, away_ms=2000.0, **given)
    assert never["8"] < 90
    assert replaced["6"] == never["6"]
    assert replaced["8"] == pytest.approx(100, abs=12)


def test_sessions_and_neighbourhoods_are_those_of_the_protocol() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        tree = filled_tree(dice.randint(2, 40), dice.randint(1, 4))
        delta = dice.randint(0, 3)
        failed = frozenset(dice.sample(tree.brokers, len(tree.brokers) // 4))
        for name, peers in live_sessions(tree, failed, delta).items():
            protocols = Neighbourhood(name, tree, delta + 1)
            for other in failed & protocols.paths.keys():
                protocols.suspect(other)
            protocols.survey()
            assert sorted(protocols.active) == sorted(peers)
            assert len(protocols.paths) == len(tree.within(name, delta + 1))


@pytest.mark.parametrize(("delta", "seed"), [(0, 1), (1, 2), (2, 3)])
def test_delta_delivers_what_the_tree_allows(delta: int, seed: int) -> None:
    given = {"brokers": 24, "fanout": 2, "delta": delta, "failed": 7, "events": 60}
    case = Case("test", {}, "broadcast-failures", given, "delta", {"legitimacy": "relaxed"}, seed, ("delivered",), True)
    _, trace = conduct(case)
    assert trace is not None
    tree = filled_tree(24, 2)
    dead = frozenset(random.Random(f"{seed}/broadcast-failures").sample(range(24), 24)[:7])
    came = {(row.event_id.split(":")[0], row.client) for row in trace.history if row.kind == "deliver"}
    for publisher in {event.publisher for event in trace.events}:
        for number in set(range(24)) - dead:
            path = tree.path(f"b{publisher[1:]}", f"b{number}")
            assert ((publisher, f"c{number}") in came) == (_longest_run(path, dead) <= delta)


# ---- 004


def test_without_loss_everything_is_delivered() -> None:
    given: dict[str, Any] = {
        "brokers": 10,
        "subscribers": 10,
        "patterns": 4,
        "rate": 20.0,
        "warm_ms": 500.0,
        "loss": 0.0,
    }
    found, _ = run("lossy-links", "epidemic", "delivered", options={"recovery": "none"}, **given)
    assert found == {"percent": 100.0}


def test_delivery_counts_agree_with_the_trace() -> None:
    given: dict[str, Any] = {
        "brokers": 12, "subscribers": 20, "patterns": 5, "patterns_per_event": 2, "rate": 20.0, "interest": 0.4,
    }  # fmt: skip
    found, trace = run("lossy-links", "epidemic", "delivered", options={"recovery": "none"}, trace=True, **given)
    assert trace is not None
    wanted = {row.subscription_id: row.filter.split()[0] for row in trace.subscriptions}
    events = {row.event_id: row for row in trace.events if 7000 <= row.published_ms < 10_000}
    due = sum(f'"{pattern}"' in row.attributes for row in events.values() for pattern in wanted.values())
    came = sum(row.kind == "deliver" and row.event_id in events for row in trace.history)
    assert found["percent"] == pytest.approx(100 * came / due)
    assert 0 < came < due


LOSSY: dict[str, Any] = {
    "brokers": 14, "subscribers": 14, "patterns": 4, "rate": 20.0, "warm_ms": 1500.0, "measured_ms": 2000.0,
    "drain_ms": 1500.0,
}  # fmt: skip


def test_losses_of_reconfigurations_are_recovered() -> None:
    given = {**LOSSY, "loss": 0.0, "relinks": 8}
    without, _ = run("lossy-links", "epidemic", "delivered-course", options={"recovery": "none"}, **given)
    assert list(without) == [f"{quarter / 4:g}" for quarter in range(8)]
    assert without["0.5"] == 100
    assert min(without.values()) < 95
    pulled, _ = run("lossy-links", "epidemic", "delivered", options={"recovery": "publisher-pull"}, **given)
    assert pulled["percent"] > 99


def test_links_that_are_replaced_leave_a_tree() -> None:
    for seed in range(10):
        workload = LossyLinks(brokers=12, relinks=15)
        scenario = workload.scenario("epidemic", {}, seed)
        check_scenario(scenario)
        edges = {frozenset(edge) for edge in overlay_of(scenario.network).edges}
        for fault in scenario.faults:
            assert isinstance(fault, Relink)
            edges.remove(frozenset(fault.old))
            assert frozenset(fault.new) not in edges
            edges.add(frozenset(fault.new))
            Overlay([f"b{number}" for number in range(12)], [tuple(sorted(edge)) for edge in edges])  # type: ignore[misc]


def test_bursts_lose_about_as_much_as_single_losses() -> None:
    shares = [
        run("lossy-links", "epidemic", "delivered", options={"recovery": "none"}, burst_ms=burst_ms, seed=2, **LOSSY)[0]
        for burst_ms in (0.0, 200.0)
    ]
    assert shares[1]["percent"] == pytest.approx(shares[0]["percent"], abs=15)


# ---- measures


def test_measures_do_not_depend_on_whether_a_trace_is_kept() -> None:
    measures = ("delivery-latency", "reception-latency", "deliveries", "messages", "barrier-delay", "queue-length")
    given = {"nodes": 16, "wait": 3}
    both = []
    for trace in (False, True):
        case = Case("test", {}, "topic-discussion", given, "vcube", {}, 5, measures, trace)
        both.append(conduct(case))
    (without, nothing), (with_trace, trace_found) = both
    assert nothing is None
    assert without == with_trace
    assert trace_found is not None
    published = {event.event_id: (event.publisher, event.published_ms) for event in trace_found.events}
    latencies = [
        row.time_ms - published[row.event_id][1]
        for row in trace_found.history
        if row.kind == "deliver" and published[row.event_id][0] != row.client
    ]
    found = Run({}, {})
    for metric in without:
        found.metrics.setdefault(metric.metric, []).append((metric.subject, metric.value))
    assert dict(found.metrics["delivery-latency"])["mean"] == pytest.approx(sum(latencies) / len(latencies))
    assert dict(found.metrics["deliveries"])["others"] == len(latencies)


def test_the_leaves_are_those_of_the_tree() -> None:
    """Newcomers and the clients with covering subscriptions are at leaves."""
    case = Case("test", {}, "tree-subscriptions", {"depth": 4, "covered": 1.0}, "gapless", {}, 0, ("messages",), True)
    workload = workload_of(case)
    assert isinstance(workload, ScenarioWorkload)
    leaves = set(binary(4).brokers[15:])
    clients = workload.scenario("gapless", {}, 0).clients
    assert all(client.broker in leaves for client in clients if client.name != "root")

"""Random runs with joins and leaves, and the message counts of the paper.

Longer searches: `gapless sim search --protocol srpt --runs 5000`.
"""

import random
from statistics import mean

import pytest

from gapless.overlay import chain
from gapless.protocol import Publish, Subscribe
from gapless.registry import find_protocol
from gapless.simulator import GeneratorLimits, Latency, NodeModel, Result, Settings, Simulation, generate, search
from gapless.simulator import try_scenario as judge
from gapless.trace import Recorder

MS = 1000


def test_no_violation() -> None:
    report = search("srpt", 10, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown == 0


def test_no_violation_with_many_subscriptions() -> None:
    large = GeneratorLimits(brokers=(8, 32), publishers=(6, 10), subscriptions=(60, 120), publications=(100, 200))
    for seed in range(4):
        assert judge(generate(seed, "srpt", limits=large)).status == "valid", seed


def test_it_is_registered() -> None:
    spec = find_protocol("srpt")
    assert spec.guarantee == "topic-causal"
    assert spec.topics_only
    assert spec.copes_with == frozenset()


def broadcast(protocol: str, brokers: int, share: float, seed: int) -> Result:
    """Run one publication as in the paper's first experiment: members from the start, and 1 + 1 + 100 time units per
    hop.
    """
    rng = random.Random(f"{brokers}/{seed}")
    members = [f"b{number}" for number in sorted(rng.sample(range(brokers), round(brokers * share)))]
    topic = f"topic {seed}"
    recorder = Recorder(
        run="r", protocol=protocol, guarantee="topic-causal", scenario="s", seed=seed, brokers=brokers, f=0
    )
    simulation = Simulation(
        chain(brokers), protocol, f=0, options={"initial_members": {topic: members}}, seed=seed, recorder=recorder,
        settings=Settings(latency=Latency(100 * MS, 100 * MS, direct=True), node_model=NodeModel(1 * MS, 1 * MS)),
    )  # fmt: skip
    for name in members:
        simulation.add_client(f"c-{name}", name)
        simulation.call(f"c-{name}", Subscribe(f"s-{name}", f"topic = '{topic}'"), at=0)
    simulation.call(f"c-{rng.choice(members)}", Publish({"topic": topic}), at=0)
    return simulation.run(settle=10_000 * MS)


def latency_ms(result: Result) -> float:
    assert result.trace is not None
    return mean(row.time_ms for row in result.trace.history if row.kind == "deliver")


@pytest.mark.slow
def test_messages_as_in_figure_4() -> None:
    """At 8 brokers with 2 subscribers, SRPT sends 2.7 times as many messages down its tree as VCube-PS, which sends
    one.
    """
    results = [broadcast("srpt", 8, 0.25, seed) for seed in range(150)]
    assert mean(result.message_counts["Pub"] for result in results) == pytest.approx(2.7, abs=0.2)
    assert broadcast("vcube", 8, 0.25, 0).message_counts["Pub"] == 1


def test_messages_and_latency_of_the_whole_cube() -> None:
    """If all subscribe, both trees have the same height; SRPT needs one more hop, to the root."""
    vcube, srpt = broadcast("vcube", 64, 1, 0), broadcast("srpt", 64, 1, 0)
    assert vcube.message_counts["Pub"] == srpt.message_counts["Pub"] == 63
    assert srpt.message_counts["ToRoot"] == 1
    assert latency_ms(vcube) == pytest.approx(3 * 102, rel=0.02)
    assert latency_ms(srpt) - latency_ms(vcube) == pytest.approx(102, abs=1)


def test_forwarders_make_the_tree_higher() -> None:
    """If a quarter subscribes, VCube-PS's trees shrink with the number of members, and SRPT's do not."""
    vcube = mean(latency_ms(broadcast("vcube", 64, 0.25, seed)) for seed in range(10))
    srpt = mean(latency_ms(broadcast("srpt", 64, 0.25, seed)) for seed in range(10))
    assert vcube == pytest.approx(2 * 102, rel=0.1)
    assert srpt == pytest.approx(4 * 102, rel=0.1)

"""Protocols that support only topics, or refuse some overlays: generated scenarios and errors."""

import hashlib
from collections import Counter
from typing import Any

import msgspec
import pytest

from gapless.checkers import check
from gapless.errors import ProtocolError, ScenarioError
from gapless.overlay import Overlay, chain
from gapless.protocol import Publish, Subscribe
from gapless.simulator import Simulation, check_scenario, generate, parse_scenario, run_scenario
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import AdvertiseAction, SubscribeAction, UnsubscribeAction
from gapless.trace import Recorder
from gapless_papers.protocols.topics.topic_filter import topic_of

from .flooding import FLOODING


def few_only(overlay: Overlay, _f: int, _options: Any) -> str | None:
    return None if len(overlay.brokers) < 4 else "it is a small protocol; take fewer brokers"


SMALL = msgspec.structs.replace(FLOODING, name="small", refuses=few_only)


def test_an_overlay_is_refused_before_anything_runs() -> None:
    Simulation(chain(3), SMALL)
    with pytest.raises(
        ProtocolError, match="protocol 'small' cannot run on this network: it is a small protocol; take fewer"
    ):
        Simulation(chain(4), SMALL)


def test_a_scenario_is_refused_with_its_place() -> None:
    text = '[network]\nshape = "chain"\nbrokers = 6\n[protocol]\nname = "vcube"\n'
    with pytest.raises(
        ScenarioError,
        match="network: protocol 'vcube' cannot run on this network: the number of brokers of a hypercube",
    ):
        parse_scenario(text)


def test_a_subscription_that_is_rejected_is_none() -> None:
    recorder = Recorder(run="r", protocol="vcube", guarantee="topic-causal", scenario="s", seed=0, brokers=2, f=0)
    simulation = Simulation(chain(2), "vcube", f=0, recorder=recorder)
    simulation.add_client("ann", "b0")
    simulation.call("ann", Subscribe("all", "TRUE"), at=0)
    simulation.call("ann", Subscribe("news", "topic = 'news'"), at=0)
    simulation.call("ann", Publish({"topic": "news"}), at=100_000)
    simulation.leave("ann", at=500_000)
    result = simulation.run(settle=100_000)
    assert result.trace is not None
    assert [row.subscription_id for row in result.trace.subscriptions] == ["news"]
    assert [(refusal.client, refusal.call) for refusal in result.refusals] == [("ann", "Subscribe")]
    assert check(result.trace).status == "valid"


def test_any_two_brokers_of_a_direct_network_have_a_link() -> None:
    text = '[network]\nshape = "chain"\nbrokers = 4\n[network.latency]\ndirect = {}\nlinks = {{ "b0-b3" = 5 }}\n'
    text += '[protocol]\nname = "vcube"\n'
    assert parse_scenario(text.format("true")).network.latency.direct
    with pytest.raises(ScenarioError, match="'b0-b3' is not a link of the tree"):
        parse_scenario(text.format("false"))


@pytest.mark.parametrize("protocol", ["vcube", "srpt"])
def test_random_scenarios_are_such_that_the_protocol_can_run_them(protocol: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(25):
        scenario = generate(seed, protocol)
        check_scenario(scenario)
        assert parse_scenario(scenario.to_toml()) == scenario
        brokers = len(overlay_of(scenario.network).brokers)
        seen[f"{brokers} brokers"] += 1
        seen["end"] += any(isinstance(action, UnsubscribeAction) for action in scenario.actions)
        seen["reply"] += bool(scenario.replies)
        for action in scenario.actions:
            if isinstance(action, SubscribeAction | AdvertiseAction):
                assert topic_of(action.filter) in ("a", "b")
    assert {name for name, count in seen.items() if count >= 5} == {"4 brokers", "8 brokers", "end", "reply"}
    refusals = run_scenario(generate(3, protocol)).refusals
    assert all("nor advertises it" in refusal.reason for refusal in refusals)


def test_other_protocols_are_drawn_the_same_scenarios_as_ever() -> None:
    texts = [generate(seed, "gryphon", faults).to_toml() for seed in range(10) for faults in ("none", "cut")]
    digest = hashlib.sha256("".join(texts).encode()).hexdigest()
    assert digest == "3f6be89425b98c2d3987d0a1be64de8a951941076c7e4c3db3d7fb5954a9bce2"

"""Random runs with churn and faults: no violation, and one soon if a repair is switched off or a stronger guarantee
claimed.

Longer searches: `gapless sim search --protocol gryphon --faults cut,loss --runs 5000`.
"""

import msgspec
import pytest

from gapless.checkers import check
from gapless.protocol import ClientPlace, ProtocolSpec
from gapless.registry import find_protocol
from gapless.simulator import GeneratorLimits, Scenario, generate, run_scenario, search, try_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Network,
    ProtocolChoice,
    PublishAction,
    SubscribeAction,
)
from gapless_papers.protocols.gryphon.client import GryphonClient
from gapless_papers.protocols.gryphon.options import GryphonOptions

SPEC = find_protocol("gryphon")


@pytest.mark.parametrize(
    ("faults", "runs"),
    [
        ("none", 5),
        ("cut", 5),
        ("suspicion", 3),
        ("loss", 5),
        ("duplication", 3),
        ("cut,suspicion,loss,duplication", 5),
    ],
)
@pytest.mark.parametrize("times", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_no_violation(faults: str, runs: int, times: int) -> None:
    report = search("gryphon", runs * times, faults=faults, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown < runs * times * 0.1


@pytest.mark.parametrize(
    ("faults", "seed"),
    [("loss", 60), ("loss,duplication,cut,suspicion", 44), ("cut,suspicion,loss,duplication", 2478)],
)
def test_seeds_that_once_took_too_long(faults: str, seed: int) -> None:
    """The same packet was lost repeatedly, and was requested again too rarely."""
    assert try_scenario(generate(seed, "gryphon", faults)).status == "valid"


@pytest.mark.parametrize("buffer", [1, 5])
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_and_no_deadlock_when_links_are_always_full(buffer: int, times: int) -> None:
    """Clients have enough buffer that no call is refused; each hop over a full link waits for an acknowledgement."""

    def client(place: ClientPlace, options: GryphonOptions) -> GryphonClient:
        return GryphonClient(place, GryphonOptions())

    spec: ProtocolSpec = msgspec.structs.replace(SPEC, client=client)
    for seed in range(2 * times):
        scenario = generate(seed, "gryphon", "cut", {"buffer": buffer}, GeneratorLimits(settle_ms=120_000.0))
        assert not try_scenario(scenario, spec).failed, seed


@pytest.mark.parametrize(("repair", "faults"), [("flooding", "none"), ("repeats", "cut")])
def test_without_a_repair_a_violation_is_found(repair: str, faults: str) -> None:
    options = {"switched_off": [repair]}
    report = search("gryphon", 100, faults=faults, options=options, processes=1, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.symptom in {"gap", "unobserved"}


@pytest.mark.parametrize(
    ("guarantee", "faults"), [("gcd", "none"), ("gfd", "crash")], ids=["causal order", "broken brokers"]
)
def test_it_would_be_wrong_to_claim_more(guarantee: str, faults: str) -> None:
    spec: ProtocolSpec = msgspec.structs.replace(SPEC, guarantee=guarantee)
    report = search(spec, 100, faults=faults, processes=1, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.outcome.status == "invalid"


@pytest.mark.parametrize(("publish_ms", "links"), [(100.0, 14), (1000.0, 3)], ids=["at once", "later"])
def test_a_new_publisher_floods_until_all_have_answered(publish_ms: float, links: int) -> None:
    """With one subscriber at a leaf of fifteen brokers, an event first goes over all links, and later only over
    those to the leaf.
    """
    scenario = Scenario(
        network=Network("binary", depth=3),
        protocol=ProtocolChoice("gryphon", {"acknowledge_ms": 50_000, "repeat_ms": 50_000}),
        clients=(Client("root", "b0"), Client("leaf", "b7")),
        actions=(
            SubscribeAction(0.0, "leaf", "s", "TRUE"),
            AdvertiseAction(100.0, "root", "a", "TRUE"),
            PublishAction(publish_ms, "root", {"x": 1}, count=10),
        ),
    )
    silent = msgspec.structs.replace(scenario, actions=scenario.actions[:2])
    result = run_scenario(scenario)
    assert result.trace is not None
    assert check(result.trace).deliveries == 10
    to_and_from_clients = 2
    assert result.messages - run_scenario(silent).messages == 10 * (links + to_and_from_clients)


def test_it_is_registered() -> None:
    assert SPEC.guarantee == "gfd"
    assert SPEC.copes_with == {"cut", "suspicion", "loss", "duplication"}

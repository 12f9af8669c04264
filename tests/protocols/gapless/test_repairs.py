"""A green run counts only because it can turn red: without each repair, the search finds a violation.

Of the seeds 0 to 1,999 only a few from the first that fails on are tried, so that nobody waits for the ones before it.
If the generator changes, find it again: `gapless sim search --runs 2000 --option switched_off=…`.
"""

import pytest

from gapless.protocols.gapless.options import REPAIRS, GaplessOptions
from gapless.simulator import generate, search, try_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Scenario,
    SubscribeAction,
)

FIRST_SEEDS = {
    "late-publishers": ("none", 10),
    "pivots": ("none", 677),
    "make-before-break": ("none", 3),
    "hand-over": ("crash", 0),
    "synced": ("blackout", 0),
    "named-position": ("none", 1),
    "majority": ("partition", 163),
    "holders": ("partition", 270),
    "tombstones": ("beyond-f", 11),
    "parting": ("partition", 472),
}
"""By repair: the faults under which it is needed, and the first seed that shows it."""
NEEDS: dict[str, dict[str, str]] = {"parting": {"partition": "go on"}}
"""By repair: options without which it does nothing."""

UNSEEN = {"held-start"}
"""No run of the first 2,000 with crashes shows that it is missing: a subscription that is lost with its broker is
revived now, and reads what it missed."""

RUNS = 16
SYMPTOMS = {"gap", "duplicate", "causal-inversion", "unobserved", "missing-effect", "late-start", "told-loss"}


def test_every_repair_is_tried() -> None:
    assert set(FIRST_SEEDS) | UNSEEN == REPAIRS


@pytest.mark.parametrize("repair", FIRST_SEEDS)
def test_without_it_a_violation_is_found(repair: str) -> None:
    faults, first_seed = FIRST_SEEDS[repair]
    options = {**NEEDS.get(repair, {}), "switched_off": [repair]}
    report = search("gapless", RUNS, first_seed, faults, options, processes=1, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.symptom in SYMPTOMS


@pytest.mark.parametrize("repair", FIRST_SEEDS)
def test_with_it_the_same_run_is_valid(repair: str) -> None:
    faults, seed = FIRST_SEEDS[repair]
    assert try_scenario(generate(seed, "gapless", faults, NEEDS.get(repair))).status == "valid"


def pivots_trap(switched_off: list[str]) -> Scenario:
    """The subscription `new` meets the cover `wide` at b0, which is stable there for near and not yet for far.

    old@b3 -10- b0 -30- b1 -60- b2    near publishes at b1, far at b2, and far answers what near says.
    new@b4 -10-/

    `wide` leaves at 1000 ms; its markers are at b0 at 1070 ms (near) and 1190 ms (far). `new` is there at 1100 ms, and
    near:1, which left b1 at 1090 ms, at 1120 ms: so `new` gets it. Its effect far:1 leaves b2 at 1150 ms, before `new`
    could be there.
    """
    return Scenario(
        network=Network(
            "edges",
            edges=(("b0", "b1"), ("b1", "b2"), ("b0", "b3"), ("b0", "b4")),
            f=0,
            latency=LatencySpec(ms=10.0, links={"b0-b1": 30.0, "b1-b2": 60.0}),
        ),
        protocol=ProtocolChoice("gapless", {"switched_off": switched_off}),
        clients=(Client("near", "b1"), Client("far", "b2"), Client("old", "b3"), Client("new", "b4")),
        actions=(
            AdvertiseAction(0.0, "near", "questions", "kind = 'question'"),
            AdvertiseAction(0.0, "far", "answers", "kind = 'answer'"),
            SubscribeAction(500.0, "far", "asked", "kind = 'question'"),
            SubscribeAction(1000.0, "old", "wide", "TRUE"),
            SubscribeAction(1090.0, "new", "all", "kind = 'question' OR kind = 'answer'"),
            PublishAction(1090.0, "near", {"kind": "question"}),
        ),
        replies=(Reply("far", {"kind": "answer"}, "asked"),),
    )


def test_a_pivot_that_speaks_for_some_only_loses_the_effect_of_what_it_let_in() -> None:
    assert try_scenario(pivots_trap([])).status == "valid"
    outcome = try_scenario(pivots_trap(["pivots"]))
    assert outcome.symptoms == ("missing-effect",)
    assert outcome.verdict is not None
    assert [(item.subscription, item.event) for item in outcome.verdict.anomalies] == [("all", "far:1")]


def test_a_repair_that_does_not_exist_cannot_be_switched_off() -> None:
    with pytest.raises(ValueError, match="there is no repair 'handover'"):
        GaplessOptions(switched_off=("handover",))

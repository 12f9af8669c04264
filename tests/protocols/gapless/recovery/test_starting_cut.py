"""Starting cuts that were lost: the first event that comes after what the subscription gets."""

import random

import pytest

from gapless.events import Event
from gapless.filters import parse
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.recovery.starting_cut import Bound, find_start
from tests.protocols.gapless.recovery.bench import event

ALL = parse("x >= 0")


def test_the_cut_is_the_first_effect_of_what_the_subscription_gets() -> None:
    events = [event("q", 1), event("p", 5), event("q", 2), event("q", 3)]
    pasts = {("q", 1): {"q": 1}, ("p", 5): {"p": 5}, ("q", 2): {"q": 2, "p": 4}, ("q", 3): {"q": 3, "p": 5}}
    assert find_start(events, pasts, ALL, "q", Bound(1, 9), {"p": 5}) == 3
    assert find_start(events, pasts, ALL, "q", Bound(1, 9), {"p": 4}) == 2


def test_what_has_a_smaller_stamp_is_no_effect_though_it_came_later() -> None:
    events = [Event("q", 1, {"x": 1}, b"", 40), Event("q", 2, {"x": 1}, b"", 60)]
    pasts = {("q", 1): {"q": 1, "p": 5}, ("q", 2): {"q": 2, "p": 5}}
    stamps = {("p", 5): 50}
    assert find_start(events, pasts, ALL, "q", Bound(1, 9), {"p": 5}, lambda *key: stamps.get(key, -1)) == 2
    assert find_start(events, pasts, ALL, "q", Bound(1, 9), {"p": 4}, lambda *key: stamps.get(key, -1)) == 1


def test_where_nothing_comes_after_what_it_gets_the_next_event_to_come_will_do() -> None:
    assert find_start([event("q", 1)], {("q", 1): {"q": 1}}, ALL, "q", Bound(1, 9), {"p": 5}) == 9
    assert find_start([], {}, ALL, "q", Bound(1, 9), {"p": 5}) == 9


def test_what_the_covering_one_did_not_attract_or_the_subscription_does_not_match_is_no_start() -> None:
    events = [event("q", 1, 7), event("q", 2, -7), event("q", 3, 7)]
    pasts = {("q", seq): {"q": seq, "p": 5} for seq in (1, 2, 3)}
    assert find_start(events, pasts, ALL, "q", Bound(2, 9), {"p": 5}) == 3


@pytest.mark.parametrize("seed", range(30))
def test_with_the_cut_no_effect_of_what_it_gets_is_left_out(seed: int) -> None:
    """And nothing is let in without need: what is before the cut comes after nothing that it gets."""
    dice = random.Random(seed)
    events: list[Event] = []
    pasts: dict[tuple[str, int], Cuts] = {}
    seqs: Cuts = {}
    for _ in range(40):
        publisher = dice.choice("pqr")
        seqs[publisher] = seqs.get(publisher, 0) + 1
        seen = [item for item in events if dice.random() < 0.3]
        own = [item for item in events if item.publisher == publisher]
        past: Cuts = {publisher: seqs[publisher]}
        for item in [*seen, *own[-1:]]:
            for other, seq in pasts[item.publisher, item.seq].items():
                past[other] = max(seq, past.get(other, 0))
        past[publisher] = seqs[publisher]
        events.append(event(publisher, seqs[publisher], dice.randint(-1, 3)))
        pasts[publisher, seqs[publisher]] = past
    known = {"p": dice.randint(1, 15)}
    found = find_start(events, pasts, ALL, "q", Bound(1, seqs.get("q", 0) + 1), known)
    got = [item for item in events if item.publisher == "p" and item.seq >= known["p"]]
    for item in events:
        if item.publisher == "q" and item.attributes["x"] != -1:
            is_effect = any(pasts["q", item.seq].get("p", 0) >= cause.seq for cause in got)
            assert not is_effect or item.seq >= found, "an effect is left out"
            assert item.seq != found or is_effect, "the cut is an effect itself"

"""Cuts that were on their way: from what a subscription holds, what it must have held."""

import random
from collections.abc import Mapping

import pytest

from gapless.events import Event
from gapless.filters import parse
from gapless.overlay import star
from gapless.protocols.gapless.members.status import excluded_status
from gapless.protocols.gapless.messages import Cuts, LogEntry, SideAdvertisement, SideSubscription, Sync
from gapless.protocols.gapless.pieces import finish
from gapless.protocols.gapless.recovery.handover import Inheritance
from gapless.protocols.gapless.recovery.inference import Inference
from gapless.protocols.gapless.recovery.patterns import Patterns
from tests.protocols.gapless.recovery.bench import contribution, event, logged, record, region_at

OUT = {"b0": excluded_status(0)}
REGION = region_at(star(3), OUT, "b1")
WIDE = "x >= 0"


def offer(publisher: str, text: str = WIDE) -> SideAdvertisement:
    return SideAdvertisement(f"a {publisher}", publisher, text, 1, False)


class Case:
    """What is known, and what is inferred from it."""

    def __init__(
        self, b1: Sync, b2: Sync, *, known: Mapping[str, Cuts] | None = None, inherited: tuple[Inheritance, ...] = (),
        events: tuple[Event, ...] = (), pasts: dict[tuple[str, int], Cuts] | None = None,
        filters: Mapping[str, str] | None = None, gone: Cuts | None = None,
    ) -> None:  # fmt: skip
        self.known = {name: dict(cuts) for name, cuts in (known or {}).items()}
        inference = Inference(
            {"b1": b1, "b2": b2}, inherited, events, pasts or {},
            {name: parse(text) for name, text in (filters or {}).items()}, self.known, Patterns(), gone or {},
        )  # fmt: skip
        self.inferred = finish(inference.infer_cuts())


# ---- lost with a pivot ----------------------------------------------------------------------------------------


def lost_with_pivot(**changes: object) -> Case:
    """t, behind b1, has a cut of p; `wide`, which covers it, had reached q behind b2 from 3 on. q:5 comes after p:4."""
    events = (event("p", 4), event("q", 4), event("q", 5), event("q", 6))
    pasts = {("p", 4): {"p": 4}, ("q", 4): {"q": 4}, ("q", 5): {"q": 5, "p": 4}, ("q", 6): {"q": 6, "p": 4}}
    given: dict[str, object] = {
        "b1": contribution(REGION, subscriptions=[SideSubscription("t", "x >= 0 AND y = 1", {"p": 4}, "c")]),
        "b2": contribution(REGION, advertisements=[offer("q")], known_cuts={"wide": {"q": 3}}, passed={"q": 6}),
        "events": events,
        "pasts": pasts,
        "filters": {"wide": WIDE},
    }
    return Case(**{**given, **changes})  # type: ignore[arg-type]


def all_match(*events: Event) -> tuple[Event, ...]:
    return tuple(Event(item.publisher, item.seq, {"x": 0, "y": 1}) for item in events)


EVENTS = all_match(event("p", 4), event("q", 4), event("q", 5), event("q", 6))


def test_a_cut_lost_with_a_pivot_is_the_first_event_after_those_that_are_known() -> None:
    case = lost_with_pivot(events=EVENTS)
    assert case.known["t"] == {"q": 5}
    assert case.inferred == {"t": {"q": 3}}, "it may be as early as that of the covering one"


def test_where_no_event_comes_after_those_the_next_one_is_the_cut() -> None:
    assert lost_with_pivot().known["t"] == {"q": 7}, "none of them matches y = 1"


def test_an_answer_that_has_not_passed_where_the_subscription_comes_from_is_not_before_its_cut() -> None:
    nobody = {"wide": "x > 7"}
    case = lost_with_pivot(events=EVENTS, filters=nobody)
    assert case.known["t"] == {"q": 5}
    t = SideSubscription("t", "x >= 0 AND y = 1", {"p": 4}, "c")
    later = contribution(REGION, subscriptions=[t], passed={"q": 5})
    assert lost_with_pivot(b1=later, events=EVENTS, filters=nobody).known["t"] == {"q": 6}
    other = contribution(REGION, subscriptions=[SideSubscription("t", "x >= 0 AND y = 1", {"p": 5}, "c")])
    assert lost_with_pivot(b1=other, events=EVENTS, filters=nobody).inferred == {}, "it does not get what they answer"


def test_nothing_is_inferred_without_a_covering_one_or_for_who_holds_no_cut() -> None:
    t = SideSubscription("t", "x >= 0 AND y = 1", {"p": 4}, "c")
    passed = contribution(REGION, subscriptions=[t], passed={"q": 6})
    assert lost_with_pivot(b1=passed, events=EVENTS, filters={"wide": "x > 7"}).inferred == {}
    assert lost_with_pivot(b1=passed, events=EVENTS, filters={"wide": "x < 5"}).inferred == {}, (
        "what it covers in part is not enough"
    )
    fresh = contribution(REGION, subscriptions=[SideSubscription("t", "x >= 0 AND y = 1", {}, "c")])
    assert lost_with_pivot(events=EVENTS, b1=fresh).inferred == {}
    elsewhere = contribution(REGION, advertisements=[offer("q", "x < 0")], known_cuts={"wide": {"q": 3}})
    assert lost_with_pivot(events=EVENTS, b2=elsewhere).inferred == {}, "q publishes nothing that t matches"


def test_one_that_has_ended_may_have_covered_it_if_there_is_an_answer() -> None:
    case = lost_with_pivot(events=EVENTS, filters={})
    assert case.known["t"] == {"q": 5}
    assert case.inferred == {"t": {"q": 3}}
    assert lost_with_pivot(filters={}).inferred == {}, "nothing of q is an answer that matches"


def test_what_the_subscribers_own_side_advertises_is_not_inferred() -> None:
    own = contribution(
        REGION,
        subscriptions=[SideSubscription("t", "x >= 0 AND y = 1", {"p": 4}, "c")],
        advertisements=[offer("q")],
        known_cuts={"wide": {"q": 3}},
    )
    assert lost_with_pivot(events=EVENTS, b1=own, b2=contribution(REGION)).inferred == {}


def test_a_publisher_that_has_left_counts_while_its_events_are_in_a_log() -> None:
    b2 = contribution(REGION, known_cuts={"wide": {"q": 3}}, passed={"q": 6})
    assert lost_with_pivot(events=EVENTS, b2=b2).known["t"] == {"q": 5}
    assert lost_with_pivot(events=EVENTS[:1], b2=b2).inferred == {}, "nothing of q is left"


def test_a_cut_that_is_known_is_left_alone() -> None:
    assert lost_with_pivot(events=EVENTS, known={"t": {"q": 4}}).inferred == {}


def test_the_earliest_of_several_covering_ones_counts() -> None:
    b2 = contribution(
        REGION, advertisements=[offer("q")], known_cuts={"wide": {"q": 6}, "other": {"q": 5}}, passed={"q": 6}
    )
    assert lost_with_pivot(events=EVENTS, b2=b2, filters={"wide": WIDE, "other": "y = 1"}).inferred == {"t": {"q": 5}}


# ---- lost with the journal ------------------------------------------------------------------------------------


def lost_with_journal(*stamps: int, cuts: Cuts, passed: Cuts | None = None, r: int = 1, done: int = 0) -> Cuts:
    """What t, behind b1, starts with: p:4, q:1, q:2 and r:1 are left, p and r are behind b2, q's journal is lost."""
    left = (("p", 4), ("q", 1), ("q", 2), ("r", 1))
    events = tuple(Event(*name, {"x": 0}, b"", stamp) for name, stamp in zip(left, stamps, strict=True))
    b1 = contribution(REGION, subscriptions=[SideSubscription("t", WIDE, cuts, "c")], passed=passed or {})
    b2 = contribution(REGION, advertisements=[offer("p"), offer("r")], passed={"p": 4, "r": r}, done={"p": 3})
    return Case(b1, b2, events=events, gone={"q": done}).known.get("t", {})


def test_of_a_lost_journal_all_counts_that_is_left_unless_something_younger_was_missed() -> None:
    assert lost_with_journal(1, 2, 4, 0, cuts={"p": 4}) == {"q": 1, "r": 2}, "from now on r's counts, too"
    assert lost_with_journal(3, 2, 4, 0, cuts={"p": 5}) == {"q": 2, "r": 2}, "p:4 may be an effect of q:1"
    assert lost_with_journal(1, 2, 4, 3, cuts={"p": 4}) == {"q": 2, "r": 2}, "r:1 may be"
    assert lost_with_journal(1, 2, 4, 5, cuts={"p": 4}) == {}
    assert lost_with_journal(1, 2, 4, 0, cuts={"p": 4}, r=2) == {}, "nobody knows when r:2 came"
    assert lost_with_journal(1, 2, 4, 0, cuts={"p": 4}, passed={"q": 2}) == {}, "both came by before"
    assert lost_with_journal(1, 2, 4, 0, cuts={"p": 4}, done=1) == {"q": 2, "r": 2}, "q:1 has reached everyone"
    assert lost_with_journal(1, 2, 4, 0, cuts={}) == {}, "it gets nothing that they could be effects of"


# ---- let out to nobody who is left ----------------------------------------------------------------------------


def never_let_out(b1_log: list[LogEntry], cuts: Cuts, passed: int = 0, log_from: int = 0) -> Case:
    """c published c:1 at the dead broker, after p:4, and nobody has it but the backups; t, behind b1, may get p."""
    share = Inheritance(record("c", advertisements={"a": (WIDE, 1, True)}), "b1", "b0")
    side = SideSubscription("t", WIDE, cuts, "d", log_from=log_from)
    return Case(
        contribution(
            REGION,
            subscriptions=[side],
            log=b1_log,
            passed={"c": passed, **{entry.event.publisher: entry.event.seq for entry in b1_log}},
        ),
        contribution(REGION),
        inherited=(share,),
        events=(event("p", 4), event("c", 1)),
        pasts={("p", 4): {"p": 4}, ("c", 1): {"c": 1, "p": 4}},
    )


def test_an_event_that_died_with_its_broker_is_not_before_the_cut_of_who_gets_its_cause() -> None:
    assert never_let_out([], {"p": 4}).known == {"t": {"c": 1}}
    assert never_let_out([], {"p": 5}).known == {"t": {"c": 2}}, "it gets no cause"


def test_what_passed_on_its_way_counts_as_got() -> None:
    assert never_let_out(logged(event("p", 4)), {}).known == {"t": {"c": 1}}
    assert never_let_out(logged(event("p", 4), entered=False), {}).known == {}
    assert never_let_out(logged(event("p", 5)), {}).known == {}, "what it may have got is no cause"
    assert never_let_out(logged(event("p", 4, -1)), {}).known == {}, "it does not match"


def test_what_passed_before_the_subscription_came_does_not_count_as_got() -> None:
    assert never_let_out(logged(event("p", 4)), {}, log_from=1).known == {}
    assert never_let_out(logged(event("p", 3), event("p", 4)), {}, log_from=1).known == {"t": {"c": 1}}


def test_what_somebody_has_processed_needs_no_inference() -> None:
    assert never_let_out([], {"p": 4}, passed=1).known == {}


# ---- against a dumb oracle ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_inferred_cuts_are_those_of_the_definition(seed: int) -> None:
    dice = random.Random(seed)
    publishers = ["p", "q", "r"]
    events: list[Event] = []
    pasts: dict[tuple[str, int], Cuts] = {}
    for number in range(30):
        publisher = dice.choice(publishers)
        seq = 1 + sum(item.publisher == publisher for item in events)
        past = dict(pasts.get((publisher, seq - 1), {}))
        for item in dice.sample(events, min(len(events), 2)):
            for other, last in pasts[item.publisher, item.seq].items():
                past[other] = max(last, past.get(other, 0))
        pasts[publisher, seq] = {**past, publisher: seq}
        events.append(event(publisher, seq, number % 5))
    passed = {publisher: sum(item.publisher == publisher for item in events) for publisher in publishers}
    filters = {f"w{number}": f"x <= {dice.randint(0, 6)}" for number in range(5)}
    sides = [
        SideSubscription(f"t{number}", f"x <= {dice.randint(0, 4)}", {"p": dice.randint(1, 9)}, "c")
        for number in range(6)
    ]
    known = {name: {p: dice.randint(1, 9) for p in ("q", "r") if dice.random() < 0.6} for name in filters}
    b2 = contribution(REGION, advertisements=[offer("q"), offer("r", "x < 3")], known_cuts=known, passed=passed)
    b1 = contribution(REGION, subscriptions=sides)
    case = Case(b1, b2, events=tuple(events), pasts=pasts, filters=filters)
    for side in sides:
        pattern = parse(side.filter)
        expected: Cuts = {}
        for publisher in ("q", "r"):
            least = [
                cuts[publisher]
                for name, cuts in known.items()
                if publisher in cuts and parse(filters[name]).covers(pattern)
            ]
            offer_of = parse({"q": "TRUE", "r": "x < 3"}[publisher])
            effects = [
                item.seq
                for item in events
                if item.publisher == publisher
                and item.seq >= min(least, default=1)
                and pattern.matches(item.attributes)
                and pasts[publisher, item.seq].get("p", 0) >= side.cuts["p"]
            ]
            if least:
                expected[publisher] = min(effects, default=max(min(least), passed[publisher] + 1))
            elif effects and offer_of.overlaps(pattern):
                expected[publisher] = min(effects)  # nothing has passed where the subscription comes from
        assert case.known.get(side.subscription, {}) == expected

"""The checker reports each anomaly that is planted into a valid run, and no other.

Every test plants an anomaly at one random place that its kind allows, in many runs. A minimum ensures that enough of
the runs have such a place.
"""

import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec
import pytest

from gapless.checkers import Anomaly, Verdict, check
from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import Guarantee
from gapless.trace import PastRow, SkippedRow, Trace

from .model import Call, Model, Run, record
from .naive import NaiveJudge

SEEDS = range(40)

Plant = Callable[[Run, random.Random], tuple[Run, str] | None]


def named(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(anomaly.kind, anomaly.event) for anomaly in verdict.anomalies]


def plant_everywhere(
    kind: str, plant: Plant, *, floor: int = 15, quiesced: bool = True, guarantee: Guarantee = "gcd"
) -> Iterator[Anomaly]:
    planted = 0
    for seed in SEEDS:
        run = Model(seed, guarantee=guarantee).run(quiesced=quiesced)
        outcome = plant(run, random.Random(seed))
        if outcome is None:
            continue
        changed, event_id = outcome
        verdict = check(record(changed))
        assert named(verdict) == [(kind, event_id)], f"seed {seed}: {verdict.reason}"
        assert verdict.status == "invalid"
        yield verdict.anomalies[0]
        planted += 1
    assert planted >= floor, f"{kind} was planted in {planted} runs only"


def deliveries(run: Run) -> list[int]:
    return [place for place, call in enumerate(run.calls) if call.kind == "deliver"]


def of_subscription(run: Run, name: str) -> list[Call]:
    return [call for call in run.calls if call.kind == "deliver" and call.subscription == name]


def lives(run: Run, name: str) -> bool:
    return not any(call.kind == "end" and call.subscription == name for call in run.calls)


def cut_of(run: Run, name: str, publisher: str) -> int | None:
    cuts = [call for call in run.calls if call.kind == "cut"]
    found = [call.from_seq for call in cuts if (call.subscription, call.publisher) == (name, publisher)]
    return found[-1] if found else None


def without(run: Run, place: int) -> Run:
    return run._replace(calls=run.calls[:place] + run.calls[place + 1 :])


def with_call(run: Run, place: int, call: Call) -> Run:
    return run._replace(calls=[*run.calls[:place], call, *run.calls[place:]])


def choose(draw: random.Random, places: list[int]) -> int | None:
    return draw.choice(places) if places else None


def numbers_after(run: Run, call: Call) -> list[int]:
    event = call.happening
    return [
        other.happening.seq
        for other in of_subscription(run, call.subscription)
        if other.happening.publisher == event.publisher and other.happening.seq > event.seq
    ]


def has_effect(run: Run, place: int) -> bool:
    call = run.calls[place]
    judge = NaiveJudge(record(without(run, place)))
    others = of_subscription(run, call.subscription)
    return any(judge.before(call.happening.id, other.happening.id) for other in others)


# ---- missing deliveries -----------------------------------------------------------------------------------


def drop_in_the_middle(run: Run, draw: random.Random) -> tuple[Run, str] | None:
    def is_within(call: Call) -> bool:
        return bool(numbers_after(run, call)) and cut_of(run, call.subscription, call.happening.publisher) is not None

    place = choose(draw, [place for place in deliveries(run) if is_within(run.calls[place])])
    return None if place is None else (without(run, place), run.calls[place].happening.id)


@pytest.mark.parametrize("guarantee", ["gcd", "gfd", "topic-causal"])
def test_a_delivery_dropped_in_the_middle_is_a_gap(guarantee: Guarantee) -> None:
    for anomaly in plant_everywhere("gap", drop_in_the_middle, guarantee=guarantee):
        missing, following = anomaly.witness
        assert missing == anomaly.event
        assert int(following.partition(":")[2]) > int(missing.partition(":")[2])


def test_a_gap_is_one_before_the_run_is_quiet_too() -> None:
    for _ in plant_everywhere("gap", drop_in_the_middle, quiesced=False):
        pass


def drop_last_before_the_end(run: Run, draw: random.Random) -> tuple[Run, str] | None:
    def is_last_of_ended(call: Call) -> bool:
        ended = not lives(run, call.subscription)
        return ended and not numbers_after(run, call) and bool(cut_of(run, call.subscription, call.happening.publisher))

    place = choose(draw, [place for place in deliveries(run) if is_last_of_ended(run.calls[place])])
    return None if place is None else (without(run, place), run.calls[place].happening.id)


def test_a_delivery_missing_before_the_ending_cut_is_a_gap() -> None:
    for anomaly in plant_everywhere("gap", drop_last_before_the_end, floor=10):
        assert anomaly.witness == (anomaly.event,)
        assert "ending cut" in anomaly.message


def drop_last(*, effect: bool) -> Plant:
    def plant(run: Run, draw: random.Random) -> tuple[Run, str] | None:
        def is_last(call: Call) -> bool:
            has_cut = cut_of(run, call.subscription, call.happening.publisher) is not None
            return lives(run, call.subscription) and has_cut and not numbers_after(run, call)

        places = [place for place in deliveries(run) if is_last(run.calls[place])]
        draw.shuffle(places)
        for place in places:
            if has_effect(run, place) == effect:
                return without(run, place), run.calls[place].happening.id
        return None

    return plant


def test_the_last_delivery_dropped_before_a_quiet_end_is_unobserved() -> None:
    for anomaly in plant_everywhere("unobserved", drop_last(effect=False)):
        assert anomaly.witness == (anomaly.event,)


def test_the_last_delivery_dropped_before_any_other_end_is_nothing() -> None:
    for seed in SEEDS:
        run = Model(seed).run(quiesced=False)
        outcome = drop_last(effect=False)(run, random.Random(seed))
        if outcome is not None:
            assert not check(record(outcome[0])).anomalies


@pytest.mark.parametrize("quiesced", [True, False])
def test_an_effect_without_its_cause_is_a_causal_inversion(quiesced: bool) -> None:
    for anomaly in plant_everywhere("causal-inversion", drop_last(effect=True), quiesced=quiesced, floor=5):
        assert anomaly.witness[0] == anomaly.event
        assert len(anomaly.witness) >= 2
        assert "without its cause" in anomaly.message


def test_without_a_promise_of_causal_order_it_is_only_unobserved() -> None:
    for _ in plant_everywhere("unobserved", drop_last(effect=True), guarantee="gfd", floor=5):
        pass


def move_the_cut(*, effect: bool) -> Plant:
    """Move a cut past the first delivered event, which is an effect of another delivered event if `effect`."""

    def plant(run: Run, draw: random.Random) -> tuple[Run, str] | None:
        judge = NaiveJudge(record(run))

        def is_first_effect(call: Call) -> bool:
            event = call.happening
            history = [other.happening for other in of_subscription(run, call.subscription)]
            first = min(other.seq for other in history if other.publisher == event.publisher)
            causes = [other.id for other in history if other.publisher != event.publisher]
            return event.seq == first and effect == any(judge.before(cause, event.id) for cause in causes)

        place = choose(draw, [place for place in deliveries(run) if is_first_effect(run.calls[place])])
        if place is None:
            return None
        call = run.calls[place]
        event = call.happening
        moved = Call(
            "cut", call.client, call.subscription, publisher=event.publisher, from_seq=event.seq + 1
        )  # the last cut counts
        changed = run._replace(calls=[*run.calls[:place], moved, *run.calls[place + 1 :]])
        return changed, event.id

    return plant


def test_an_effect_left_out_by_the_cut_is_a_missing_effect() -> None:
    for anomaly in plant_everywhere("missing-effect", move_the_cut(effect=True)):
        assert anomaly.witness[-1] == anomaly.event
        assert len(anomaly.witness) >= 2


def test_a_cut_may_leave_out_what_is_no_effect() -> None:
    planted = 0
    for seed in SEEDS:
        outcome = move_the_cut(effect=False)(Model(seed).run(), random.Random(seed))
        if outcome is not None:
            assert check(record(outcome[0])).status == "valid"
            planted += 1
    assert planted >= 15


@pytest.mark.parametrize("guarantee", ["gfd", "topic-causal", "best-effort"])
def test_no_other_guarantee_forbids_missing_effects(guarantee: Guarantee) -> None:
    for seed in SEEDS:
        outcome = move_the_cut(effect=True)(Model(seed).run(), random.Random(seed))
        if outcome is not None:
            assert check(record(outcome[0]._replace(guarantee=guarantee))).status == "valid"


def drop_a_publisher(run: Run, draw: random.Random) -> tuple[Run, str] | None:
    judge = NaiveJudge(record(run))

    def is_only_effect(call: Call) -> bool:
        event, name = call.happening, call.subscription
        history = [other.happening for other in of_subscription(run, name)]
        alone = [other for other in history if other.publisher == event.publisher] == [event]
        caused = any(judge.before(other.id, event.id) for other in history)
        return alone and caused and lives(run, name) and cut_of(run, name, event.publisher) is None

    place = choose(draw, [place for place in deliveries(run) if is_only_effect(run.calls[place])])
    return None if place is None else (without(run, place), run.calls[place].happening.id)


def test_an_effect_of_a_publisher_without_a_cut_is_missed_at_a_quiet_end() -> None:
    for anomaly in plant_everywhere("missing-effect", drop_a_publisher, floor=2):
        assert "was ever delivered" in anomaly.message


# ---- wrong orders -----------------------------------------------------------------------------------------


def swap(*, same_publisher: bool) -> Plant:
    def plant(run: Run, draw: random.Random) -> tuple[Run, str] | None:
        judge = NaiveJudge(record(run))

        def is_inverted(pair: tuple[int, int]) -> bool:
            first, second = run.calls[pair[0]], run.calls[pair[1]]
            if first.subscription != second.subscription or {first.kind, second.kind} != {"deliver"}:
                return False
            one, other = first.happening, second.happening
            if (one.publisher == other.publisher) != same_publisher:
                return False
            return same_publisher or judge.before(one.id, other.id)

        places: dict[str, list[int]] = {}
        for place, call in enumerate(run.calls):
            if call.kind in ("deliver", "publish", "end"):
                places.setdefault(call.client, []).append(place)
        pairs = [pair for own in places.values() for pair in pairwise(own) if is_inverted(pair)]
        if not pairs:
            return None
        early, late = draw.choice(pairs)
        calls = list(run.calls)
        calls.insert(late, calls.pop(early))
        return run._replace(calls=calls), run.calls[early].happening.id

    return plant


@pytest.mark.parametrize("guarantee", ["gcd", "gfd", "topic-causal"])
def test_two_of_one_publisher_swapped_are_a_fifo_inversion(guarantee: Guarantee) -> None:
    plant = swap(same_publisher=True)
    for anomaly in plant_everywhere("fifo-inversion", plant, guarantee=guarantee):
        assert anomaly.witness[1] == anomaly.event


def test_cause_and_effect_swapped_are_a_causal_inversion() -> None:
    for anomaly in plant_everywhere("causal-inversion", swap(same_publisher=False)):
        assert anomaly.witness[0] == anomaly.event
        assert len(anomaly.witness) >= 2


@pytest.mark.parametrize("guarantee", ["gfd", "best-effort"])
def test_other_guarantees_allow_the_effect_first(guarantee: Guarantee) -> None:
    for seed in SEEDS:
        outcome = swap(same_publisher=False)(Model(seed).run(), random.Random(seed))
        if outcome is not None:
            assert check(record(outcome[0]._replace(guarantee=guarantee))).status == "valid"


# ---- unwanted deliveries ----------------------------------------------------------------------------------


def repeat(run: Run, draw: random.Random) -> tuple[Run, str] | None:
    place = choose(draw, deliveries(run))
    if place is None:
        return None
    call = run.calls[place]
    ends = [p for p, other in enumerate(run.calls) if other.kind == "end" and other.subscription == call.subscription]
    return with_call(run, draw.randint(place + 1, min(ends, default=len(run.calls))), call), call.happening.id


@pytest.mark.parametrize("guarantee", ["gcd", "gfd", "topic-causal", "best-effort"])
def test_a_delivery_repeated_is_a_duplicate(guarantee: Guarantee) -> None:
    for anomaly in plant_everywhere("duplicate", repeat, guarantee=guarantee):
        event, first, second = anomaly.witness
        assert event == anomaly.event
        assert int(first.partition("#")[2]) < int(second.partition("#")[2])


def deliver_too_much(why: str) -> Plant:
    """Deliver an event that the client has seen, so that the order stays possible, but that it did not request."""

    def plant(run: Run, draw: random.Random) -> tuple[Run, str] | None:
        calls = list(enumerate(run.calls))
        ends = {call.subscription: place for place, call in calls if call.kind == "end"}
        options: list[tuple[int, int, Call]] = []
        for requested, subscription in [(place, call) for place, call in calls if call.kind == "subscribe"]:
            end = ends.get(subscription.subscription, len(calls))
            for seen, call in calls:
                if call.kind != "see" or call.client != subscription.client or not is_wrong(run, subscription, call):
                    continue
                is_after = seen > end
                if is_after == (why == "after the end"):
                    wrong = Call("deliver", call.client, subscription.subscription, call.event)
                    options.append((max(seen, requested) + 1, len(calls) if is_after else end, wrong))
        if not options:
            return None
        earliest, latest, wrong = draw.choice(options)
        return with_call(run, draw.randint(earliest, latest), wrong), wrong.happening.id

    def is_wrong(run: Run, subscription: Call, call: Call) -> bool:
        event = call.happening
        matches = parse(subscription.text).matches(event.attributes)
        cut = cut_of(run, subscription.subscription, event.publisher)
        is_before = cut is not None and event.seq < cut
        return {
            "no match": not matches,
            "before the cut": matches and is_before,
            "after the end": matches and not is_before,
        }[why]

    return plant


@pytest.mark.parametrize("guarantee", ["gcd", "best-effort"])
@pytest.mark.parametrize("why", ["no match", "before the cut", "after the end"])
def test_a_delivery_not_asked_for_is_spurious(why: str, guarantee: Guarantee) -> None:
    said = {"no match": "does not match", "before the cut": "before the starting cut", "after the end": " end"}
    for anomaly in plant_everywhere("spurious", deliver_too_much(why), guarantee=guarantee, floor=10):
        assert said[why] in anomaly.message
        assert anomaly.witness[0] == anomaly.event


def deliver_the_unpublished(run: Run, draw: random.Random) -> tuple[Run, str] | None:
    place = choose(draw, deliveries(run))
    if place is None:
        return None
    ghost = Event("ghost", 1, {"x": 3, "topic": "a"})
    return with_call(run, place, run.calls[place]._replace(event=ghost)), ghost.id


def test_a_delivery_of_an_unpublished_event_is_spurious() -> None:
    for anomaly in plant_everywhere("spurious", deliver_the_unpublished):
        assert "never published" in anomaly.message


@pytest.mark.parametrize("owner", ["nobody", "somebody else"])
def test_a_delivery_to_the_wrong_or_to_no_subscription_is_spurious(owner: str) -> None:
    def plant(run: Run, draw: random.Random) -> tuple[Run, str] | None:
        others = [call for call in run.calls if call.kind == "subscribe"]

        def foreign_subscriptions(call: Call) -> list[str]:
            return [other.subscription for other in others if other.client != call.client]

        place = choose(draw, [place for place in deliveries(run) if foreign_subscriptions(run.calls[place])])
        if place is None:
            return None
        call = run.calls[place]
        name = "never requested" if owner == "nobody" else draw.choice(foreign_subscriptions(call))
        return with_call(run, place + 1, call._replace(subscription=name)), call.happening.id

    for anomaly in plant_everywhere("spurious", plant):
        assert "never requested" in anomaly.message or "belongs to" in anomaly.message


# ---- progress and the certificate -------------------------------------------------------------------------


def test_a_subscription_that_never_became_active_is_unobserved() -> None:
    planted = 0
    for seed in SEEDS:
        run = Model(seed).run()
        living = [
            place for place, call in enumerate(run.calls) if call.kind == "activate" and lives(run, call.subscription)
        ]
        if not living:
            continue
        place = random.Random(seed).choice(living)
        verdict = check(record(without(run, place)))
        assert [(a.kind, a.subscription, a.event) for a in verdict.anomalies] == [
            ("unobserved", run.calls[place].subscription, None)
        ]
        assert "never became active" in verdict.anomalies[0].message
        assert not check(record(without(run, place)._replace(quiesced=False))).anomalies
        planted += 1
    assert planted >= 15


def forge(trace: Trace, how: str, draw: random.Random) -> tuple[Trace, str, str] | None:
    if not trace.pasts:
        return None
    place = draw.randrange(len(trace.pasts))
    row = trace.pasts[place]
    rows = list(trace.pasts)
    match how:
        case "too low":
            rows[place] = msgspec.structs.replace(row, seq=row.seq - 1)
        case "too high":
            rows[place] = msgspec.structs.replace(row, seq=row.seq + draw.randint(1, 9))
        case "missing":
            del rows[place]
        case "about a stranger":
            row = PastRow(row.run, row.event_id, "stranger", 1)
            rows.append(row)
        case "about itself":
            row = PastRow(row.run, row.event_id, row.event_id.partition(":")[0], 1)
            rows.append(row)
        case "about no event":
            row = PastRow(row.run, "stranger:1", row.publisher, row.seq)
            rows.append(row)
    return msgspec.structs.replace(trace, pasts=rows), row.event_id, row.publisher


@pytest.mark.parametrize("guarantee", ["gcd", "best-effort"])
@pytest.mark.parametrize(
    "how", ["too low", "too high", "missing", "about a stranger", "about itself", "about no event"]
)
def test_a_forged_certificate_is_a_false_past(how: str, guarantee: Guarantee) -> None:
    planted = 0
    for seed in SEEDS:
        forged = forge(record(Model(seed, guarantee=guarantee).run()), how, random.Random(seed))
        if forged is None:
            continue
        trace, event_id, publisher = forged
        verdict = check(trace)
        assert [(a.kind, a.event, a.publisher) for a in verdict.anomalies] == [("false-past", event_id, publisher)]
        planted += 1
    assert planted >= 15


def test_a_reported_loss_is_no_gap_and_is_counted_separately() -> None:
    reported = 0
    for seed in SEEDS:
        run = Model(seed).run()
        outcome = drop_in_the_middle(run, random.Random(seed))
        if outcome is None:
            continue
        changed, event_id = outcome
        trace = record(changed)
        (anomaly,) = check(trace).anomalies
        publisher, _, seq = event_id.rpartition(":")
        trace.skipped.append(SkippedRow(trace.runs[0].run, str(anomaly.subscription), publisher, int(seq), int(seq)))
        verdict = check(trace)
        assert verdict.status == "valid", verdict.reason
        assert verdict.reported_losses == 1
        reported += 1
    assert reported >= 10


def test_a_loss_is_false_that_was_delivered_or_never_published() -> None:
    for seed in SEEDS:
        run = Model(seed).run()
        if not deliveries(run):
            continue
        trace = record(run)
        row = next(row for row in trace.history if row.kind == "deliver")
        publisher, _, seq = row.event_id.rpartition(":")
        last = max(event.seq for event in trace.events if event.publisher == publisher)
        name = str(row.subscription_id)
        trace.skipped.append(SkippedRow(trace.runs[0].run, name, publisher, int(seq), int(seq)))
        trace.skipped.append(SkippedRow(trace.runs[0].run, name, publisher, last + 1, last + 3))
        verdict = check(trace)
        assert named(verdict) == [("false-loss", row.event_id), ("false-loss", f"{publisher}:{last + 1}")]
        assert NaiveJudge(trace).judge()[0] == "invalid"

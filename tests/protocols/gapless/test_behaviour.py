"""What users see, in small runs with exact expectations: starts, endings, lost brokers, lost clients, and bounds.

Where a run's figures depend on times, links take 50 ms and clients sit beside their brokers.
"""

from typing import Any

import msgspec
import pytest

from gapless.checkers import check
from gapless.simulator import Result, run_scenario
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Delay,
    Fault,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
    UnsubscribeAction,
)
from gapless.trace import Trace

HOP_MS = 50.0


class Scene:
    """A chain b0 – b1 – … with clients named after what they do, written down act by act."""

    def __init__(self, brokers: int = 5, f: int = 1, settle_ms: float = 5000.0, sample_ms: float = 0.0, **options: Any):
        self.network = Network(
            "chain", brokers=brokers, f=f, latency=LatencySpec(ms=HOP_MS), detection=Delay(60.0, 60.0)
        )
        self.options = options
        self.run_part = Run(settle_ms=settle_ms, sample_ms=sample_ms)
        self.clients: list[Client] = []
        self.actions: list[Action] = []
        self.faults: list[Fault] = []
        self.replies: list[Reply] = []

    def client(self, name: str, broker: str, latency_ms: float = 0.0) -> None:
        self.clients.append(Client(name, broker, latency_ms=latency_ms))

    def publisher(self, name: str, broker: str, at_ms: float = 0.0) -> None:
        """Advertises everything."""
        self.client(name, broker)
        self.actions.append(AdvertiseAction(at_ms, name, f"a-{name}", "TRUE"))

    def publish(self, at_ms: float, name: str, count: int = 1, every_ms: float = 10.0, **attributes: int | str) -> None:
        self.actions.append(PublishAction(at_ms, name, {"x": 1, **attributes}, count, every_ms))

    def subscribe(self, at_ms: float, client: str, name: str, text: str = "TRUE") -> None:
        self.actions.append(SubscribeAction(at_ms, client, name, text))

    def unsubscribe(self, at_ms: float, client: str, name: str) -> None:
        self.actions.append(UnsubscribeAction(at_ms, client, name))

    def play(self) -> tuple[Result, Trace]:
        """Run it; the promise must hold, whatever else a test looks at."""
        scenario = Scenario(
            network=self.network,
            protocol=ProtocolChoice("gapless", self.options),
            run=self.run_part,
            clients=tuple(self.clients),
            actions=tuple(self.actions),
            faults=tuple(self.faults),
            replies=tuple(self.replies),
        )
        result = run_scenario(scenario)
        assert result.trace is not None
        verdict = check(result.trace)
        assert verdict.status == "valid", verdict.reason
        return result, result.trace


def latency_ms(trace: Trace, name: str) -> float:
    [row] = [row for row in trace.subscriptions if row.subscription_id == name]
    assert row.active_ms is not None
    return row.active_ms - row.requested_ms


def delivered(trace: Trace, name: str) -> list[str]:
    return [row.event_id for row in trace.history if row.subscription_id == name]


def cut(trace: Trace, name: str, publisher: str) -> tuple[int, int | None]:
    [row] = [row for row in trace.cuts if row.subscription_id == name and row.publisher == publisher]
    return row.from_seq, row.to_seq


def events(publisher: str, first: int, last: int) -> list[str]:
    return [f"{publisher}:{seq}" for seq in range(first, last + 1)]


def retained(result: Result) -> dict[str, int]:
    return {broker: sizes["retained"] for broker, sizes in result.state_sizes_by_broker.items()}


# ---- starts and endings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [0, 1, 3])
def test_a_covered_subscription_at_its_own_broker_waits_only_until_f_others_know_it(f: int) -> None:
    scene = Scene(f=f, partition="go on")
    scene.publisher("p", "b0")
    scene.client("old", "b4")
    scene.client("new", "b4")
    scene.subscribe(1000, "old", "wide")
    scene.subscribe(3000, "new", "narrow", "x = 1")
    scene.publish(4000, "p")
    _, trace = scene.play()
    assert latency_ms(trace, "wide") == 8 * HOP_MS
    assert latency_ms(trace, "narrow") == 2 * f * HOP_MS, "b4 is the end of the row, so the f-th nearest is f away"


@pytest.mark.parametrize("f", [0, 1, 3])
@pytest.mark.parametrize("distance", [1, 2, 3])
def test_further_away_it_takes_the_way_to_its_pivot_and_back(f: int, distance: int) -> None:
    scene = Scene(f=f, partition="go on")
    scene.publisher("p", "b0")
    scene.client("old", f"b{4 - distance}")
    scene.client("new", "b4")
    scene.subscribe(1000, "old", "wide")
    scene.subscribe(3000, "new", "narrow", "x = 1")
    scene.publish(4000, "p")
    _, trace = scene.play()
    assert latency_ms(trace, "narrow") == 2 * max(distance, f) * HOP_MS


def test_it_starts_behind_what_its_pivot_has_passed_on() -> None:
    """It reaches its pivot, b2, at 3100 ms. An event is there 200 ms after the call: p:6 at 3091 ms, p:7 at 3101 ms."""
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("old", "b2")
    scene.client("new", "b4")
    scene.subscribe(1000, "old", "wide")
    scene.subscribe(3000, "new", "narrow", "x = 1")
    scene.publish(2841, "p", 20, 10.0)
    _, trace = scene.play()
    assert cut(trace, "narrow", "p") == (7, None)
    assert delivered(trace, "narrow") == events("p", 7, 20)
    assert delivered(trace, "wide") == events("p", 1, 20)


def test_a_cover_that_ends_opens_no_gap_and_ends_exactly() -> None:
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("old", "b3")
    scene.client("new", "b4")
    scene.subscribe(1000, "old", "wide")
    scene.subscribe(2000, "new", "narrow", "x = 1")
    scene.publish(2500, "p", 100, 7.0)
    scene.unsubscribe(2850, "old", "wide")
    result, trace = scene.play()
    assert delivered(trace, "narrow") == events("p", 1, 100)
    first, last = cut(trace, "wide", "p")
    assert first == 1
    assert last is not None
    assert 1 < last < 100
    assert delivered(trace, "wide") == events("p", 1, last)
    assert result.state_sizes_by_broker["b0"]["subscriptions"] == 1


def test_of_a_chain_of_covers_that_all_end_the_last_one_misses_nothing() -> None:
    scene = Scene()
    scene.publisher("p", "b0")
    for number, broker in enumerate(("b2", "b3", "b4", "b4")):
        scene.client(f"c{number}", broker)
        scene.subscribe(1000 + 500 * number, f"c{number}", f"s{number}", f"x < {9 - number}")
    scene.publish(3000, "p", 60, 9.0)
    for number in range(3):
        scene.unsubscribe(3100 + 60 * number, f"c{number}", f"s{number}")
    _, trace = scene.play()
    assert delivered(trace, "s3") == events("p", 1, 60)


def test_a_cover_that_ends_while_its_own_start_is_under_way_takes_nobody_with_it() -> None:
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("old", "b4")
    scene.client("new", "b4")
    scene.subscribe(1000, "old", "wide")
    scene.subscribe(1030, "new", "narrow", "x = 1")
    scene.unsubscribe(1060, "old", "wide")
    scene.publish(1000, "p", 80, 10.0)
    _, trace = scene.play()
    first, last = cut(trace, "narrow", "p")
    assert last is None
    assert delivered(trace, "narrow") == events("p", first, 80)
    assert delivered(trace, "wide") == []


def test_a_publisher_that_has_just_arrived_is_held_back_until_all_who_wait_for_it_are_known() -> None:
    """Stable after the way to the far end and back: 4 hops; its events are published at once and come after that."""
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(500, "c", "s")
    scene.publisher("late", "b2", at_ms=2000)
    scene.publish(2000, "late", 3, 0.0)
    _, trace = scene.play()
    assert delivered(trace, "s") == events("late", 1, 3)
    times = [row.time_ms for row in trace.history if row.subscription_id == "s"]
    assert min(times) >= 2000 + 4 * HOP_MS + 2 * HOP_MS


def test_its_answers_reach_everyone_who_got_the_question() -> None:
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.publisher("late", "b2", at_ms=2000)
    scene.subscribe(1000, "c", "s")
    scene.subscribe(1000, "late", "questions", "x = 1")
    scene.replies.append(Reply("late", {"x": 2}, "questions", at_most=10))
    scene.publish(1950, "p", 20, 10.0)
    _, trace = scene.play()
    answers = [event for event in delivered(trace, "s") if event.startswith("late")]
    assert answers == events("late", 1, 10)


# ---- brokers that die -------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [False, True])
def test_a_client_whose_broker_died_goes_on_at_a_neighbour_without_gap_or_repetition(back: bool) -> None:
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("c", "b3")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 100, 10.0)
    scene.faults.append(Crash(2400, "b3"))
    if back:
        scene.faults.append(Restart(2900, "b3"))
    _, trace = scene.play()
    assert delivered(trace, "s") == events("p", 1, 100)
    assert cut(trace, "s", "p") == (1, None)


def test_a_publisher_whose_broker_died_loses_nothing_that_it_published() -> None:
    scene = Scene()
    scene.publisher("p", "b3")
    scene.client("c", "b0")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 100, 10.0)
    scene.faults.append(Crash(2400, "b3"))
    _, trace = scene.play()
    assert delivered(trace, "s") == events("p", 1, 100)


@pytest.mark.parametrize("dead", [["b2"], ["b2", "b3"], ["b1", "b2"]])
def test_with_brokers_dead_on_the_way_everything_still_comes_through(dead: list[str]) -> None:
    scene = Scene(brokers=6, f=2, partition="go on")
    scene.publisher("p", "b0")
    scene.publisher("q", "b5")
    for name, broker in (("c", "b5"), ("d", "b0")):
        scene.client(name, broker)
        scene.subscribe(1000, name, f"s-{name}")
    for name in ("p", "q"):
        scene.publish(2000, name, 80, 10.0)
    scene.faults += [Crash(2300 + 40 * number, broker) for number, broker in enumerate(dead)]
    _, trace = scene.play()
    for name in ("s-c", "s-d"):
        found = delivered(trace, name)
        assert [event for event in found if event[0] == "p"] == events("p", 1, 80)
        assert [event for event in found if event[0] == "q"] == events("q", 1, 80)


# ---- what may be forgotten --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [None, Crash(2400, "b2")])
def test_at_a_quiet_end_nobody_keeps_an_event(fault: Fault | None) -> None:
    scene = Scene(settle_ms=8000)
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 100, 10.0)
    scene.faults += [fault] if fault is not None else []
    result, trace = scene.play()
    assert len(delivered(trace, "s")) == 100
    assert result.state_sizes["retained"].max == 0


def test_it_is_kept_while_it_may_be_needed() -> None:
    scene = Scene(sample_ms=20, settle_ms=8000)
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 400, 10.0)
    result, _ = scene.play()
    assert all(50 < size < 150 for size in retained(result).values()), "three rounds of 400 ms at 100 events a second"


def away(scene: Scene, from_ms: float, until_ms: float) -> None:
    """The client c cannot reach b4, its broker, nor any other that it might turn to."""
    for broker in ("b4", "b3", "b2"):
        scene.faults += [Cut(from_ms, ("c", broker)), Heal(until_ms, ("c", broker))]


def test_a_client_that_was_cut_off_for_a_while_gets_everything() -> None:
    scene = Scene()
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 100, 10.0)
    away(scene, 2300, 4000)
    _, trace = scene.play()
    assert delivered(trace, "s") == events("p", 1, 100)


def test_a_client_that_stays_away_for_too_long_is_let_go_where_it_stopped() -> None:
    scene = Scene(session_s=1.0, settle_ms=8000, sample_ms=0)
    scene.publisher("p", "b0")
    for name in ("c", "d"):
        scene.client(name, "b4")
        scene.subscribe(1000, name, f"s-{name}")
    scene.publish(2000, "p", 200, 10.0)
    away(scene, 2500, 6000)
    result, trace = scene.play()
    first, last = cut(trace, "s-c", "p")
    assert first == 1
    assert last is not None
    assert 10 < last < 100
    assert delivered(trace, "s-c") == events("p", 1, last)
    [row] = [row for row in trace.subscriptions if row.subscription_id == "s-c"]
    assert row.ended_ms is not None
    assert row.ended_ms >= 6000, "it learns of it when it is back"
    assert delivered(trace, "s-d") == events("p", 1, 200)
    assert cut(trace, "s-d", "p") == (1, None)
    assert result.state_sizes["retained"].max == 0
    assert result.state_sizes_by_broker["b4"]["subscriptions"] == 1


@pytest.mark.parametrize("fault", ["client", "broker"])
def test_a_client_that_came_back_in_time_is_not_let_go_later(fault: str) -> None:
    scene = Scene(session_s=1.0)
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 300, 10.0)
    if fault == "client":
        away(scene, 2300, 2500)
    else:
        scene.faults.append(Crash(2300, "b4"))
    _, trace = scene.play()
    assert delivered(trace, "s") == events("p", 1, 300)


def test_who_was_let_go_stays_let_go_when_its_broker_dies() -> None:
    scene = Scene(session_s=1.0)
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 400, 10.0)
    away(scene, 2500, 5600)
    scene.faults.append(Crash(5000, "b4"))
    _, trace = scene.play()
    first, last = cut(trace, "s", "p")
    assert last is not None
    assert delivered(trace, "s") == events("p", first, last)


@pytest.mark.parametrize(("window", "text"), [(5, ""), (50, "x" * 10_000)])
def test_while_a_client_is_away_no_broker_keeps_more_than_two_windows_and_then_publishing_resumes(
    window: int, text: str
) -> None:
    """One broker admits: it lets out `window` events before they have reached everyone, and further ones wait.

    Others may forget an event one wave later than the broker that admitted it. An event with 9 KiB counts for ten.
    """
    scene = Scene(window=window, sample_ms=10, settle_ms=20_000)
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 60, 10.0, text=text)
    away(scene, 2100, 5000)
    result, trace = scene.play()
    assert max(retained(result).values()) <= 2 * 5
    assert delivered(trace, "s") == events("p", 1, 60)
    times = [row.time_ms for row in trace.history if row.subscription_id == "s"]
    assert sum(2160 < time < 5000 for time in times) == 0
    assert result.refusals == ()


@pytest.mark.parametrize("place", ["b0", "b2"])
def test_who_publishes_much_waits_for_round_trips_and_not_for_the_next_wave(place: str) -> None:
    """A wave a minute, and room for ten: ten windows take seconds, wherever the root is."""
    scene = Scene(brokers=3, window=10, wave_ms=60_000)
    scene.publisher("p", place)
    scene.client("c", "b1")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 100, 0.0)
    _, trace = scene.play()
    assert delivered(trace, "s") == events("p", 1, 100)
    assert max(row.time_ms for row in trace.history if row.subscription_id == "s") < 10_000


def test_a_client_that_publishes_far_ahead_of_what_is_safe_is_refused() -> None:
    scene = Scene(client_window=10, window=5)
    scene.publisher("p", "b0")
    scene.client("c", "b4")
    scene.subscribe(1000, "c", "s")
    scene.publish(2000, "p", 30, 0.0)
    result, trace = scene.play()
    assert {refusal.client for refusal in result.refusals} == {"p"}
    published = 30 - len(result.refusals)
    assert 10 <= published < 30
    assert delivered(trace, "s") == events("p", 1, published)


def test_who_is_represented_anew_gets_the_cuts_of_its_new_representative() -> None:
    """Nobody can ask the dead publisher's broker: `late` waits for `wide`, which ends, and is left to `other`.

    `other` has had its cut from `old`, before the broker died, so that no marker of it will ever come by.
    """
    scene = Scene()
    scene.network = msgspec.structs.replace(scene.network, detection=Delay(2000.0, 2000.0))
    scene.publisher("p", "b4")
    for name, broker in {"c": "b0", "d": "b1"}.items():
        scene.client(name, broker)
    scene.subscribe(1000, "c", "old", "x = 1")
    scene.faults.append(Crash(1500, "b4"))
    scene.subscribe(1600, "c", "wide")
    scene.subscribe(1800, "d", "other", "x = 1")
    scene.unsubscribe(1900, "c", "old")
    scene.subscribe(2000, "c", "late", "x = 1")
    scene.unsubscribe(2200, "c", "wide")
    scene.publish(6000, "p", 10)
    _, trace = scene.play()
    assert delivered(trace, "late") == delivered(trace, "other") == events("p", 1, 10)

"""The deliveries to clients of one name are checked as if one client had received them."""

from gapless.checkers import check
from gapless.events import Event
from gapless.trace import Recorder, Trace

EVENTS = [Event("p", seq, {"x": seq}, b"", 100 * seq) for seq in range(1, 7)]


def recorder() -> Recorder:
    made = Recorder(
        run="r", protocol="gapless", guarantee="gcd", scenario="s", seed=0, brokers=3, f=1, options="{}"
    )  # fmt: skip
    for event in EVENTS:
        made.publish("p", event, event.stamp)
    return made


def listen(made: Recorder, client: str, generation: int, position: int, seqs: list[int], at: int) -> None:
    made.subscribe(client, f"{client}/s", "x > 0", at, ready="whole")
    made.open_name(f"{client}/s", "n", generation, position, {}, at)
    made.activate(f"{client}/s", at)
    for seq in seqs:
        made.deliver(client, EVENTS[seq - 1], f"{client}/s", at + 1)


def judged(made: Recorder) -> dict[str, int]:
    """The anomalies of the name, by kind."""
    trace: Trace = made.finish(quiesced=True)
    found: dict[str, int] = {}
    for anomaly in check(trace).anomalies:
        if anomaly.subscription == "name:n":
            found[anomaly.kind] = found.get(anomaly.kind, 0) + 1
    return found


def test_what_was_confirmed_and_then_the_rest_is_as_promised() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    made.acknowledged("ann/s", 3, 1_001, is_stored=False)
    made.acknowledged("ann/s", 3, 1_002, is_stored=True)
    listen(made, "bob", 2, 300, [4, 5, 6], 2_000)
    assert judged(made) == {}


def test_what_was_confirmed_and_comes_again_came_twice() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3], 1_000)
    made.acknowledged("ann/s", 3, 1_002, is_stored=True)
    listen(made, "bob", 2, 200, [3, 4, 5, 6], 2_000)
    assert judged(made) == {"duplicate": 1}


def test_what_was_not_confirmed_and_does_not_come_again_is_missing() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    made.acknowledged("ann/s", 2, 1_002, is_stored=True)
    listen(made, "bob", 2, 300, [5, 6], 2_000)
    assert judged(made) == {"gap": 2}


def test_what_was_about_to_be_confirmed_may_come_again_or_not() -> None:
    for again in ([3, 4, 5, 6], [5, 6]):
        made = recorder()
        listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
        made.acknowledged("ann/s", 2, 1_002, is_stored=True)
        made.acknowledged("ann/s", 4, 1_003, is_stored=False)
        listen(made, "bob", 2, 100 * (again[0] - 1), again, 2_000)
        assert judged(made) == {}


def test_what_the_client_was_delivered_for_others_is_counted_too() -> None:
    made = recorder()
    made.subscribe("ann", "other", "x = 5", 500)
    made.activate("other", 500)
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    made.deliver("ann", EVENTS[4], "other", 1_001)
    made.acknowledged("ann/s", 5, 1_003, is_stored=False)
    listen(made, "bob", 2, 400, [5, 6], 2_000)
    assert judged(made) == {}


def test_what_was_about_to_be_confirmed_after_somebody_else_had_it_does_not_count() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    listen(made, "bob", 2, 400, [5, 6], 2_000)
    made.acknowledged("ann/s", 4, 2_003, is_stored=False)
    assert judged(made) == {"gap": 4}


def test_what_one_was_told_to_be_gone_is_gone_for_the_name() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [], 1_000)
    listen(made, "bob", 2, 50, [5, 6], 2_000)
    made.skip("bob/s", {"p": [(1, 4)]})
    assert judged(made) == {}


def test_it_is_active_when_any_of_them_is() -> None:
    made = recorder()
    made.subscribe("ann", "ann/s", "x > 0", 900, ready="whole")
    made.open_name("ann/s", "n", 1, 50, {}, 950)
    made.end("ann/s", {}, 960)
    listen(made, "bob", 2, 50, [1, 2, 3, 4, 5, 6], 1_000)
    assert judged(made) == {}

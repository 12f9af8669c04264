"""The deliveries to clients of one durable subscription are checked as if one client had received them."""

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
    trace: Trace = made.finish(quiesced=True)
    found: dict[str, int] = {}
    for anomaly in check(trace).anomalies:
        if anomaly.subscription == "name:n":
            found[anomaly.kind] = found.get(anomaly.kind, 0) + 1
    return found


def test_acknowledged_events_and_then_the_rest_are_as_promised() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    made.acknowledged("ann/s", 3, 1_001, is_stored=False)
    made.acknowledged("ann/s", 3, 1_002, is_stored=True)
    listen(made, "bob", 2, 300, [4, 5, 6], 2_000)
    assert judged(made) == {}


def test_a_redelivery_of_an_acknowledged_event_is_a_duplicate() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3], 1_000)
    made.acknowledged("ann/s", 3, 1_002, is_stored=True)
    listen(made, "bob", 2, 200, [3, 4, 5, 6], 2_000)
    assert judged(made) == {"duplicate": 1}


def test_unacknowledged_events_that_are_not_redelivered_are_missing() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    made.acknowledged("ann/s", 2, 1_002, is_stored=True)
    listen(made, "bob", 2, 300, [5, 6], 2_000)
    assert judged(made) == {"gap": 2}


def test_events_with_a_pending_acknowledgement_may_be_redelivered() -> None:
    for again in ([3, 4, 5, 6], [5, 6]):
        made = recorder()
        listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
        made.acknowledged("ann/s", 2, 1_002, is_stored=True)
        made.acknowledged("ann/s", 4, 1_003, is_stored=False)
        listen(made, "bob", 2, 100 * (again[0] - 1), again, 2_000)
        assert judged(made) == {}


def test_deliveries_for_other_subscriptions_are_counted_too() -> None:
    made = recorder()
    made.subscribe("ann", "other", "x = 5", 500)
    made.activate("other", 500)
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    made.deliver("ann", EVENTS[4], "other", 1_001)
    made.acknowledged("ann/s", 5, 1_003, is_stored=False)
    listen(made, "bob", 2, 400, [5, 6], 2_000)
    assert judged(made) == {}


def test_a_pending_acknowledgement_after_a_redelivery_to_another_does_not_count() -> None:
    made = recorder()
    listen(made, "ann", 1, 50, [1, 2, 3, 4], 1_000)
    listen(made, "bob", 2, 400, [5, 6], 2_000)
    made.acknowledged("ann/s", 4, 2_003, is_stored=False)
    assert judged(made) == {"gap": 4}


def test_a_loss_reported_to_one_client_holds_for_the_durable_subscription() -> None:
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

"""The checker verifies a group's deliveries of a durable subscription, for the group and for each member."""

import pytest

from gapless.checkers import check
from gapless.events import Event
from gapless.trace import Recorder

EVENTS = [Event("p", seq, {"x": seq}, b"", 100 * seq) for seq in range(1, 7)]
ALL = [1, 2, 3, 4, 5, 6]


def recorder() -> Recorder:
    made = Recorder(
        run="r", protocol="gapless", guarantee="gcd", scenario="s", seed=0, brokers=3, f=1, options="{}"
    )  # fmt: skip
    for event in EVENTS:
        made.publish("p", event, event.stamp)
    for client in ("ann", "bob"):
        made.subscribe(client, client, "x > 0", 700, ready="whole")
        made.join_group(client, "n", 50, 700)
        made.activate(client, 700)
    return made


def give(made: Recorder, client: str, seqs: list[int], at: int, *, again: bool = False) -> None:
    for seq in seqs:
        made.deliver(client, EVENTS[seq - 1], client, at, redelivered=again)


def judged(made: Recorder) -> list[tuple[str, str | None]]:
    return sorted({(anomaly.kind, anomaly.subscription) for anomaly in check(made.finish(quiesced=True)).anomalies})


def test_each_event_went_to_one_of_them() -> None:
    made = recorder()
    give(made, "ann", [1, 3, 5], 1_000)
    give(made, "bob", [2, 4, 6], 1_000)
    assert judged(made) == []


@pytest.mark.parametrize("seqs", [[2, 4], [4, 6]])
def test_events_without_any_delivery_are_missing(seqs: list[int]) -> None:
    made = recorder()
    give(made, "ann", [1, 3, 5], 1_000)
    give(made, "bob", seqs, 1_000)
    assert [subscription for _, subscription in judged(made)] == ["group:n"]


def test_unacknowledged_events_may_be_redelivered_at_any_time() -> None:
    made = recorder()
    give(made, "ann", [1, 3, 5], 1_000)
    give(made, "bob", [2, 4, 6], 1_000)
    give(made, "bob", [5, 3], 2_000, again=True)
    made.acknowledged("bob", 5, 3_000, is_stored=True)
    assert judged(made) == []


def test_an_event_acknowledged_by_two_members_is_a_duplicate() -> None:
    made = recorder()
    give(made, "ann", [1, 3, 5], 1_000)
    give(made, "bob", [2, 4, 6], 1_000)
    give(made, "bob", [3], 2_000, again=True)
    made.acknowledged("bob", 4, 3_000, is_stored=True)
    made.acknowledged("ann", 2, 4_000, is_stored=True)
    assert judged(made) == [("duplicate", "group:n")]


def test_an_event_taken_away_from_a_member_was_not_acknowledged_by_it() -> None:
    made = recorder()
    give(made, "ann", [1, 3, 5], 1_000)
    give(made, "bob", [2, 4, 6], 1_000)
    give(made, "bob", [3], 2_000, again=True)
    made.acknowledged("bob", 4, 3_000, is_stored=True)
    made.revoke("ann", [2])
    made.acknowledged("ann", 2, 4_000, is_stored=True)
    assert judged(made) == []


def test_events_acknowledged_by_one_member_are_delivered_to_no_other() -> None:
    made = recorder()
    give(made, "ann", [1, 3, 5], 1_000)
    give(made, "bob", [2, 4, 6], 1_000)
    made.acknowledged("ann", 2, 1_500, is_stored=True)
    give(made, "bob", [3], 2_000, again=True)
    assert judged(made) == [("duplicate", "group:n")]


def test_a_member_gets_its_part_in_order() -> None:
    made = recorder()
    give(made, "ann", [1, 5, 3], 1_000)
    give(made, "bob", [2, 4, 6], 1_000)
    assert judged(made) == [("fifo-inversion", "ann")]


def test_events_without_a_match_are_not_delivered() -> None:
    made = recorder()
    made.publish("p", Event("p", 7, {"x": -1}, b"", 800), 800)
    give(made, "ann", ALL, 1_000)
    made.deliver("bob", Event("p", 7, {"x": -1}, b"", 800), "bob", 1_000)
    assert ("spurious", "bob") in judged(made)


def test_a_group_without_members_is_not_queried() -> None:
    made = recorder()
    give(made, "ann", [1], 1_000)
    for client in ("ann", "bob"):
        made.end(client, {}, 2_000)
    assert judged(made) == []

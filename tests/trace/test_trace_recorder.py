"""The recorder converts the calls of a runtime to tables."""

import random

import pytest

from gapless.events import Event
from gapless.trace import CutRow, EventRow, HistoryRow, MessageRow, PastRow, Recorder, RunRow, SubscriptionRow, Trace


def recorder(*, with_messages: bool = False) -> Recorder:
    return Recorder(
        run="r1", protocol="gapless", guarantee="gcd", scenario="name", seed=7, brokers=9, f=1, options='{"a":1}',
        with_messages=with_messages,
    )  # fmt: skip


def test_every_table() -> None:
    recording = recorder(with_messages=True)
    recording.subscribe("bob", "s1", "x > 1", 1_000, ready="whole")
    recording.fix_cut("s1", "ann", 1)
    recording.activate("s1", 2_500)
    event = Event("ann", 1, {"x": 3, "a": "é"}, b"payload")
    recording.publish("ann", event, 3_000)
    recording.message("Forward", "b1", "b2", 3_000, 4_000, 120)
    recording.message("Forward", "b2", "b3", 4_000, None, 120)
    recording.deliver("bob", event, "s1", 5_001)
    recording.publish("bob", Event("bob", 1, {}), 6_000)
    recording.end("s1", {"ann": 1}, 7_000)
    assert recording.finish(quiesced=True) == Trace(
        runs=[RunRow("r1", "gapless", "gcd", "name", 7, 9, 1, True, '{"a":1}', 0.0)],
        events=[
            EventRow("r1", "ann:1", "ann", 1, '{"a":"é","x":3}', 3.0),
            EventRow("r1", "bob:1", "bob", 1, "{}", 6.0),
        ],
        subscriptions=[SubscriptionRow("r1", "s1", "bob", "x > 1", 1.0, 2.5, 7.0, "whole")],
        cuts=[CutRow("r1", "s1", "ann", 1, 1)],
        history=[
            HistoryRow("r1", "ann", 0, "publish", "ann:1", None, 3.0),
            HistoryRow("r1", "bob", 0, "deliver", "ann:1", "s1", 5.001),
            HistoryRow("r1", "bob", 1, "publish", "bob:1", None, 6.0),
        ],
        pasts=[PastRow("r1", "bob:1", "ann", 1)],
        messages=[
            MessageRow("r1", "Forward", "b1", "b2", 3.0, 4.0, 120),
            MessageRow("r1", "Forward", "b2", "b3", 4.0, None, 120),
        ],
    )


def test_messages_are_left_out_unless_asked_for() -> None:
    recording = recorder()
    recording.message("Forward", "b1", "b2", 0, 1, 2)
    assert recording.finish(quiesced=False).messages == []


def test_a_later_cut_replaces_an_earlier_one_and_the_first_activation_counts() -> None:
    recording = recorder()
    recording.subscribe("bob", "s1", "x > 1", 0)
    recording.fix_cut("s1", "ann", 4)
    recording.fix_cut("s1", "ann", 2)
    recording.activate("s1", 1_000)
    recording.activate("s1", 2_000)
    trace = recording.finish(quiesced=False)
    assert trace.cuts == [CutRow("r1", "s1", "ann", 2, None)]
    assert trace.subscriptions[0].active_ms == 1.0
    assert trace.subscriptions[0].ended_ms is None


def test_an_end_adds_to_the_cuts_there_are_and_makes_none() -> None:
    recording = recorder()
    recording.subscribe("bob", "s1", "x > 1", 0)
    recording.fix_cut("s1", "ann", 1)
    recording.fix_cut("s1", "cat", 1)
    recording.end("s1", {"ann": 5, "eve": 9}, 1_000)
    assert recording.finish(quiesced=False).cuts == [
        CutRow("r1", "s1", "ann", 1, 5),
        CutRow("r1", "s1", "cat", 1, None),
    ]


def test_finishing_twice_gives_the_same() -> None:
    recording = recorder()
    recording.publish("ann", Event("ann", 1, {}), 0)
    assert recording.finish(quiesced=True) == recording.finish(quiesced=True)


def test_misuse_is_a_bug() -> None:
    recording = recorder()
    with pytest.raises(AssertionError):
        recording.activate("never requested", 0)
    with pytest.raises(AssertionError):
        recording.publish("bob", Event("ann", 1, {}), 0)
    recording.subscribe("bob", "s1", "x > 1", 0)
    with pytest.raises(AssertionError):
        recording.subscribe("bob", "s1", "x > 1", 0)


def test_a_delivery_of_something_unpublished_is_recorded_but_known_to_no_past() -> None:
    recording = recorder()
    recording.subscribe("bob", "s1", "x > 1", 0)
    recording.deliver("bob", Event("ghost", 3, {}), "s1", 1)
    recording.publish("bob", Event("bob", 1, {}), 2)
    trace = recording.finish(quiesced=False)
    assert trace.history[0].event_id == "ghost:3"
    assert trace.pasts == []


def test_only_what_advanced_is_written() -> None:
    recording = recorder()
    events = {name: Event(name[:3], int(name[-1]), {}) for name in ("ann1", "ann2", "bob1", "bob2", "bob3")}
    recording.publish("ann", events["ann1"], 0)
    recording.deliver("bob", events["ann1"], "s", 1)
    recording.publish("bob", events["bob1"], 2)
    recording.deliver("bob", events["bob1"], "s", 3)
    recording.publish("bob", events["bob2"], 4)
    recording.deliver("ann", events["bob2"], "s", 5)
    recording.publish("ann", events["ann2"], 6)
    recording.deliver("bob", events["ann2"], "s", 7)
    recording.publish("bob", events["bob3"], 8)
    assert [(row.event_id, row.publisher, row.seq) for row in recording.finish(quiesced=False).pasts] == [
        ("bob:1", "ann", 1), ("ann:2", "bob", 2), ("bob:3", "ann", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_pasts_are_what_merging_at_every_step_gives(seed: int) -> None:
    draw = random.Random(seed)
    clients = [f"c{number}" for number in range(draw.randint(2, 6))]
    recording = recorder()
    published: list[Event] = []
    known: dict[str, dict[str, int]] = {client: {} for client in clients}
    past_of: dict[str, dict[str, int]] = {}
    for now in range(120):
        client = draw.choice(clients)
        if draw.random() < 0.3 or not published:
            seq = known[client].get(client, 0) + 1
            event = Event(client, seq, {})
            past_of[event.id] = dict(known[client])
            known[client][client] = seq
            published.append(event)
            recording.publish(client, event, now)
        else:
            event = draw.choice(published)
            recording.deliver(client, event, "s", now)
            for publisher, seq in [*past_of[event.id].items(), (event.publisher, event.seq)]:
                known[client][publisher] = max(seq, known[client].get(publisher, 0))
    written: dict[str, dict[str, int]] = {client: {} for client in clients}
    rows = recording.finish(quiesced=False).pasts
    for event in published:
        for row in rows:
            if row.event_id == event.id:
                assert row.seq > written[event.publisher].get(row.publisher, 0)
                written[event.publisher][row.publisher] = row.seq
        others = {name: seq for name, seq in past_of[event.id].items() if name != event.publisher}
        assert written[event.publisher] == others

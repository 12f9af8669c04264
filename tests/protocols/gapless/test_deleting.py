"""An operator deletes the events of one publisher: no broker has them any more, and readers learn their numbers.

    b0 - b1 - b2

`ann` and `ben` publish at b0; readers are at b2.
"""

from typing import Any

import pytest

from gapless import protocol
from gapless.checkers import check
from gapless.disk import DiskContents
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocols.gapless import broker as broker_module
from gapless.protocols.gapless import deleting
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.simulator import run_scenario
from gapless.simulator.disks import Disks, DiskState
from gapless.simulator.nodes import Slot
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Delay,
    DeleteEvents,
    Fault,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
)
from gapless.trace import Trace

from .bench import Bench

DELETED_MS = 2_000.0
SECRET = "secret"


def scenario(*faults: Fault, actions: tuple[Action, ...] = ()) -> Scenario:
    return Scenario(
        name="deleted",
        network=Network(
            shape="chain", brokers=3, f=1, latency=LatencySpec(ms=5.0), detection=Delay(50.0, 60.0),
            disks=Delay(1.0, 2.0),
        ),
        protocol=ProtocolChoice("gapless"),
        clients=(Client("ann", "b0"), Client("ben", "b0"), Client("cat", "b2"), Client("dan", "b2")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "n > 0"),
            AdvertiseAction(0.0, "ben", "b", "n > 0"),
            PublishAction(500.0, "ann", {"n": 1, "text": SECRET}, count=3),
            PublishAction(600.0, "ben", {"n": 2}, count=2),
            PublishAction(5_000.0, "ann", {"n": 3}, count=1),
            SubscribeAction(9_000.0, "cat", "read", "n > 0", since_ms=0.0),
            *actions,
        ),
        faults=(DeleteEvents(DELETED_MS, "ann", "b1"), *faults),
        run=Run(settle_ms=20_000.0),
    )  # fmt: skip


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> dict[str, GaplessBroker]:
    found: dict[str, GaplessBroker] = {}
    begin = GaplessBroker.__init__

    def note(node: GaplessBroker, place: Any, options: Any) -> None:
        begin(node, place, options)
        found[place.name] = node

    monkeypatch.setattr(broker_module.GaplessBroker, "__init__", note)
    return found


def run(story: Scenario) -> Trace:
    result = run_scenario(story, check_invariants=True)
    assert result.trace is not None
    assert check(result.trace).status == "valid"
    return result.trace


def reported(trace: Trace, subscription: str) -> list[str]:
    rows = [row for row in trace.skipped if row.subscription_id == subscription]
    return [f"{row.publisher}:{number}" for row in rows for number in range(row.from_seq, row.to_seq + 1)]


def read(trace: Trace, subscription: str) -> list[str]:
    return [row.event_id for row in trace.history if row.subscription_id == subscription]


def copies_of_the_secret(nodes: dict[str, GaplessBroker]) -> int:
    def events(node: GaplessBroker) -> list[Event]:
        journals = [node.state.journal, *node.state.journals.values()]
        entries = [each.events for journal in journals for each in journal.entries]
        return [event for each in entries for event in (list(each) if isinstance(each, EventRun) else each)]

    return sum(event.attributes.get("text") == SECRET for node in nodes.values() for event in events(node))


def test_readers_are_notified_of_deleted_ranges_and_receive_the_rest(nodes: dict[str, GaplessBroker]) -> None:
    trace = run(scenario())
    assert reported(trace, "read") == ["ann:1", "ann:2", "ann:3"]
    assert read(trace, "read") == ["ben:1", "ben:2", "ann:4"]
    assert copies_of_the_secret(nodes) == 0


def test_live_subscriptions_that_have_received_them_get_no_report(nodes: dict[str, GaplessBroker]) -> None:
    live = (SubscribeAction(300.0, "dan", "live", "n > 0"), SubscribeAction(300.0, "dan", "keep", "n > 0", name="keep"))
    trace = run(scenario(actions=live))
    for subscription in ("live", "keep"):
        assert reported(trace, subscription) == []
        assert read(trace, subscription) == ["ann:1", "ann:2", "ann:3", "ben:1", "ben:2", "ann:4"]


def test_a_broker_that_was_away_deletes_them_when_it_is_back(nodes: dict[str, GaplessBroker]) -> None:
    """The broker's disk still has the events, and the other brokers report the deletion."""
    trace = run(scenario(Crash(1_500.0, "b0"), Restart(4_000.0, "b0")))
    assert reported(trace, "read") == ["ann:1", "ann:2", "ann:3"]
    assert copies_of_the_secret(nodes) == 0


def test_they_are_not_on_any_disk_when_all_brokers_start_again(
    nodes: dict[str, GaplessBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("b0", "b1", "b2")
    outage: tuple[Fault, ...] = (*(Crash(4_000.0, name) for name in names), *(Restart(4_100.0, name) for name in names))
    found: list[bytes] = []
    read_disk = Disks.read

    def note(disks: Disks, slot: Slot, state: DiskState) -> DiskContents:
        contents = read_disk(disks, slot, state)
        found.extend(row.blob for rows in contents.history.values() for row in rows)
        return contents

    monkeypatch.setattr(Disks, "read", note)
    trace = run(scenario(*outage))
    assert len(found) >= 2
    assert not any(SECRET.encode() in blob for blob in found)
    assert reported(trace, "read") == ["ann:1", "ann:2", "ann:3"]
    assert copies_of_the_secret(nodes) == 0


def test_more_deletions_than_brokers_remember_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleting, "DELETIONS_MAX", 2)
    bench = Bench(2)
    node = bench.nodes["b0"]
    for name in ("ann", "ben", "ann", "cat"):
        node.step(protocol.DeleteEvents(name), 1_000_000_000)
    assert [node.has_deleted(name) for name in ("ann", "ben", "cat")] == [True, True, False]


def test_a_broker_reports_that_it_deletes_until_it_has_checked_its_entries() -> None:
    """This includes the time between the processing by all brokers and the next tick."""
    state = Bench(2).nodes["b0"].state
    deleting.delete_events(state, "ann")
    state.stable = deleting.deletions(state)["ann"]
    assert deleting.is_deleting(state)
    deleting.delete_batch(state)
    assert not deleting.is_deleting(state)

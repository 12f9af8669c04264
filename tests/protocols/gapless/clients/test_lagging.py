"""Who lies behind is served out of history: nobody waits for it, and it misses nothing that is kept."""

from collections.abc import Sequence

import pytest

from gapless.checkers import check
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import Advertise, PublishMany, Subscribe, Unsubscribe
from gapless.protocols.gapless.client_messages import Attach, Behind, Delivery, SubscriptionProgress, Unsubscribed
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import epoch_of
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder, Trace

SECOND = 1_000_000
LAG_MS = 200.0
WINDOW = 50


class Stage:
    """A chain of brokers with a publisher at one end, and two who subscribe at the other; one of them is slow."""

    def __init__(
        self, brokers: int = 3, f: int = 1, consume_us: int = 2 * SECOND, history_bytes: int = 1 << 20
    ) -> None:
        self.recorder = Recorder(
            run="r", protocol="gapless", guarantee="gcd", scenario="lagging", seed=0, brokers=brokers, f=f
        )
        options = {"window": WINDOW, "delivery_window": 8, "lag_ms": LAG_MS, "history_bytes": history_bytes}
        self.simulation = Simulation(
            chain(brokers), find_protocol("gapless"), recorder=self.recorder, options=options, f=f
        )
        far = f"b{brokers - 1}"
        self.simulation.add_client("alice", "b0")
        self.simulation.add_client("slow", far, consume_us=consume_us)
        self.simulation.add_client("quick", far)
        self.simulation.call("alice", Advertise("a", "TRUE"), at=0)
        self.simulation.call("slow", Subscribe("s", "TRUE"), at=SECOND // 2)
        self.simulation.call("quick", Subscribe("t", "TRUE"), at=SECOND // 2)

    def publish(self, count: int, at: int) -> None:
        self.simulation.call("alice", PublishMany([b""] * count, [({"x": n}, n + 1) for n in range(count)]), at=at)

    def run(self, until: int = 60 * SECOND) -> Trace:
        result = self.simulation.run(settle=until)
        assert result.trace is not None
        return result.trace


def came(trace: Trace, subscription: str) -> list[str]:
    return [row.event_id for row in trace.history if row.subscription_id == subscription]


def last_time(trace: Trace, subscription: str) -> float:
    return max(row.time_ms for row in trace.history if row.subscription_id == subscription)


def test_nobody_waits_for_one_that_is_slow_and_it_gets_everything() -> None:
    stage = Stage()
    stage.publish(400, at=SECOND)
    trace = stage.run(until=200 * SECOND)
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 800, [])
    assert last_time(trace, "t") < 1_000 + 10 * LAG_MS, "the other one and the publisher went on"
    assert last_time(trace, "s") > 60_000, "it took 8 every two seconds"


@pytest.mark.parametrize("crash_ms", [1_100, 1_250, 1_350, 1_900, 2_500])
def test_an_heir_knows_where_it_goes_on(crash_ms: int) -> None:
    """Also if the client was never told that it lies behind, because its broker died."""
    stage = Stage(4)
    stage.simulation.cut("slow", "b3", at=SECOND)
    stage.publish(200, at=SECOND + 1_000)
    stage.simulation.crash("b3", at=crash_ms * 1_000)
    stage.simulation.heal("slow", "b3", at=crash_ms * 1_000)
    trace = stage.run(until=120 * SECOND)
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 400, [])


def test_who_comes_back_after_a_while_goes_on_where_it_was() -> None:
    stage = Stage(consume_us=0)
    stage.publish(10, at=SECOND)
    stage.simulation.cut("slow", "b2", at=2 * SECOND)
    for second in range(3, 20):
        stage.publish(100, at=second * SECOND)
    stage.simulation.heal("slow", "b2", at=21 * SECOND)
    stage.publish(10, at=25 * SECOND)
    trace = stage.run()
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 2 * 1_720, [])
    assert last_time(trace, "t") < 26_000, "nothing stood still meanwhile"


def test_who_falls_out_of_what_is_kept_is_told_exactly_what_it_misses() -> None:
    stage = Stage(consume_us=0, history_bytes=20_000)
    stage.simulation.cut("slow", "b2", at=2 * SECOND)
    for second in range(3, 20):
        stage.publish(100, at=second * SECOND)
    stage.simulation.heal("slow", "b2", at=21 * SECOND)
    stage.publish(10, at=25 * SECOND)
    trace = stage.run()
    verdict = check(trace)
    assert verdict.status == "valid"
    assert {(row.subscription_id, row.publisher) for row in trace.skipped} == {("s", "alice")}
    told = {f"alice:{seq}" for row in trace.skipped for seq in range(row.from_seq, row.to_seq + 1)}
    assert 100 < len(told) < 1_700
    assert {*came(trace, "s")} == {*came(trace, "t")} - told


def test_a_subscription_that_ends_while_it_lies_behind_ends_where_its_client_is() -> None:
    stage = Stage()
    stage.publish(400, at=SECOND)
    stage.simulation.call("slow", Unsubscribe("s"), at=5 * SECOND)
    trace = stage.run()
    assert check(trace).status == "valid"
    assert len(came(trace, "t")) == 400
    assert 8 <= len(came(trace, "s")) < 100
    [row] = [row for row in trace.subscriptions if row.subscription_id == "s"]
    assert row.ended_ms is not None


def test_what_a_client_subscribes_meanwhile_does_not_wait_for_what_lies_behind() -> None:
    stage = Stage()
    stage.publish(200, at=SECOND)
    stage.simulation.call("slow", Subscribe("new", "TRUE"), at=5 * SECOND)
    stage.publish(20, at=6 * SECOND)
    trace = stage.run(until=400 * SECOND)
    assert check(trace).status == "valid"
    assert (len(came(trace, "s")), len(came(trace, "new")), len(came(trace, "t"))) == (220, 20, 220)


# ---- the session


def session(*names: str) -> Session:
    found = Session("c", epoch_of(0))
    brought = [SubscriptionProgress(name, "TRUE", {}, {}, True) for name in names]
    found.claim(Attach(1, "b/0", brought, {}, [], 1), [])
    return found


def event(seq: int) -> Event:
    return Event("p", seq, {})


def said(found: Sequence[object]) -> list[str]:
    words = []
    for item in found:
        if isinstance(item, Delivery):
            words += [one.id for one in item.events]
        else:
            words.append(type(item).__name__)
    return words


def test_what_was_not_sent_is_dropped_and_nobody_waits_for_what_was() -> None:
    behind = session("s")
    behind.put([Outgoing([event(seq)], ["s"]) for seq in range(1, 6)])
    assert said(behind.unsent(2)) == ["p:1", "p:2"]
    assert (behind.owed, behind.released) == (5, 0)
    behind.fall_behind()
    assert (behind.owed, behind.released, behind.has_history) == (5, 5, True)
    behind.note(Behind(1, 7, ["s"]))
    assert said(behind.unsent(2)) == ["Behind"], "it is told after what was sent"
    behind.put([Outgoing([event(3)], ["s"], True)])
    behind.got(2)
    assert said(behind.unsent(2)) == ["p:3"]
    behind.got(3)
    assert not behind.has_history


def test_an_ending_that_was_to_be_told_later_is_told_where_the_client_is() -> None:
    behind = session("s")
    behind.put([Outgoing([event(seq)], ["s"]) for seq in range(1, 6)])
    behind.take_leave(Unsubscribed(1, "s", {"p": 5}))
    assert said(behind.unsent(2)) == ["p:1", "p:2"]
    behind.fall_behind()
    [note] = behind.unsent(2)
    assert note == Unsubscribed(1, "s", {})

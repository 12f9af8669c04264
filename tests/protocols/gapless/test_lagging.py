"""Brokers serve a lagging client from history: no other client waits, and it misses no retained event."""

import pytest

from gapless.checkers import check
from gapless.event_runs import EventTable
from gapless.overlay import chain
from gapless.protocol import Advertise, PublishMany, Subscribe, Unsubscribe
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.simulator.latency import Latency
from gapless.simulator.settings import Settings
from gapless.trace import Recorder, Trace

SECOND = 1_000_000
LAG_WINDOW = 20


class Stage:
    """A chain of brokers with a publisher at one end, and two clients that subscribe at the other; one is slow."""

    def __init__(self, brokers: int = 3, consume_us: int = 2 * SECOND, history_bytes: int = 1 << 20) -> None:
        self.recorder = Recorder(
            run="r", protocol="gapless", guarantee="gcd", scenario="lagging", seed=0, brokers=brokers, f=1
        )
        options = {"window": 50, "delivery_window": 8, "lag_window": LAG_WINDOW, "history_bytes": history_bytes}
        self.simulation = Simulation(
            chain(brokers), find_protocol("gapless"), recorder=self.recorder, options=options, f=1
        )
        far = f"b{brokers - 1}"
        self.simulation.add_client("alice", "b0")
        self.simulation.add_client("slow", far, consume_us=consume_us)
        self.simulation.add_client("quick", far)
        self.simulation.call("alice", Advertise("a", "TRUE"), at=0)
        self.simulation.call("slow", Subscribe("s", "TRUE"), at=SECOND // 2)
        self.simulation.call("quick", Subscribe("t", "TRUE"), at=SECOND // 2)

    def publish(self, count: int, at: int, payload: bytes = b"") -> None:
        table = EventTable.of([{"x": n} for n in range(count)], [payload] * count)
        self.simulation.call("alice", PublishMany(table), at=at)

    def leave_alone(self, begin_s: int, end_s: int) -> None:
        for broker in self.simulation.overlay.brokers:
            self.simulation.cut("slow", broker, at=begin_s * SECOND)
            self.simulation.heal("slow", broker, at=end_s * SECOND)

    def run(self, settle: int = 60 * SECOND) -> Trace:
        result = self.simulation.run(settle=settle)
        assert result.trace is not None
        return result.trace


def came(trace: Trace, subscription: str) -> list[str]:
    return [row.event_id for row in trace.history if row.subscription_id == subscription]


def last_time(trace: Trace, subscription: str) -> float:
    return max(row.time_ms for row in trace.history if row.subscription_id == subscription)


def test_a_slow_client_delays_no_other_and_receives_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = 0
    step = GaplessBroker.step

    def watched(node: GaplessBroker, item: object, now: int) -> object:
        nonlocal waiting
        effects = step(node, item, now)  # type: ignore[arg-type]
        waiting = max([waiting, *(session.waiting for session in node.state.sessions.values())])
        return effects

    monkeypatch.setattr(GaplessBroker, "step", watched)
    stage = Stage()
    for n in range(40):
        stage.publish(10, at=SECOND + n * SECOND // 10)
    trace = stage.run(settle=250 * SECOND)
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 800, [])
    assert last_time(trace, "t") < 7_000, "the other client and the publisher went on"
    assert last_time(trace, "s") > 60_000, "it took 8 every two seconds"
    assert waiting <= LAG_WINDOW + 10, "what waits is bounded"


@pytest.mark.parametrize("crash_ms", [1_100, 1_250, 1_350, 1_900, 2_500])
def test_it_continues_at_another_broker(crash_ms: int) -> None:
    stage = Stage(4)
    stage.simulation.cut("slow", "b3", at=SECOND)
    stage.publish(200, at=SECOND + 1_000)
    stage.simulation.crash("b3", at=crash_ms * 1_000)
    stage.simulation.heal("slow", "b3", at=crash_ms * 1_000)
    trace = stage.run(settle=120 * SECOND)
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 400, [])


def test_a_client_that_returns_after_a_while_continues() -> None:
    stage = Stage(consume_us=0)
    stage.publish(10, at=SECOND)
    stage.leave_alone(2, 21)
    for second in range(3, 20):
        stage.publish(100, at=second * SECOND)
    stage.publish(10, at=25 * SECOND)
    trace = stage.run()
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 2 * 1_720, [])
    assert last_time(trace, "t") < 26_000, "delivery went on meanwhile"


def test_a_client_away_for_longer_than_history_receives_the_missed_ranges() -> None:
    stage = Stage(consume_us=0, history_bytes=256 * 1024)
    stage.leave_alone(2, 21)
    for second in range(3, 20):
        stage.publish(20, at=second * SECOND, payload=bytes(2_000))
    stage.publish(10, at=25 * SECOND)
    trace = stage.run()
    verdict = check(trace)
    assert verdict.status == "valid"
    assert {(row.subscription_id, row.publisher) for row in trace.skipped} == {("s", "alice")}
    reported = {f"alice:{seq}" for row in trace.skipped for seq in range(row.from_seq, row.to_seq + 1)}
    assert 100 < len(reported) < 340
    assert {*came(trace, "s")} == {*came(trace, "t")} - reported
    for broker in ("b0", "b1", "b2"):
        node = stage.simulation.slots[broker].node
        assert isinstance(node, GaplessBroker)
        state = node.state
        size = sum(journal.size for journal in (state.journal, *state.journals.values()))
        assert size <= 256 * 1024, broker


def test_a_subscription_that_ends_while_it_lags_ends_where_its_client_is() -> None:
    stage = Stage()
    stage.publish(400, at=SECOND)
    stage.simulation.call("slow", Unsubscribe("s"), at=5 * SECOND)
    trace = stage.run()
    assert check(trace).status == "valid"
    assert len(came(trace, "t")) == 400
    assert 8 <= len(came(trace, "s")) < 100
    [row] = [row for row in trace.subscriptions if row.subscription_id == "s"]
    assert row.ended_ms is not None


def test_a_new_subscription_of_a_lagging_client_does_not_wait_for_history() -> None:
    stage = Stage()
    stage.publish(200, at=SECOND)
    stage.simulation.call("slow", Subscribe("new", "TRUE"), at=5 * SECOND)
    stage.publish(20, at=6 * SECOND)
    trace = stage.run(settle=400 * SECOND)
    assert check(trace).status == "valid"
    assert (len(came(trace, "s")), len(came(trace, "new")), len(came(trace, "t"))) == (220, 20, 220)


def begin_in_a_burst(crash_ms: int) -> str:
    """Return the symptom of a run in which more events match a new subscription than are kept while its cut is pending,
    and then its broker crashes."""
    recorder = Recorder(run="r", protocol="gapless", guarantee="gcd", scenario="burst", seed=0, brokers=4, f=1)
    options = {"lag_window": 8, "wave_ms": 50.0}
    simulation = Simulation(
        chain(4), find_protocol("gapless"), recorder=recorder, options=options, f=1,
        settings=Settings(latency=Latency(least_us=40_000, most_us=40_000)),
    )  # fmt: skip
    for name, broker in (("near", "b1"), ("far", "b3"), ("carol", "b1")):
        simulation.add_client(name, broker)
    for name in ("near", "far"):
        simulation.call(name, Advertise(f"{name}/a", "TRUE"), at=0)
    simulation.call("carol", Subscribe("live", "x = 7"), at=SECOND)
    simulation.call("carol", Subscribe("new", "TRUE"), at=2 * SECOND)
    for n in range(60):
        simulation.call("near", PublishMany(EventTable.of([{"x": 1}] * 1, [b""])), at=SECOND * 19 // 10 + n * 10_000)
    simulation.crash("b1", at=crash_ms * 1_000)
    result = simulation.run(settle=20 * SECOND)
    assert result.trace is not None
    assert len(came(result.trace, "new")) > 0
    return check(result.trace).status


def test_a_subscription_that_begins_in_a_burst_reads_what_was_not_kept() -> None:
    assert {begin_in_a_burst(crash_ms) for crash_ms in range(2_200, 2_600, 100)} == {"valid"}

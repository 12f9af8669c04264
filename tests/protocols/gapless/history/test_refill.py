"""History that lost a holder gets another: who reads later misses nothing, though all who held it first are gone."""

import pytest

from gapless.checkers import check
from gapless.overlay import chain
from gapless.positions import Position
from gapless.protocol import Advertise, PublishMany, Subscribe
from gapless.protocols.gapless.history.refill import Refill
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder, Trace

SECOND = 1_000_000


def one_after_the_other(memory_lost: tuple[str, ...], f: int = 1) -> Trace:
    """Alice publishes at b2 of five; then brokers fail one after the other, and come back with nothing."""
    recorder = Recorder(run="r", protocol="gapless", guarantee="gcd", scenario="refill", seed=0, brokers=5, f=f)
    simulation = Simulation(chain(5), find_protocol("gapless"), recorder=recorder, f=f)
    simulation.add_client("alice", "b2")
    simulation.add_client("late", "b4")
    simulation.call("alice", Advertise("a", "TRUE"), at=0)
    simulation.call("alice", PublishMany([b""] * 300, [({"x": n}, n + 1) for n in range(300)]), at=SECOND)
    at = 5 * SECOND
    for broker in memory_lost:
        simulation.crash(broker, at=at)
        simulation.restart(broker, at=at + 2 * SECOND)
        at += 6 * SECOND
    simulation.call("late", Subscribe("s", "TRUE", since=Position.at(0)), at=at)
    result = simulation.run(settle=20 * SECOND)
    assert result.trace is not None
    return result.trace


@pytest.mark.parametrize("order", ["b2 b1", "b1 b2", "b1 b3 b2", "b2 b1 b0 b3 b4", "b0 b1 b2 b3 b4"])
def test_nothing_is_lost_though_everyone_who_held_it_has_failed(order: str) -> None:
    trace = one_after_the_other(tuple(order.split()))
    verdict = check(trace)
    assert (verdict.status, verdict.deliveries, trace.skipped) == ("valid", 300, [])


def test_without_it_what_its_holders_have_lost_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refill, "follow", lambda self: None)
    trace = one_after_the_other(("b2", "b1"))
    assert check(trace).status == "unknown", "it got nothing"
    told = {seq for row in trace.skipped for seq in range(row.from_seq, row.to_seq + 1)}
    assert told == {*range(1, 301)}


def test_while_it_is_read_again_operators_are_told_that_too_few_hold_it() -> None:
    """B2 comes back with nothing; its own journal and those that it backs up are with one broker less until it has read
    them."""
    simulation = Simulation(chain(5), find_protocol("gapless"), f=1)
    simulation.add_client("alice", "b2")
    simulation.call("alice", Advertise("a", "TRUE"), at=0)
    simulation.call("alice", PublishMany([b""] * 5_000, [({"x": n}, n + 1) for n in range(5_000)]), at=SECOND)
    simulation.crash("b2", at=5 * SECOND)
    simulation.restart("b2", at=7 * SECOND)
    told: list[tuple[str, ...]] = []

    def look() -> None:
        for node in simulation.broker_nodes():
            overview = node.overview()
            if overview["history"]["held_by_few"]:
                told.append(tuple(overview["history"]["held_by_few"]))

    for at in range(7 * SECOND, 12 * SECOND, SECOND // 50):
        simulation.event_queue.call(at, look)
    ends: list[int] = []
    simulation.event_queue.call(19 * SECOND, lambda: ends.append(len(told)))
    simulation.event_queue.call(19 * SECOND, look)
    simulation.event_queue.call(19 * SECOND, lambda: ends.append(len(told)))
    simulation.run(settle=15 * SECOND)
    assert any("b2" in journals for journals in told)
    assert ends[0] == ends[1], "at the end all is held again"

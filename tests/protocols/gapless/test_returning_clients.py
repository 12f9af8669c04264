"""A client that had to move returns to its preferred broker and misses no event."""

from collections.abc import Iterator
from itertools import groupby

from gapless.checkers import check
from gapless.overlay import chain
from gapless.protocol import Advertise, Publish, Subscribe
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder, Trace

SECOND = 1_000_000
REBALANCE_MS = 2_000.0


def run(*, is_back: bool = True, is_hidden: bool = False) -> Trace:
    """Run the scenario: alice publishes ten events per second at one end, and carol subscribes at the other, whose
    broker crashes at 3 s."""
    recorder = Recorder(
        run="r", protocol="gapless", guarantee="gcd", scenario="return", seed=0, brokers=3, f=1, with_messages=True
    )
    simulation = Simulation(
        chain(3), find_protocol("gapless"), recorder=recorder, options={"rebalance_ms": REBALANCE_MS}, f=1,
        with_messages=True,
    )  # fmt: skip
    simulation.add_client("alice", "b0")
    simulation.add_client("carol", "b2")
    simulation.call("alice", Advertise("a", "TRUE"), at=0)
    simulation.call("carol", Subscribe("s", "TRUE"), at=SECOND)
    for number in range(200):
        simulation.call("alice", Publish({"x": number}, b""), at=2 * SECOND + number * SECOND // 10)
    simulation.crash("b2", at=3 * SECOND)
    if is_back:
        simulation.restart("b2", at=6 * SECOND)
    if is_hidden:
        simulation.cut("carol", "b2", at=5 * SECOND)
    result = simulation.run(settle=20 * SECOND)
    assert result.trace is not None
    return result.trace


def homes(trace: Trace) -> Iterator[str]:
    deliveries = sorted(
        (row.sent_ms, row.sender) for row in trace.messages if row.receiver == "carol" and row.kind == "Delivery"
    )
    for broker, _ in groupby(deliveries, key=lambda delivery: delivery[1]):
        yield broker


def delivered(trace: Trace) -> list[str]:
    return [row.event_id for row in trace.history if row.subscription_id == "s"]


def test_a_client_returns_when_its_broker_works_again() -> None:
    trace = run()
    first, *others = homes(trace)
    assert (first, others[-1]) == ("b2", "b2")
    assert set(others) > {"b2"}
    assert check(trace).status == "valid"
    assert len(delivered(trace)) == 200


def test_a_client_stays_while_its_broker_is_away() -> None:
    trace = run(is_back=False)
    first, *others = homes(trace)
    assert first == "b2"
    assert "b2" not in others
    assert check(trace).status == "valid"


def test_a_client_that_cannot_reach_the_broker_continues_elsewhere() -> None:
    trace = run(is_hidden=True)
    assert check(trace).status == "valid"
    assert len(delivered(trace)) == 200

"""Two clients attach to the same durable subscription at the same time, with different filters."""

import pytest

from gapless.checkers import check
from gapless.overlay import chain
from gapless.protocol import Advertise, Publish, Subscribe
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder

ANN = Subscribe("ann/s", "x > 0", name="n")
BOB = Subscribe("bob/s", "x > 5", name="n")


def compete(later_ms: float, ann: Subscribe, bob: Subscribe) -> tuple[list[str], str]:
    recorder = Recorder(run="r", protocol="gapless", guarantee="gcd", scenario="compete", seed=0, brokers=5, f=2)
    simulation = Simulation(chain(5), find_protocol("gapless"), recorder=recorder, f=2)
    for name, broker in (("sue", "b2"), ("ann", "b0"), ("bob", "b4")):
        simulation.add_client(name, broker)
    simulation.call("sue", Advertise("sue/a", "x > 0"), at=0)
    simulation.call("ann", ann, at=1_000_000)
    simulation.call("bob", bob, at=1_000_000 + int(later_ms * 1_000))
    for number in range(40):
        simulation.call("sue", Publish({"x": number % 10 + 1}, b""), at=2_000_000 + number * 50_000)
    result = simulation.run(settle=20_000_000)
    assert result.trace is not None
    refused = [refusal.client for refusal in simulation.refusals]
    return refused, check(result.trace).status


@pytest.mark.parametrize("later_ms", range(0, 60, 4))
def test_one_of_them_is_refused_and_the_other_misses_nothing(later_ms: float) -> None:
    refused, status = compete(later_ms, ANN, BOB)
    assert len(refused) == 1
    assert status == "valid"

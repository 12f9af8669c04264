"""An application that does not take its events holds publishers back, and nobody's memory grows with its delay."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from gapless.checkers import check
from gapless.overlay import chain
from gapless.protocol import (
    Advertise,
    ClientNode,
    ClientPlace,
    Consumed,
    Deliver,
    DeliverMany,
    Effect,
    Input,
    PublishMany,
    Subscribe,
)
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder

WINDOW = 50
AHEAD = 8


class Watched(ClientNode):
    """A client node, and the most that was ever delivered to its application and not taken."""

    most: ClassVar[dict[str, int]] = {}

    def __init__(self, node: ClientNode, name: str) -> None:
        self._node = node
        self._name = name
        self._delivered = self._taken = 0

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        effects = self._node.step(item, now)
        self._delivered += sum(isinstance(effect, Deliver) for effect in effects)
        self._delivered += sum(len(effect.events) for effect in effects if isinstance(effect, DeliverMany))
        if isinstance(item, Consumed):
            self._taken = item.count
        self.most[self._name] = max(self.most.get(self._name, 0), self._delivered - self._taken)
        return effects

    def state_size(self) -> Mapping[str, int]:
        return self._node.state_size()


@pytest.mark.parametrize("crash", [False, True])
def test_a_slow_application_bounds_what_is_ahead_of_it(crash: bool) -> None:
    spec = find_protocol("gapless")
    Watched.most = {}

    def watched(place: ClientPlace, options: Any) -> ClientNode:
        return Watched(spec.client(place, options), place.name)

    recorder = Recorder(run="r", protocol="gapless", guarantee="gcd", scenario="slow", seed=0, brokers=3, f=1)
    simulation = Simulation(
        chain(3), msgspec.structs.replace(spec, client=watched), recorder=recorder,
        options={"window": WINDOW, "delivery_window": AHEAD},
    )  # fmt: skip
    simulation.add_client("alice", "b0")
    simulation.add_client("slow", "b2", consume_us=40_000)
    simulation.add_client("quick", "b2")
    simulation.call("alice", Advertise("a", "TRUE"), at=0)
    simulation.call("slow", Subscribe("s", "TRUE"), at=500_000)
    simulation.call("quick", Subscribe("t", "TRUE"), at=500_000)
    simulation.call("alice", PublishMany([b""] * 400, [({"x": 1}, 400)]), at=1_000_000)
    if crash:
        simulation.crash("b2", at=1_300_000)
    result = simulation.run(settle=20_000_000)
    assert result.trace is not None
    verdict = check(result.trace)
    assert (verdict.status, verdict.deliveries) == ("valid", 800)
    assert Watched.most["slow"] == AHEAD
    assert Watched.most["quick"] <= AHEAD
    assert result.state_sizes["retained"].max <= WINDOW

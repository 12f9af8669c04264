"""A broker that is busy with a hand-over: it works in turns, takes nothing else before the end, and forgets nothing."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from gapless.events import Event
from gapless.filters import Filter
from gapless.overlay import chain
from gapless.protocol import (
    Advertise,
    BrokerNode,
    BrokerPlace,
    Effect,
    Expel,
    Input,
    Publish,
    Received,
    Send,
    SetTimer,
    Start,
    Subscribe,
    Suspected,
    TimerFired,
)
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    Cut,
    Delivery,
    Stable,
    SubscriptionProgress,
)
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.routing.records import Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.turns import GO_ON
from gapless.registry import find_protocol
from gapless.simulator import Simulation, generate, try_scenario

SECOND = 1_000_000


@pytest.mark.parametrize(("units", "rest_ms"), [(1, 0.0), (1, 0.3), (20, 3.0), (150, 1.0)])
@pytest.mark.parametrize("faults", ["crash", "all"])
def test_random_runs_of_brokers_that_are_busy_for_long_show_no_violation(
    faults: str, units: int, rest_ms: float
) -> None:
    for seed in range(5):
        scenario = generate(seed, "gapless", faults, options={"work_per_turn": units, "rest_ms": rest_ms})
        outcome = try_scenario(scenario)
        assert not outcome.failed, f"seed {seed}: {', '.join(outcome.symptoms)} {outcome.summary}"


class Busy:
    """A broker whose only neighbour has died, in a hand-over that it does one unit at a time; c is its client."""

    def __init__(self) -> None:
        options = GaplessOptions(partition="go on", work_per_turn=1, patience_ms=1)
        self.node = GaplessBroker(BrokerPlace("b0", chain(2), 1), options)
        self.effects: list[Effect] = []
        self.give(Start())
        self.receive(Attach(1, "b0/0", [], {}, [], 1))
        for number in range(5):
            self.receive(ClientSubscribe(1, f"s{number}", f"x = {number}"))
        self.give(Suspected("b1"))
        self.give(TimerFired("overdue/b1"))

    def give(self, item: Input) -> None:
        self.effects += self.node.step(item, 0)

    def receive(self, message: Any) -> None:
        self.give(Received("c", message))

    @property
    def is_busy(self) -> bool:
        """Whether a timer is set that no `go_on` has answered."""
        return SetTimer(GO_ON.key, 0) in self.effects

    def go_on(self) -> None:
        """Let the broker do its next piece."""
        self.effects.remove(SetTimer(GO_ON.key, 0))
        self.give(GO_ON)

    def told(self, kind: type) -> list[Any]:
        """What the client was told."""
        messages = [effect.message for effect in self.effects if isinstance(effect, Send) and effect.peer == "c"]
        return [message for message in messages if isinstance(message, kind)]


def test_a_hand_over_takes_several_turns_and_ends() -> None:
    broker = Busy()
    turns = 0
    while broker.is_busy:
        broker.go_on()
        turns += 1
    assert 5 < turns < 200
    assert broker.node.overview()["hand_overs"] == []


def test_what_a_client_says_meanwhile_is_done_afterwards_in_order() -> None:
    broker = Busy()
    broker.receive(Attach(2, "b0/0", [], {}, [], 1))
    broker.receive(ClientSubscribe(2, "late", "x > 10"))
    assert broker.is_busy
    assert len(broker.told(Attached)) == 1
    while broker.is_busy:
        broker.go_on()
    assert [message.attempt for message in broker.told(Attached)] == [1, 2]
    assert broker.node.state_size()["subscriptions"] == 1, "the second attempt brought none, and then began one"


def test_one_timer_at_a_time_keeps_a_busy_broker_going() -> None:
    broker = Busy()
    for number in range(20):
        broker.receive(ClientSubscribe(1, f"more {number}", "x > 10"))
        assert broker.effects.count(SetTimer(GO_ON.key, 0)) == 1
    while broker.is_busy:
        broker.go_on()
        assert broker.effects.count(SetTimer(GO_ON.key, 0)) <= 1
    assert broker.node.state_size()["subscriptions"] == 25


def test_inputs_that_wait_grow_fewer_with_each_that_comes() -> None:
    broker = Busy()
    for number in range(40):
        broker.receive(ClientSubscribe(1, f"early {number}", "x > 10"))
    while broker.node.state_size()["subscriptions"] == 5:
        broker.go_on()
    for number in range(45):
        broker.receive(ClientSubscribe(1, f"later {number}", "x > 10"))
    assert broker.node.state_size()["subscriptions"] == 90


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (ClientSubscribe(1, "bad", "x ="), "x ="),
        (Attach(2, "b0/0", [SubscriptionProgress("bad", "x =", {}, {}, False)], {}, [], 1), "x ="),
        (Attach(2, "b0/0", [], {"bad": ("x =", 1)}, [], 1), "x ="),
        (Attach(2, "b0/0", [], {}, [Event("d", 1, {"x": 1})], 1), "'c' cannot publish in the name of 'd'"),
        (ClientPublish(1, [Event("d", 1, {"x": 1})]), "'c' cannot publish in the name of 'd'"),
    ],
)
def test_who_says_something_wrong_to_a_busy_broker_is_sent_away_and_the_broker_goes_on(
    message: Any, sentence: str
) -> None:
    broker = Busy()
    broker.receive(message)
    while broker.is_busy:
        broker.go_on()
    [expelled] = [effect for effect in broker.effects if isinstance(effect, Expel)]
    assert expelled.client == "c"
    assert sentence in expelled.reason
    broker.receive(ClientSubscribe(1, "good", "x = 1"))
    assert broker.node.state_size()["subscriptions"] == 6


class Counted(BrokerNode):
    """A broker whose work is counted: the calls of Python functions in each step."""

    most = 0
    total = 0
    begins = 4 * SECOND

    def __init__(self, node: BrokerNode) -> None:
        self._node = node
        self._calls = 0

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        if now < self.begins:
            return self._node.step(item, now)
        self._calls = 0
        sys.setprofile(self._count)
        try:
            return self._node.step(item, now)
        finally:
            sys.setprofile(None)
            Counted.most = max(Counted.most, self._calls)
            Counted.total += self._calls

    def _count(self, frame: Any, event: str, argument: Any) -> None:
        self._calls += 1

    def state_size(self) -> Mapping[str, int]:
        return self._node.state_size()


def most_calls_in_a_step(events: int, subscriptions: int) -> tuple[int, int]:
    """In a hand-over with so many of them; and in all steps."""
    spec = find_protocol("gapless")

    def make(place: BrokerPlace, options: msgspec.Struct) -> BrokerNode:
        return Counted(spec.broker(place, options))

    simulation = Simulation(chain(3), msgspec.structs.replace(spec, broker=make), options={"wave_ms": 1e6})
    for broker in simulation.overlay.brokers:
        simulation.add_client(f"at {broker}", broker)
        simulation.call(f"at {broker}", Advertise(f"a {broker}", "x >= 0"), at=1)
    for number in range(subscriptions):
        if number % 30 < 3:
            simulation.add_client(f"c{number}", f"b{number % 3}")
        client = f"c{number - number % 30 + number % 3}"
        simulation.call(client, Subscribe(f"s{number}", f"x = {number}"), at=SECOND + number)
    for number in range(events):
        simulation.call(f"at b{number % 3}", Publish({"x": number % subscriptions}), at=2 * SECOND + number)
    simulation.crash("b1", at=Counted.begins)
    Counted.most = Counted.total = 0
    simulation.run(until=30 * SECOND)
    return Counted.most, Counted.total


def test_no_step_of_a_hand_over_grows_with_what_is_handed_over() -> None:
    small = most_calls_in_a_step(150, 150)
    large = most_calls_in_a_step(600, 600)
    assert large[1] > 3 * small[1], "there is more to do"
    assert large[0] < 2 * small[0], "but not in any one turn"


@pytest.mark.parametrize("count", [50, 1_500])
def test_a_client_that_comes_with_many_subscriptions_takes_several_turns(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = 0
    texts = [f"x = {number} AND y LIKE 'come {count}%'" for number in range(count)]
    make, enter = Filter.__init__, RoutingTable.enter_subscription

    def counted_make(self: Filter, text: str) -> None:
        nonlocal done
        done += 1
        make(self, text)

    def counted_enter(self: RoutingTable, *given: Any) -> Subscription:
        nonlocal done
        done += 1
        return enter(self, *given)

    monkeypatch.setattr(Filter, "__init__", counted_make)
    monkeypatch.setattr(RoutingTable, "enter_subscription", counted_enter)
    node = GaplessBroker(BrokerPlace("b0", chain(1), 0), GaplessOptions(work_per_turn=100))
    effects = list(node.step(Start(), 0))
    turns: list[int] = []

    def give(item: Input) -> None:
        nonlocal done
        done = 0
        effects.extend(node.step(item, 0))
        turns.append(done)

    brought = [SubscriptionProgress(f"s{number}", text, {}, {}, False) for number, text in enumerate(texts)]
    give(Received("c", Attach(1, "b0/0", brought, {}, [], 1)))
    give(Received("d", Attach(1, "b0/0", [SubscriptionProgress("late", f"late = {count}", {}, {}, False)], {}, [], 1)))
    while SetTimer(GO_ON.key, 0) in effects:
        effects.remove(SetTimer(GO_ON.key, 0))
        give(GO_ON)
    assert max(turns) <= 100, "and each filter is understood once, however many there are"
    assert sum(turns) == 2 * (count + 1)
    assert node.state_size()["subscriptions"] == count + 1
    attached = [effect.peer for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Attached)]
    assert attached == ["c", "d"]


def test_an_advertisement_among_many_subscriptions_takes_several_turns() -> None:
    node = GaplessBroker(BrokerPlace("b0", chain(1), 0), GaplessOptions(work_per_turn=10))
    effects = list(node.step(Start(), 0))

    def give(client: str, message: Any) -> None:
        effects.extend(node.step(Received(client, message), 0))

    give("c", Attach(1, "b0/0", [], {}, [], 1))
    give("p", Attach(1, "b0/0", [], {}, [], 1))
    for number in range(300):
        give("c", ClientSubscribe(1, f"s{number}", f"x > {number}"))
    effects.clear()
    give("p", ClientAdvertise(1, "a", "x > 10", 1))
    give("p", ClientPublish(1, [Event("p", 1, {"x": 200})]))
    turns = 0
    while SetTimer(GO_ON.key, 0) in effects:
        effects.remove(SetTimer(GO_ON.key, 0))
        effects.extend(node.step(GO_ON, 0))
        turns += 1
    assert turns > 10, "it is compared with each of them, twice"
    told = [type(effect.message) for effect in effects if isinstance(effect, Send)]
    assert told.index(Stable) > max(place for place, kind in enumerate(told) if kind is Cut)
    assert Delivery in told[told.index(Stable) :]

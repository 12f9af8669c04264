"""The client node: numbers, refusals, and exact endings."""

from typing import Any

import pytest

from gapless.events import Event
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Connected,
    CutFixed,
    Deliver,
    Effect,
    Ended,
    Input,
    Publish,
    Published,
    Received,
    Rejected,
    Send,
    SetTimer,
    Start,
    Subscribe,
    TimerFired,
    Unadvertise,
    Unsubscribe,
)
from gapless_papers.protocols.gryphon.client import GryphonClient
from gapless_papers.protocols.gryphon.messages import (
    Acknowledgement,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Delivery,
    Missing,
    Offered,
    Packet,
    Started,
)
from gapless_papers.protocols.gryphon.options import GryphonOptions


class Bench:
    """A client, and a broker that sends it numbered packets."""

    def __init__(self, **options: Any) -> None:
        self.client = GryphonClient(ClientPlace("c", "b", ("b", "d")), GryphonOptions(**options))
        self.number = 0

    def step(self, item: Input) -> list[Any]:
        """Return the effects of an input; messages are returned without their packets."""
        effects = [effect for effect in self.client.step(item, 0) if not isinstance(effect, SetTimer)]
        return [_body(effect) for effect in effects]

    def receive(self, body: Any) -> list[Any]:
        self.number += 1
        return self.step(Received("b", Packet(self.number, 0, body)))


def _body(effect: Effect) -> Any:
    return effect.message.body if isinstance(effect, Send) and isinstance(effect.message, Packet) else effect


def test_publications_are_numbered_and_must_match_an_advertisement() -> None:
    bench = Bench()
    call = Publish({"x": 1})
    [refused] = bench.step(call)
    assert isinstance(refused, Rejected)
    assert "advertise it first" in refused.reason
    assert bench.step(Advertise("a", "x = 1")) == [ClientAdvertise(1, "x = 1")]
    for seq in (1, 2):
        event = Event("c", seq, {"x": 1})
        assert bench.step(call) == [Published(event), ClientPublish(event)]
    assert isinstance(bench.step(Publish({"x": 2}))[0], Rejected)
    assert bench.receive(Offered(1)) == [Advertised("a")]
    assert bench.step(Unadvertise("a")) == [ClientUnadvertise(1)]
    assert bench.receive(Offered(1)) == []
    assert isinstance(bench.step(call)[0], Rejected)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Advertise("a", "TRUE"), Advertise("a", "x = 1")),
        (Subscribe("s", "TRUE"), Subscribe("s", "x = 1")),
        (Start(), Subscribe("s", "x = ")),
        (Start(), Advertise("a", "x = ")),
        (Start(), Unsubscribe("s")),
        (Start(), Unadvertise("a")),
    ],
)
def test_impossible_values_are_refused(first: Input, second: Input) -> None:
    bench = Bench()
    bench.step(first)
    [refused] = bench.step(second)
    assert isinstance(refused, Rejected)
    assert refused.call == second


def test_calls_that_the_broker_does_not_accept_are_bounded() -> None:
    bench = Bench(buffer=2)
    bench.step(Advertise("a", "TRUE"))
    bench.step(Publish({}))
    for call in (Publish({}), Subscribe("s", "TRUE"), Advertise("more", "TRUE")):
        [refused] = bench.step(call)
        assert isinstance(refused, Rejected)
        assert "has not accepted the last 2 calls" in refused.reason
    assert bench.step(Unadvertise("a")) == [ClientUnadvertise(1)]
    bench.step(Received("b", Acknowledgement(3)))
    assert bench.step(Subscribe("s", "TRUE")) == [ClientSubscribe(2, "TRUE")]


def test_a_subscription_is_active_with_its_first_start() -> None:
    bench = Bench()
    bench.step(Subscribe("s", "TRUE"))
    assert bench.receive(Started(1, {"p": 4})) == [CutFixed("s", "p", 4), Activated("s")]
    assert bench.receive(Started(1, {"q": 1})) == [CutFixed("s", "q", 1)]


def test_it_ends_where_its_deliveries_end_and_the_name_is_free_again() -> None:
    bench = Bench()
    bench.step(Subscribe("s", "TRUE"))
    bench.receive(Started(1, {"p": 4, "q": 7}))
    event = Event("p", 5, {})
    assert bench.receive(Delivery(event, (1,))) == [Deliver(event, "s")]
    assert bench.step(Unsubscribe("s")) == [Ended("s", {"p": 5, "q": 6}), ClientUnsubscribe(1)]
    assert bench.step(Subscribe("s", "TRUE")) == [ClientSubscribe(2, "TRUE")]
    assert bench.receive(Delivery(Event("p", 6, {}), (1,))) == []
    assert bench.receive(Started(1, {"r": 1})) == []
    assert bench.client.state_size() == {"subscriptions": 1, "advertisements": 0, "unacknowledged": 3}


def test_its_link_is_completed_like_any_other() -> None:
    bench = Bench()
    bench.step(Subscribe("s", "TRUE"))
    kept = ClientSubscribe(1, "TRUE")
    assert bench.step(Connected("d")) == []
    for item in (Connected("b"), Received("b", Missing(1, 1)), TimerFired("repeat")):
        assert bench.step(item) == [kept]

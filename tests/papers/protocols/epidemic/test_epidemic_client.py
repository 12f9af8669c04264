"""The effects of a client of the protocol for its user."""

from typing import Any

from gapless.events import Event
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Connected,
    Deliver,
    Ended,
    Publish,
    Published,
    Received,
    Rejected,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless_papers.protocols.epidemic.client import EpidemicClient
from gapless_papers.protocols.epidemic.messages import (
    Accepted,
    ClientPublish,
    ClientState,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
)
from gapless_papers.protocols.epidemic.options import EpidemicOptions


def client() -> EpidemicClient:
    return EpidemicClient(ClientPlace("c", "b0", ("b0", "b1")), EpidemicOptions())


def steps(node: EpidemicClient, *items: Any) -> list[Any]:
    return [effect for item in items for effect in node.step(item, 0)]


def test_publishing_needs_no_advertisement() -> None:
    event = Event("c", 1, {"x": 1})
    assert steps(client(), Publish({"x": 1})) == [Published(event), Send("b0", ClientPublish(event))]


def test_advertisements_are_stable_at_once() -> None:
    node = client()
    assert steps(node, Advertise("a", "TRUE")) == [Advertised("a")]
    (taken,) = steps(node, Advertise("a", "TRUE"))
    assert (type(taken), taken.reason) == (Rejected, "the name 'a' is in use; choose another name")
    assert steps(node, Unadvertise("a")) == []
    (missing,) = steps(node, Unadvertise("a"))
    assert missing.reason == "there is no advertisement 'a' to withdraw"


def test_a_subscription_lasts_from_its_acceptance_to_its_end() -> None:
    node = client()
    event = Event("p", 4, {})
    assert steps(node, Subscribe("s", "TRUE")) == [Send("b0", ClientSubscribe(1, "TRUE"))]
    assert steps(node, Received("b0", Accepted(1)), Received("b0", Accepted(1))) == [Activated("s")]
    delivery = Received("b0", Delivery(event, (1,)))
    assert steps(node, delivery, delivery) == [Deliver(event, "s")], "once"
    assert steps(node, Unsubscribe("s")) == [Ended("s", {}), Send("b0", ClientUnsubscribe(1))]
    assert steps(node, Received("b0", Delivery(Event("p", 5, {}), (1,)))) == []
    assert steps(node, Subscribe("s", "TRUE")) == [Send("b0", ClientSubscribe(2, "TRUE"))]


def test_mistakes_are_answered() -> None:
    node = client()
    steps(node, Subscribe("s", "TRUE"))
    for call, reason in (
        (Subscribe("s", "TRUE"), "the name 's' is in use; choose another name"),
        (Unsubscribe("t"), "there is no subscription 't' to end"),
        (Subscribe("t", "x <"), "expected"),
    ):
        (refused,) = steps(node, call)
        assert isinstance(refused, Rejected)
        assert reason in refused.reason


def test_a_new_connection_to_the_broker_receives_the_whole_state() -> None:
    node = client()
    steps(node, Subscribe("s", "x = 1"), Subscribe("t", "x = 2"), Unsubscribe("s"))
    assert steps(node, Connected("b1")) == []
    assert steps(node, Connected("b0")) == [Send("b0", ClientState({2: "x = 2"}))]

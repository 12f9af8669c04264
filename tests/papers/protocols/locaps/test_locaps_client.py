"""The client node: numbers, refusals, and exact endings."""

import pytest

from gapless.events import Event
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
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
    Start,
    Subscribe,
    Suspected,
    Trusted,
    Unadvertise,
    Unsubscribe,
)
from gapless_papers.protocols.locaps import client as client_module
from gapless_papers.protocols.locaps.client import LocapsClient
from gapless_papers.protocols.locaps.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientReturn,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Dead,
    Delivery,
    Stable,
    Started,
)
from gapless_papers.protocols.locaps.options import LocapsOptions


def make() -> LocapsClient:
    return LocapsClient(ClientPlace("c", "b", ("b",)), LocapsOptions())


def step(client: LocapsClient, item: Input) -> list[Effect]:
    return list(client.step(item, 0))


def test_publications_are_numbered_and_must_match_an_advertisement() -> None:
    client = make()
    call = Publish({"x": 1})
    [refused] = step(client, call)
    assert isinstance(refused, Rejected)
    assert "advertise it first" in refused.reason
    assert step(client, Advertise("a", "x = 1")) == [Send("b", ClientAdvertise(1, "x = 1"))]
    for seq in (1, 2):
        event = Event("c", seq, {"x": 1})
        assert step(client, call) == [Published(event), Send("b", ClientPublish(event))]
    assert isinstance(step(client, Publish({"x": 2}))[0], Rejected)
    assert step(client, Received("b", Stable(1))) == [Advertised("a")]
    assert step(client, Unadvertise("a")) == [Send("b", ClientUnadvertise(1))]
    assert isinstance(step(client, call)[0], Rejected)


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
    client = make()
    step(client, first)
    [refused] = step(client, second)
    assert isinstance(refused, Rejected)
    assert refused.call == second


def test_events_that_wait_for_an_advertisement_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "HELD_MAX", 2)
    client = make()
    step(client, Advertise("a", "TRUE"))
    answers = [step(client, Publish({}))[0] for _ in range(3)]
    assert [type(answer) for answer in answers] == [Published, Published, Rejected]
    step(client, Received("b", Stable(1)))
    assert isinstance(step(client, Publish({}))[0], Published)


def test_a_subscription_is_active_with_its_first_cut() -> None:
    client = make()
    assert step(client, Subscribe("s", "TRUE")) == [Send("b", ClientSubscribe(1, "TRUE"))]
    assert step(client, Received("b", Started(1, {"p": 4}))) == [CutFixed("s", "p", 4), Activated("s")]
    assert step(client, Received("b", Started(1, {"q": 1}))) == [CutFixed("s", "q", 1)]


def test_it_ends_where_its_deliveries_end_and_the_name_is_free_again() -> None:
    client = make()
    step(client, Subscribe("s", "TRUE"))
    step(client, Received("b", Started(1, {"p": 4, "q": 7})))
    event = Event("p", 5, {})
    assert step(client, Received("b", Delivery(event, [1]))) == [Deliver(event, "s")]
    assert step(client, Unsubscribe("s")) == [Ended("s", {"p": 5, "q": 6}), Send("b", ClientUnsubscribe(1))]
    assert step(client, Subscribe("s", "TRUE")) == [Send("b", ClientSubscribe(2, "TRUE"))]
    assert step(client, Received("b", Delivery(Event("p", 6, {}), [1]))) == []
    assert step(client, Received("b", Started(1, {"r": 1}))) == []
    assert client.state_size() == {"subscriptions": 1, "advertisements": 0, "unconfirmed": 0}


def test_a_client_tries_each_contact_once_however_often_brokers_are_excluded() -> None:
    client = LocapsClient(ClientPlace("c", "b0", ("b0", "b1", "b2")), LocapsOptions())
    turned_to = []
    for broker in ("b0", "b0", "b1", "b0", "b1", "b2", "b2"):
        effects = step(client, Received(broker, Dead(broker)))
        turned_to += [effect.peer for effect in effects if isinstance(effect, Send)]
    assert turned_to == ["b1", "b2"]


def test_a_client_prefers_a_contact_that_it_does_not_suspect_and_never_returns() -> None:
    client = LocapsClient(ClientPlace("c", "b0", ("b0", "b1", "b2")), LocapsOptions())
    assert step(client, Suspected("b1")) == []
    [moved] = step(client, Suspected("b0"))
    assert moved == Send("b2", ClientReturn(("b0",), {}, (), [], {}))
    step(client, Trusted("b0"))
    [moved] = step(client, Suspected("b2"))
    assert moved == Send("b1", ClientReturn(("b0", "b2"), {}, (), [], {}))

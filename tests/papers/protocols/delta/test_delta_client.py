"""One client, message by message."""

from collections.abc import Sequence
from typing import Any

import pytest

from gapless.events import Event
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Confirmed,
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
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unsubscribe,
)
from gapless_papers.protocols.delta.client import PATIENCE, DeltaClient
from gapless_papers.protocols.delta.messages import (
    Accepted,
    Acknowledge,
    Attach,
    Claim,
    ClientOffers,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
    Detach,
    Lost,
    Started,
)
from gapless_papers.protocols.delta.options import DeltaOptions

SECOND = 1_000_000


class Talk:
    """A client of b0 that can move to b1 and b2."""

    def __init__(self, **options: Any) -> None:
        self.client = DeltaClient(ClientPlace("c", "b0", ("b0", "b1", "b2")), DeltaOptions(**options))
        assert self.do(Start()) == [Send("b0", Attach(0, False, (), ()))]

    def do(self, item: Input, now: int = 0) -> Sequence[Effect]:
        return self.client.step(item, now)

    def receive(self, message: Any, peer: str = "b0") -> Sequence[Effect]:
        return self.do(Received(peer, message))


def started(talk: Talk) -> None:
    talk.do(Subscribe("s", "x = 1"))
    talk.receive(Started("c/1.1", {"p": 3}, {"q": 7}))


def test_a_subscription_starts_with_its_cuts() -> None:
    talk = Talk()
    assert talk.do(Subscribe("s", "x = 1")) == [Send("b0", ClientSubscribe("c/1.1", "x = 1"))]
    assert talk.receive(Started("c/1.1", {"p": 3}, {"q": 7})) == [CutFixed("s", "p", 3), Activated("s")]


def test_deliveries_are_acknowledged_and_remembered() -> None:
    talk = Talk()
    started(talk)
    event = Event("p", 4, {"x": 1})
    assert talk.receive(Delivery(9, event, ("c/1.1",))) == [Deliver(event, "s"), Send("b0", Acknowledge(9))]
    [attach] = talk.do(Connected("b0"))
    assert attach == Send("b0", Attach(0, False, (Claim("c/1.1", {"p": 4, "q": 7}),), ()))


def test_it_ends_exactly_at_its_position() -> None:
    talk = Talk()
    started(talk)
    talk.receive(Delivery(1, Event("p", 4, {"x": 1}), ("c/1.1",)))
    ended = Ended("s", {"p": 4, "q": 7})
    assert talk.do(Unsubscribe("s")) == [ended, Send("b0", ClientUnsubscribe("c/1.1"))]
    assert talk.receive(Delivery(2, Event("p", 5, {"x": 1}), ("c/1.1",))) == [Send("b0", Acknowledge(2))]


def test_abandoned_subscriptions_have_ended() -> None:
    talk = Talk()
    started(talk)
    assert talk.receive(Lost("c/1.1")) == [Ended("s", {"p": 2, "q": 7})]
    assert talk.receive(Lost("c/1.1")) == []


def test_broadcasts_that_had_not_started_are_requested_again() -> None:
    talk = Talk()
    talk.do(Subscribe("s", "x = 1"))
    [attach] = talk.do(Connected("b0"))
    assert attach == Send("b0", Attach(0, False, (), (ClientSubscribe("c/1.2", "x = 1"),)))
    assert talk.receive(Started("c/1.1", {}, {})) == [], "that one is over"
    assert talk.receive(Started("c/1.2", {}, {})) == [Activated("s")]


def test_publications_are_kept_until_they_have_reached_everyone() -> None:
    talk = Talk()
    events = [Event("c", seq, {"x": 1}) for seq in (1, 2, 3)]
    for event in events:
        assert talk.do(Publish({"x": 1})) == [Published(event), Send("b0", ClientPublish(event))]
    assert talk.receive(Accepted(2)) == [Confirmed(2)]
    assert talk.receive(Accepted(2)) == []
    assert talk.do(Connected("b0")) == [Send("b0", Attach(3, True, (), ())), Send("b0", ClientPublish(events[2]))]


def test_it_keeps_no_more_than_its_window() -> None:
    talk = Talk(window=2)
    talk.do(Publish({"x": 1}))
    talk.do(Publish({"x": 1}))
    [rejected] = talk.do(Publish({"x": 1}))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "2 publications have not reached every subscriber; try later"
    talk.receive(Accepted(1))
    assert isinstance(talk.do(Publish({"x": 1}))[0], Published)


def test_clients_leave_a_broker_that_stays_away() -> None:
    talk = Talk(patience_ms=1000)
    started(talk)
    talk.do(Subscribe("t", "x = 2"))
    talk.do(Publish({"x": 1}))
    talk.do(Suspected("b1"), SECOND)
    talk.do(Suspected("b0"), 2 * SECOND)
    event = Event("c", 1, {"x": 1})
    assert talk.do(TimerFired(PATIENCE), 3 * SECOND) == [
        Send("b0", Detach()),
        Ended("s", {"p": 2, "q": 7}),
        Send("b2", Attach(1, True, (), (ClientSubscribe("c/2.2", "x = 2"),))),
        Send("b2", ClientPublish(event)),
    ]
    assert talk.receive(Accepted(1), "b0") == [], "it is not the client's broker any more"
    assert talk.receive(Accepted(1), "b2") == [Confirmed(1)]


def test_clients_stay_with_a_broker_that_returns_in_time() -> None:
    talk = Talk(patience_ms=1000)
    talk.do(Suspected("b0"), 2 * SECOND)
    talk.do(Trusted("b0"), 2 * SECOND + 1)
    assert talk.do(TimerFired(PATIENCE), 3 * SECOND) == []


def test_a_client_without_an_alternative_waits_for_the_first_broker_that_returns() -> None:
    talk = Talk(patience_ms=1000)
    for broker in ("b0", "b1", "b2"):
        talk.do(Suspected(broker), 0)
    assert talk.do(TimerFired(PATIENCE), SECOND) == []
    assert talk.do(Trusted("b1"), 2 * SECOND)[-1] == Send("b1", Attach(0, False, (), ()))


def test_advertisements_are_accepted_at_once() -> None:
    talk = Talk()
    assert talk.do(Advertise("a", "TRUE")) == [Advertised("a"), Send("b0", ClientOffers())]
    assert talk.do(Advertise("b", "TRUE")) == [Advertised("b")]
    assert talk.do(Unadvertise("a")) == []


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (Subscribe("s", "x = 2"), "the name 's' is in use; choose another name"),
        (Advertise("a", "x = 2"), "the name 'a' is in use; choose another name"),
        (Unsubscribe("t"), "there is no subscription 't' to end"),
        (Unadvertise("b"), "there is no advertisement 'b' to withdraw"),
    ],
    ids=str,
)
def test_invalid_calls_are_refused(call: Any, reason: str) -> None:
    talk = Talk()
    talk.do(Subscribe("s", "x = 1"))
    talk.do(Advertise("a", "TRUE"))
    assert talk.do(call) == [Rejected(call, reason)]


def test_an_invalid_filter_is_refused() -> None:
    [rejected] = Talk().do(Subscribe("s", "x ="))
    assert isinstance(rejected, Rejected)
    assert "^" in rejected.reason

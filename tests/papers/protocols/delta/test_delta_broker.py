"""One broker, message by message: deliveries, withheld events, and answers."""

from collections.abc import Sequence
from typing import Any

import pytest

from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Effect, Received, Send, Start, Suspected
from gapless_papers.protocols.delta.broker import DeltaBroker
from gapless_papers.protocols.delta.messages import (
    Acknowledge,
    AddSubscription,
    Attach,
    ClientPublish,
    ClientSubscribe,
    ConfirmPublication,
    ConfirmSubscription,
    Delivery,
    Hello,
    Partition,
    Partitions,
    Publication,
    Recovered,
    RemoveSubscription,
    Started,
    SubscriptionsReceived,
    Synchronised,
    Tags,
    Vector,
)
from gapless_papers.protocols.delta.options import DeltaOptions

NOBODY: Tags = frozenset()
FAR = Partition("b2", (0, 1), ("b3",))


class Talk:
    """A broker in the middle of a chain of five, and the messages that it sends."""

    def __init__(self, name: str = "b1", f: int = 1, incarnation: int = 0) -> None:
        self.broker = DeltaBroker(BrokerPlace(name, chain(5), f, incarnation), DeltaOptions())
        self.broker.step(Start(), 0)

    def receive(self, peer: str, message: Any) -> list[tuple[str, Any]]:
        return said(self.broker.step(Received(peer, message), 0))

    def subscribe(self, tags: Tags = NOBODY, cuts: dict[str, dict[str, int]] | None = None) -> None:
        """Let client c subscribe, and both neighbours confirm."""
        self.receive("c", Attach(0, False, (), ()))
        self.receive("c", ClientSubscribe("c/1.1", "x = 1"))
        self.receive("b0", ConfirmSubscription("c/1.1", NOBODY, {}))
        started = self.receive("b2", ConfirmSubscription("c/1.1", tags, cuts or {}))
        assert isinstance(started[0][1], Started)


def said(effects: Sequence[Effect]) -> list[tuple[str, Any]]:
    return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]


def publication(
    seq: int, *, source: str = "b3", number: int | None = None, tags: Tags = NOBODY, missed: tuple[str, ...] = ()
) -> Publication:
    """Return a publication by client p at the source, which has passed b2."""
    number = seq if number is None else number
    way: Vector = (("p", 0, seq), (source, 0, seq), ("b2", 0, number))
    return Publication(Event("p", seq, {"x": 1}), number, way, tags, frozenset(missed))


def passed(answers: list[tuple[str, Any]], peer: str) -> Publication:
    """Return the only publication that was sent to the peer."""
    [message] = [message for to, message in answers if to == peer and isinstance(message, Publication)]
    return message


def kinds(answers: list[tuple[str, Any]]) -> list[type]:
    return [type(message) for _, message in answers]


# ---- what is delivered


def test_it_delivers_and_confirms_when_the_client_has_it() -> None:
    talk = Talk()
    talk.subscribe()
    [(client, delivery)] = talk.receive("b2", publication(1))
    assert (client, delivery) == ("c", Delivery(1, Event("p", 1, {"x": 1}), ("c/1.1",)))
    assert talk.receive("c", Acknowledge(1)) == [("b2", ConfirmPublication(1))]


def test_a_copy_of_a_kept_event_is_confirmed_together_with_it() -> None:
    talk = Talk()
    talk.subscribe()
    talk.receive("b2", publication(1))
    assert talk.receive("b2", publication(1)) == []
    assert talk.receive("c", Acknowledge(1)) == [("b2", ConfirmPublication(1))]


def test_a_later_copy_is_confirmed_at_once() -> None:
    talk = Talk()
    talk.subscribe()
    talk.receive("b2", publication(1))
    talk.receive("c", Acknowledge(1))
    assert talk.receive("b2", publication(1)) == [("b2", ConfirmPublication(1))]


def test_events_before_the_start_are_never_delivered() -> None:
    talk = Talk()
    talk.receive("c", Attach(0, False, (), ()))
    talk.receive("c", ClientSubscribe("c/1.1", "x = 1"))
    talk.receive("b2", SubscriptionsReceived(1))
    assert talk.receive("b2", publication(1)) == [("b2", ConfirmPublication(1))]
    talk.receive("b0", ConfirmSubscription("c/1.1", NOBODY, {}))
    [(_, started)] = talk.receive("b2", ConfirmSubscription("c/1.1", NOBODY, {"b3": {"p": 1}}))
    assert started == Started("c/1.1", {"p": 2}, {"p": 1})


def test_events_below_the_cut_are_not_delivered() -> None:
    talk = Talk()
    talk.subscribe(cuts={"b3": {"p": 3}})
    assert kinds(talk.receive("b2", publication(2))) == [ConfirmPublication]
    assert kinds(talk.receive("b2", publication(3))) == [Delivery]


def test_events_that_missed_the_subscription_somewhere_are_not_delivered() -> None:
    talk = Talk()
    talk.subscribe()
    assert kinds(talk.receive("b2", publication(1, missed=("c/1.1",)))) == [ConfirmPublication]
    assert kinds(talk.receive("b2", publication(2))) == [Delivery]


def test_events_sent_before_the_sender_knew_the_subscription_missed_it() -> None:
    """b2 receives the subscription later than it was sent, and reports that before the events it sends next."""
    talk = Talk()
    talk.receive("b0", AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ()))
    passed_on = passed(talk.receive("b2", publication(1)), "b0")
    assert passed_on.missed == {"d/1.1"}
    talk.receive("b2", SubscriptionsReceived(1))
    passed_on = passed(talk.receive("b2", publication(2)), "b0")
    assert passed_on.missed == frozenset()


def test_events_kept_before_a_subscription_was_known_have_missed_it() -> None:
    """When the connection to b0 is lost, the event is sent again with the missed subscription."""
    talk = Talk()
    talk.receive("b0", AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ()))
    talk.receive("b2", SubscriptionsReceived(1))
    assert passed(talk.receive("b2", publication(1)), "b0").missed == frozenset()
    talk.receive("b0", AddSubscription("e/1.1", "x = 1", "b0", ("b0",), ()))
    answers = talk.receive("b0", Hello((0, 77), (), True, ("d/1.1",), ("e/1.1",), ()))
    [own] = [message for _, message in answers if isinstance(message, Hello)]
    assert (own.yours, own.pending) == ((0, 77), ("d/1.1", "e/1.1"))
    talk.receive("b0", Hello((0, 77), own.mine, True, ("d/1.1",), ("e/1.1",), ()))
    assert passed(talk.receive("b0", Synchronised(True)), "b0").missed == {"e/1.1"}


# ---- tags


def test_a_publication_is_tagged_with_the_partition_it_was_published_in() -> None:
    talk = Talk()
    talk.receive("b0", AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ()))
    talk.receive("b2", SubscriptionsReceived(1))
    talk.receive("b2", Partitions((FAR,), 1))
    passed_on = passed(talk.receive("b2", publication(1)), "b0")
    assert passed_on.tags == {FAR}
    passed_on = passed(talk.receive("b2", publication(2, source="b4")), "b0")
    assert passed_on.tags == NOBODY


def test_tagged_events_are_withheld_until_the_partition_ends() -> None:
    talk = Talk()
    talk.subscribe(tags=frozenset({FAR}))
    assert kinds(talk.receive("b2", publication(1, tags=frozenset({FAR})))) == [ConfirmPublication]
    other = Partition("b2", (0, 2), ("b3",))
    assert kinds(talk.receive("b2", publication(2, tags=frozenset({other})))) == [Delivery]
    notice = Recovered("b2", (0, 1), "b2", "b3", 3, (("b2", 0, 3),))
    assert talk.receive("b2", notice) == [("b2", ConfirmPublication(3))]
    assert kinds(talk.receive("b2", publication(3, number=4, tags=frozenset({FAR})))) == [Delivery]


def test_a_confirmation_is_tagged_with_the_brokers_that_could_not_be_reached() -> None:
    talk = Talk("b2", f=2)
    talk.receive("b1", AddSubscription("d/1.1", "x = 1", "b1", ("b1",), ()))
    effects = [effect for peer in ("b3", "b4") for effect in said(talk.broker.step(Suspected(peer), 0))]
    [confirmation] = [message for _, message in effects if isinstance(message, ConfirmSubscription)]
    assert {tag.nodes for tag in confirmation.tags} == {("b3",), ("b3", "b4")}


def test_a_confirmation_over_another_path_adds_no_tag() -> None:
    talk = Talk()
    talk.subscribe(tags=frozenset({FAR}), cuts={"b3": {"p": 1}})
    assert kinds(talk.receive("b2", publication(1, tags=frozenset({FAR})))) == [Delivery]


# ---- subscriptions


def test_a_subscription_is_confirmed_from_the_far_end_on() -> None:
    talk = Talk()
    sent = talk.receive("b0", AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ()))
    assert sent == [("b2", AddSubscription("d/1.1", "x = 1", "b0", ("b0", "b1"), ()))]
    cuts = {"b3": {"p": 4}}
    confirmed = talk.receive("b2", ConfirmSubscription("d/1.1", NOBODY, cuts))
    assert confirmed == [("b0", ConfirmSubscription("d/1.1", NOBODY, cuts))]
    again = talk.receive("b0", AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ()))
    assert again == [("b0", ConfirmSubscription("d/1.1", NOBODY, {}))]


def test_publishers_here_say_where_it_starts_with_them() -> None:
    talk = Talk("b4")
    talk.receive("p", Attach(0, True, (), ()))
    talk.receive("p", ClientPublish(Event("p", 1, {"x": 2})))
    answer = talk.receive("b3", AddSubscription("d/1.1", "x = 1", "b0", ("b0", "b1", "b2", "b3"), ()))
    assert answer == [("b3", ConfirmSubscription("d/1.1", NOBODY, {"b4": {"p": 2}}))]


def test_an_ended_subscription_does_not_return() -> None:
    talk = Talk()
    message = AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ())
    talk.receive("b0", message)
    assert talk.receive("b0", RemoveSubscription("d/1.1")) == [("b2", RemoveSubscription("d/1.1"))]
    assert talk.receive("b2", AddSubscription("d/1.1", "x = 1", "b0", ("b0",), ())) == [
        ("b2", RemoveSubscription("d/1.1"))
    ]
    assert talk.broker.state_size()["subscriptions"] == 0


@pytest.mark.parametrize("peer", ["b0", "b2"])
def test_messages_of_a_session_that_was_not_agreed_on_are_ignored(peer: str) -> None:
    talk = Talk(incarnation=1)
    assert talk.receive(peer, AddSubscription("d/1.1", "x = 1", peer, (peer,), ())) == []
    assert talk.broker.state_size()["subscriptions"] == 0

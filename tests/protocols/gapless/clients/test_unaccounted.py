"""Clients that know of events that nobody here does: x was delivered p:1, which is lost with p's session.

They come to b0, which may begin the sessions that b1 had. c is there, and gets everything.
"""

from typing import Any

from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Received, Send, Start
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    NotYet,
)
from gapless.protocols.gapless.clients.arrivals import PUT_OFF_US
from gapless.protocols.gapless.clients.unaccounted import SHORT_US, Unaccounted
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.messages import PutOff
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.tombstones import is_lost


class Desk:
    """b0, alone, after a hand-over that found p to be gone."""

    def __init__(self) -> None:
        self.node = GaplessBroker(BrokerPlace("b0", chain(1), 0), GaplessOptions())
        self.delivered: list[str] = []
        self.hear(0, "", None)
        estates = self.node.life.estates
        estates.heirs[name_life("b1", 0)] = name_life("b0", 0)
        estates.gone["p"] = None
        self.hear(0, "c", Attach(2, "b0/0", [], {}, [], 1))
        self.hear(0, "c", ClientSubscribe(2, "s", "TRUE"))

    def hear(self, now: int, client: str, message: Any) -> list[Any]:
        """What the client is told."""
        effects = self.node.step(Received(client, message) if client else Start(), now)
        told = [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]
        for answer in (answer for _, answer in told if isinstance(answer, Delivery)):
            self.delivered += [f"{'lost ' if is_lost(event.attributes) else ''}{event.id}" for event in answer.events]
        return [answer for peer, answer in told if peer == client]

    def attach(self, now: int, client: str, attempt: int, first: int = 1, **seen: int) -> Any:
        """The first answer."""
        offer = {f"{client}/a": ("TRUE", 1)}
        return self.hear(now, client, Attach(attempt, "b1/0", [], offer, [], first, seen=seen))[0]

    def publish(self, now: int, client: str, attempt: int, seq: int) -> None:
        self.hear(now, client, ClientPublish(attempt, [Event(client, seq, {})]))


def test_it_waits_for_a_hand_over_and_as_long_again_for_the_publisher() -> None:
    desk = Desk()
    for now in (0, SHORT_US, 2 * SHORT_US - 1):
        assert desk.attach(now, "x", 2 + now, p=1) == NotYet(2 + now)
    assert isinstance(desk.attach(2 * SHORT_US, "x", 9 * SHORT_US, p=1), Attached)


def test_the_publisher_brings_it_and_it_is_there_first() -> None:
    desk = Desk()
    assert desk.attach(0, "x", 2, p=1) == NotYet(2)
    assert isinstance(desk.attach(1, "p", 2), Attached)
    desk.publish(1, "p", 2, 1)
    assert isinstance(desk.attach(2, "x", 3, p=1), Attached)
    desk.publish(2, "x", 3, 1)
    assert desk.delivered == ["p:1", "x:1"]


def test_if_its_publisher_waits_and_was_told_that_it_is_safe_it_is_lost_before_anything_follows() -> None:
    desk = Desk()
    assert desk.attach(0, "x", 2, p=1) == NotYet(2)
    assert desk.attach(1, "p", 2, first=3) == NotYet(2)
    assert desk.attach(SHORT_US - 1, "x", 3, p=1) == NotYet(3), "a hand-over may bring it"
    assert isinstance(desk.attach(SHORT_US, "x", 4, p=1), Attached)
    desk.publish(SHORT_US, "x", 4, 1)
    assert desk.delivered == ["lost p:1", "x:1"]
    assert desk.attach(1 + SHORT_US, "p", 3, first=3).lost == [(1, 1), (2, 2)]
    assert desk.delivered == ["lost p:1", "x:1", "lost p:2"]


def test_nobody_buries_what_others_say() -> None:
    desk = Desk()
    assert desk.attach(0, "x", 2, p=9) == NotYet(2)
    assert isinstance(desk.attach(2 * SHORT_US, "x", 3, p=9), Attached)
    desk.publish(2 * SHORT_US, "x", 3, 1)
    assert desk.delivered == ["x:1"]
    assert isinstance(desk.attach(2 * SHORT_US, "p", 2), Attached)
    desk.publish(2 * SHORT_US, "p", 2, 1)
    assert desk.delivered == ["x:1", "p:1"]


def test_it_is_not_asked_for_what_came_of_publishers_that_are_not_gone() -> None:
    assert isinstance(Desk().attach(0, "x", 2, q=1), Attached)


def test_a_publisher_that_waits_elsewhere_and_brings_it_is_waited_for() -> None:
    desk = Desk()
    assert desk.attach(0, "x", 2, p=1) == NotYet(2)
    desk.node.life.clients.now = SHORT_US
    desk.node.life.clients.hear_put_off(PutOff("p", 1))
    assert desk.attach(2 * SHORT_US, "x", 3, p=1) == NotYet(3), "it came later than x"
    assert desk.attach(3 * SHORT_US - 1, "x", 4, p=1) == NotYet(4)
    assert isinstance(desk.attach(3 * SHORT_US, "x", 5, p=1), Attached), "it may have gone again"


def test_a_publisher_that_waits_elsewhere_and_does_not_bring_it_is_not_waited_for() -> None:
    desk = Desk()
    desk.node.life.clients.hear_put_off(PutOff("p", 3))
    assert desk.attach(0, "x", 2, p=1) == NotYet(2), "a hand-over may bring it"
    assert isinstance(desk.attach(SHORT_US, "x", 3, p=1), Attached)
    desk.publish(SHORT_US, "x", 3, 1)
    assert desk.delivered == ["x:1"], "somebody else may know more of p:1"


def test_all_brokers_hear_once_of_a_client_that_waits() -> None:
    told: list[PutOff] = []
    unaccounted = Unaccounted(
        name_life("b0", 0), GaplessOptions(), {}, Desk().node.life.table, lambda client: 0, {"p": None}, told.append
    )
    for attempt in (2, 3):
        assert unaccounted.may_be_found("x", 0, Attach(attempt, "b1/0", [], {}, [], 4, seen={"p": 1}), 0)
    assert told == [PutOff("x", 4)]
    assert unaccounted.note(PutOff("p", 1), 0)
    assert not unaccounted.note(PutOff("p", 1), 5), "it is passed on once"
    assert unaccounted.note(PutOff("p", 3), 6)
    assert not unaccounted.note(PutOff("p", 1), 7), "and what it brought before not any more"


def test_an_operator_is_told_who_is_put_off_and_why() -> None:
    desk = Desk()

    def put_off() -> dict[str, str]:
        told: dict[str, str] = desk.node.overview()["put_off"]
        return told

    assert put_off() == {}
    desk.attach(0, "x", 2, p=1)
    assert put_off() == {"x": "it knows of something that nobody here does, and that may still come"}
    desk.hear(1, "y", Attach(2, "b9/0", [], {}, [], 1))
    assert put_off()["y"] == "nobody has taken over yet from b9, where it was last"
    desk.attach(2 * SHORT_US, "x", 3, p=1)
    assert "x" not in put_off(), "it was let in"
    desk.hear(2 + PUT_OFF_US, "z", Attach(2, "", [], {}, [], 1))
    assert put_off() == {}, "it has not come again"

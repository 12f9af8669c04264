"""A client without the right to history gets nothing from before its subscriptions, whatever it says of itself."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Input, Received, Send, SetTimer, Start, TimerFired
from gapless.protocol.nodes import Owners
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import (
    Attach,
    Behind,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Reached,
    SubscriptionProgress,
)
from gapless.protocols.gapless.lives import LIFE_STEP
from gapless.protocols.gapless.options import GaplessOptions

SECOND = 1_000_000
LAG_MS = 300.0
HOME = f"b0/{LIFE_STEP}"
EARLIER = "b0/0"
"""A life of the same broker that nobody remembers: the session that it held is lost."""


class Stage:
    """One broker, at which p has published 1 to 3 before c subscribed; timers fire in virtual time."""

    def __init__(self, *, may_read: bool = False) -> None:
        owners = Owners(may_read_history=lambda client: may_read or client == "p")
        place = BrokerPlace("b0", chain(1), 0, incarnation=1, owners=owners)
        self.node = GaplessBroker(place, GaplessOptions(lag_ms=LAG_MS))
        self.now = SECOND
        self.timers: dict[str, int] = {}
        self.heard: dict[str, list[Any]] = {"p": [], "c": []}
        self.published = 0
        self.give(Start())
        self.attach("p", 1)
        self.say("p", ClientAdvertise(1, "p/a", "TRUE", 1))
        self.publish(3)
        self.pass_time(2 * SECOND)

    def give(self, item: Input) -> None:
        for effect in self.node.step(item, self.now):
            if isinstance(effect, Send):
                self.heard[effect.peer].append(effect.message)
            elif isinstance(effect, SetTimer):
                self.timers[effect.key] = self.now + effect.delay_us

    def say(self, client: str, message: Any) -> None:
        self.give(Received(client, message))

    def pass_time(self, duration_us: int) -> None:
        end = self.now + duration_us
        while self.timers and min(self.timers.values()) <= end:
            key = min(self.timers, key=self.timers.__getitem__)
            self.now = max(self.now, self.timers.pop(key))
            self.give(TimerFired(key))
        self.now = end

    def attach(self, client: str, attempt: int, *brought: SubscriptionProgress, home: str = HOME) -> None:
        self.heard[client].clear()
        self.say(client, Attach(attempt, home, list(brought), {}, [], self.published + 1 if client == "p" else 1))
        self.pass_time(SECOND)

    def publish(self, count: int) -> None:
        events = [Event("p", self.published + n, {}) for n in range(1, count + 1)]
        self.published += count
        self.say("p", ClientPublish(1, events))

    def begin(self) -> None:
        """c subscribes with s, and is sent 4 and 5, which it does not take: it lags."""
        self.attach("c", 1)
        self.say("c", ClientSubscribe(1, "c/s", "TRUE"))
        self.publish(2)
        self.pass_time(2 * SECOND)
        assert any(isinstance(message, Behind) for message in self.heard["c"])

    def numbers(self) -> list[int]:
        """What came for c since it attached."""
        return [event.seq for each in self.heard["c"] if isinstance(each, Delivery) for event in each.events]

    def gaps(self) -> list[tuple[int, int]]:
        return [message.gap for message in self.heard["c"] if isinstance(message, Reached) and message.gap]


def claim(name: str = "c/s", **facts: Any) -> SubscriptionProgress:
    return msgspec.structs.replace(SubscriptionProgress(name, "TRUE", {}, {}, True), **facts)


def test_a_lagging_client_without_the_right_gets_all_that_its_subscription_lacks() -> None:
    stage = Stage()
    stage.begin()
    [behind] = [message for message in stage.heard["c"] if isinstance(message, Behind)]
    stage.attach("c", 2, claim(cuts={"p": 4}, is_behind=True, since=behind.position))
    assert (stage.numbers(), stage.gaps()) == ([4, 5], [])


LIES: dict[str, Callable[[], SubscriptionProgress]] = {
    "behind since the beginning": lambda: claim(is_behind=True, since=0),
    "behind since the beginning, with an early cut": lambda: claim(is_behind=True, since=0, cuts={"p": 1}),
    "a second subscription that never was": lambda: claim("c/t", cuts={"p": 1}),
    "a second one that lags": lambda: claim("c/t", cuts={"p": 1}, is_behind=True, since=0),
    "a second one that has got something": lambda: claim("c/t", cuts={"p": 1}, got={"p": 1}, is_behind=True, since=0),
    "a second one of a publisher that is gone": lambda: claim("c/t", cuts={"q": 1}, is_behind=True, since=0),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("home", [HOME, EARLIER, "b0/7"])
def test_a_lagging_client_that_lies_gets_nothing_older(lie: Callable[[], SubscriptionProgress], home: str) -> None:
    stage = Stage()
    stage.begin()
    stage.attach("c", 2, claim(cuts={"p": 4}), lie(), home=home)
    stage.publish(1)
    stage.pass_time(2 * SECOND)
    assert not {1, 2, 3} & {*stage.numbers()}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("home", [HOME, EARLIER, "b0/7"])
def test_a_client_that_makes_up_a_session_gets_nothing_older(
    lie: Callable[[], SubscriptionProgress], home: str
) -> None:
    stage = Stage()
    stage.attach("c", 1, lie(), home=home)
    stage.pass_time(10 * SECOND)
    stage.publish(1)
    stage.pass_time(2 * SECOND)
    assert not {1, 2, 3} & {*stage.numbers()}


def test_what_is_subscribed_while_the_client_lags_is_not_read_from_where_it_lags() -> None:
    """c never takes anything. Once both subscriptions lag, both are read from the earlier position on."""
    stage = Stage()
    stage.begin()
    stage.say("c", ClientSubscribe(1, "c/t", "TRUE"))
    stage.publish(1)
    stage.pass_time(3 * SECOND)
    stage.attach("c", 2, claim(cuts={"p": 4}), claim("c/t", cuts={"p": 1}, is_behind=True, since=0))
    for_t = [
        event.seq
        for message in stage.heard["c"]
        if isinstance(message, Delivery) and "c/t" in message.subscriptions
        for event in message.events
    ]
    assert for_t == [6]


def test_what_it_may_not_read_again_is_reported_as_a_gap() -> None:
    """Its session is lost with its broker, so nobody but the client knows when the subscription began."""
    stage = Stage()
    stage.attach("c", 1, claim(cuts={"p": 1}, got={"p": 1}, is_behind=True, since=1), home=EARLIER)
    [(since, until)] = stage.gaps()
    assert since < SECOND < until, "1 to 3 were published at one second"
    stage.publish(1)
    stage.pass_time(SECOND)
    assert {*stage.numbers()} == {4}


def test_with_the_right_a_lost_session_goes_on_where_it_was() -> None:
    stage = Stage(may_read=True)
    stage.attach("c", 1, claim(cuts={"p": 1}, got={"p": 1}, is_behind=True, since=1), home=EARLIER)
    assert stage.numbers() == [1, 2, 3]

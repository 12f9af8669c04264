"""The client node: calls and refusals, answers, and the ways in which it finds its session again."""

import pytest

from gapless.events import Event
from gapless.positions import Position
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Confirmed,
    Connected,
    Consumed,
    CutFixed,
    CutsVoided,
    Deliver,
    DeliverMany,
    Effect,
    Ended,
    Input,
    PublicationsLost,
    Publish,
    Published,
    Received,
    Rejected,
    Send,
    SetTimer,
    Skipped,
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.gapless.client import GaplessClient
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    Behind,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cut,
    Delivery,
    Expired,
    Gone,
    Invite,
    NotYet,
    Parted,
    Reached,
    Redirect,
    Safe,
    Stable,
    SubscriptionProgress,
    Unsubscribed,
)
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.tombstones import tombstone

CONTACTS = ("b", "b1", "b2")


class Bench:
    """A client and what it does."""

    def __init__(self, client_window: int = 1_000, name: str = "c") -> None:
        self.node = GaplessClient(ClientPlace(name, "b", CONTACTS), GaplessOptions(client_window=client_window))

    def step(self, item: Input) -> list[Effect]:
        return list(self.node.step(item, 0))

    def hear(self, message: object, broker: str = "b") -> list[Effect]:
        return self.step(Received(broker, message))

    def attach(self) -> "Bench":
        """Begin a session: attempt 2, after the invitation."""
        self.step(Start())
        self.hear(Invite(1, "b/0"))
        self.hear(Attached(2, "b/0", [], list(CONTACTS)))
        return self

    def active(self, name: str, **cuts: int) -> "Bench":
        self.step(Subscribe(name, "TRUE"))
        self.hear(Cut(2, name, cuts, is_whole=True))
        return self


def attaches(effects: list[Effect]) -> list[tuple[str, Attach]]:
    return [
        (item.peer, item.message) for item in effects if isinstance(item, Send) and isinstance(item.message, Attach)
    ]


def retries(effects: list[Effect]) -> list[SetTimer]:
    return [item for item in effects if isinstance(item, SetTimer)]


# ---- calls ------------------------------------------------------------------------------------------------


def test_publications_are_numbered_and_must_match_an_advertisement() -> None:
    bench = Bench().attach()
    call = Publish({"x": 1})
    [refused] = bench.step(call)
    assert isinstance(refused, Rejected)
    assert "advertise it first" in refused.reason
    assert bench.step(Advertise("a", "x = 1")) == [Send("b", ClientAdvertise(2, "a", "x = 1", 1))]
    for seq in (1, 2):
        event = Event("c", seq, {"x": 1})
        assert bench.step(call) == [Published(event), Send("b", ClientPublish(2, [event]))]
    assert isinstance(bench.step(Publish({"x": 2}))[0], Rejected)


def test_a_full_window_refuses_until_something_is_safe() -> None:
    bench = Bench(client_window=2).attach()
    bench.step(Advertise("a", "TRUE"))
    kinds = [type(bench.step(Publish({}))[0]) for _ in range(3)]
    assert kinds == [Published, Published, Rejected]
    assert bench.node.state_size()["unsafe"] == 2
    assert bench.hear(Safe(2, 1)) == [Confirmed(1)]
    assert bench.hear(Safe(2, 1)) == []
    assert bench.step(Publish({}))[0] == Published(Event("c", 3, {}))


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
def test_what_cannot_be_is_refused(first: Input, second: Input) -> None:
    bench = Bench()
    bench.step(first)
    [refused] = bench.step(second)
    assert isinstance(refused, Rejected)
    assert refused.call == second
    assert refused.reason


def test_more_than_a_broker_would_keep_of_one_client_is_refused_until_something_ends() -> None:
    bench = Bench().attach()
    texts = [f"a = '{'x' * 60_000}{number}'" for number in range(18)]
    effects = [bench.step(Subscribe(f"s{number}", text))[0] for number, text in enumerate(texts)]
    assert [type(effect) for effect in effects] == [Send] * 17 + [Rejected]
    refused = bench.step(Advertise("a", texts[17]))[0]
    assert isinstance(refused, Rejected)
    assert "1,048,576 is the limit; end some of them, or use a further client" in refused.reason
    bench.hear(Unsubscribed(2, "s0", {}))
    assert isinstance(bench.step(Subscribe("s17", texts[17]))[0], Send)


def test_a_call_is_not_taken_back_twice() -> None:
    bench = Bench().attach()
    bench.step(Advertise("a", "TRUE"))
    bench.step(Publish({}))
    bench.step(Subscribe("s", "TRUE"))
    assert bench.step(Unadvertise("a")) == [Send("b", ClientUnadvertise(2, "a"))]
    assert bench.step(Unsubscribe("s")) == [Send("b", ClientUnsubscribe(2, "s"))]
    for call in (Unadvertise("a"), Unsubscribe("s"), Publish({})):
        assert isinstance(bench.step(call)[0], Rejected)


def test_an_advertisement_taken_back_is_kept_until_what_relies_on_it_is_safe() -> None:
    bench = Bench().attach()
    bench.step(Advertise("a", "TRUE"))
    bench.step(Publish({}))
    bench.step(Unadvertise("a"))
    [(_, message)] = attaches(bench.step(Connected("b")))
    assert message.advertisements == {"a": ("TRUE", 1)}
    assert Send("b", ClientUnadvertise(3, "a")) in bench.hear(Attached(3, "b/0", [], list(CONTACTS)))
    bench.hear(Safe(3, 1))
    [(_, message)] = attaches(bench.step(Connected("b")))
    assert message.advertisements == {}


# ---- answers ----------------------------------------------------------------------------------------------


def test_a_subscription_is_active_when_its_cut_is_whole_even_an_empty_one() -> None:
    bench = Bench().attach()
    assert bench.step(Subscribe("s", "TRUE")) == [Send("b", ClientSubscribe(2, "s", "TRUE"))]
    assert bench.hear(Cut(2, "s", {"p": 4})) == [CutFixed("s", "p", 4)]
    assert bench.hear(Cut(2, "s", {"p": 9, "q": 1})) == [CutFixed("s", "q", 1)]
    assert bench.hear(Cut(2, "s", {}, is_whole=True)) == [Activated("s")]
    assert bench.hear(Cut(2, "s", {}, is_whole=True)) == []
    bench.step(Subscribe("t", "TRUE"))
    assert bench.hear(Cut(2, "t", {}, is_whole=True)) == [Activated("t")]
    assert bench.hear(Cut(2, "unknown", {"p": 1})) == []


def test_who_asks_for_it_is_active_with_the_first_cut() -> None:
    bench = Bench().attach()
    bench.step(Subscribe("s", "TRUE", ready="first"))
    assert bench.hear(Cut(2, "s", {"p": 4})) == [CutFixed("s", "p", 4), Activated("s")]
    assert bench.hear(Cut(2, "s", {"q": 1}, is_whole=True)) == [CutFixed("s", "q", 1)]


def test_a_run_is_delivered_as_one_but_not_what_an_heir_collected_twice() -> None:
    bench = Bench().attach().active("s", p=1)
    events = [Event("p", seq, {}) for seq in range(1, 7)]
    assert bench.hear(Delivery(2, 1, events[:2], ["s"])) == [DeliverMany(events[:2], "s")]
    twice = [events[2], events[3], events[2], events[3], events[4]]
    assert bench.hear(Delivery(2, 3, twice, ["s"])) == [Deliver(event, "s") for event in events[2:5]]
    others = [events[5], Event("q", 1, {})]
    assert bench.hear(Delivery(2, 8, others, ["s"])) == [Deliver(event, "s") for event in others]


def test_deliveries_are_confirmed_when_they_are_taken_and_nothing_is_delivered_twice() -> None:
    bench = Bench().attach().active("s", p=1).active("t", p=2)
    event = Event("p", 2, {})
    assert bench.hear(Delivery(2, 1, [event], ["s", "t", "gone"])) == [Deliver(event, "s"), Deliver(event, "t")]
    assert bench.step(Consumed(1)) == []
    assert bench.step(Consumed(2)) == [Send("b", ClientGot(2, 1))]
    assert bench.hear(Delivery(2, 1, [event], ["s"])) == []
    assert bench.hear(Delivery(2, 3, [Event("p", 4, {})], ["s"])) == []
    assert bench.hear(Delivery(2, 2, [event], ["s"])) == [Send("b", ClientGot(2, 2))]


def test_an_advertisement_is_reported_stable_once() -> None:
    bench = Bench().attach()
    bench.step(Advertise("a", "TRUE"))
    assert bench.hear(Stable(2, "a")) == [Advertised("a")]
    assert bench.hear(Stable(2, "a")) == []
    assert bench.hear(Stable(2, "other")) == []


def test_a_subscription_ends_where_the_broker_says() -> None:
    bench = Bench().attach().active("s", p=4)
    bench.step(Unsubscribe("s"))
    bench.hear(Delivery(2, 1, [Event("p", 4, {})], ["s"]))
    assert bench.hear(Unsubscribed(2, "s", {"p": 4})) == [Ended("s", {"p": 4})]
    assert bench.hear(Unsubscribed(2, "s", {"p": 4})) == []
    assert bench.node.state_size()["subscriptions"] == 0


# ---- finding the session ----------------------------------------------------------------------------------


def test_it_is_invited_and_then_attaches_with_its_home() -> None:
    bench = Bench()
    [(peer, message)] = attaches(bench.step(Start()))
    assert (peer, message) == ("b", Attach(1, "", [], {}, [], 1))
    effects = bench.hear(Invite(1, "b/0"))
    assert attaches(effects) == [("b", Attach(2, "b/0", [], {}, [], 1))]
    assert retries(effects)


def test_everything_it_knows_goes_with_it() -> None:
    bench = Bench().attach().active("s", p=4, q=2)
    bench.step(Advertise("a", "x = 1"))
    for _ in range(3):
        bench.step(Publish({"x": 1}))
    bench.hear(Safe(2, 1))
    bench.hear(Delivery(2, 1, [Event("p", 5, {})], ["s"]))
    [(peer, message)] = attaches(bench.step(Connected("b")))
    unsafe = [Event("c", seq, {"x": 1}) for seq in (2, 3)]
    progress = SubscriptionProgress("s", "TRUE", {"p": 4, "q": 2}, {"p": 5}, True)
    assert (peer, message) == ("b", Attach(3, "b/0", [progress], {"a": ("x = 1", 1)}, unsafe, 2, unread=1, heard=2))


def test_what_was_not_taken_before_it_attached_again_is_confirmed_to_the_new_broker() -> None:
    bench = Bench().attach().active("s", p=1)
    bench.hear(Delivery(2, 1, [Event("p", 1, {}), Event("p", 2, {})], ["s"]))
    bench.step(Consumed(1))
    [(_, message)] = attaches(bench.step(Connected("b")))
    assert (message.attempt, message.unread) == (3, 1)
    assert bench.hear(Delivery(3, 2, [Event("p", 3, {})], ["s"])) == [Deliver(Event("p", 3, {}), "s")]
    assert bench.step(Consumed(2)) == [Send("b", ClientGot(3, 1))]
    assert bench.step(Consumed(3)) == [Send("b", ClientGot(3, 2))]


def test_answers_to_an_earlier_attempt_or_from_another_broker_are_ignored() -> None:
    bench = Bench().attach().active("s", p=1)
    event = Event("p", 1, {})
    assert bench.hear(Delivery(1, 1, [event], ["s"])) == []
    assert bench.hear(Delivery(2, 1, [event], ["s"]), broker="b1") == []
    assert bench.hear(Redirect(1, "b2")) == []


def test_where_the_session_was_granted_too_late_it_goes_back_to_and_says_so() -> None:
    bench = Bench()
    bench.step(Start())
    bench.hear(Invite(1, "b/0"))
    [(broker, _)] = attaches(bench.step(TimerFired("retry")))
    assert broker == "b1", "it has lost patience"
    [(broker, again)] = attaches(bench.hear(Attached(2, "b/0", [], list(CONTACTS))))
    assert (broker, again.attempt, again.home, again.heard) == ("b", 4, "b/0", 0)
    assert attaches(bench.hear(Attached(2, "b/0", [], list(CONTACTS)))) == [], "once is enough"
    assert not bench.node.is_attached
    bench.hear(Attached(4, "b/0", [], list(CONTACTS)))
    assert bench.node.is_attached


def test_while_it_asks_there_already_it_only_waits_longer() -> None:
    bench = Bench()
    bench.step(Start())
    bench.hear(Invite(1, "b/0"))
    bench.step(TimerFired("retry"))
    bench.hear(Redirect(3, "b"), "b1")
    effects = bench.hear(Attached(2, "b/0", [], list(CONTACTS)))
    assert (attaches(effects), len(retries(effects))) == ([], 1)


def test_it_asks_its_contacts_in_turn_when_its_broker_is_lost_or_does_not_answer_and_the_lost_less_often() -> None:
    bench = Bench().attach()
    [timer] = retries(bench.step(Suspected("b")))
    peers = []
    for _ in range(6):
        [(peer, _)] = attaches(bench.step(TimerFired(timer.key)))
        peers.append(peer)
    assert peers == ["b2", "b1", "b2", "b", "b1", "b2"]
    assert bench.step(Suspected("b1")) == [], "that is not the one it talks to"


def test_who_is_trusted_again_is_asked_in_turn() -> None:
    bench = Bench().attach()
    [timer] = retries(bench.step(Suspected("b")))
    bench.step(Trusted("b"))
    assert [attaches(bench.step(TimerFired(timer.key)))[0][0] for _ in range(2)] == ["b2", "b"]


def test_once_attached_the_timer_means_nothing() -> None:
    bench = Bench()
    [timer] = retries(bench.step(Start()))
    bench.hear(Invite(1, "b/0"))
    bench.hear(Attached(2, "b/0", [], list(CONTACTS)))
    assert bench.step(TimerFired(timer.key)) == []


def test_one_that_is_sent_in_a_circle_and_then_away_by_who_served_it_asks_again_after_a_while() -> None:
    bench = Bench().attach()
    for attempt, (broker, other) in enumerate([("b", "b1"), ("b1", "b2"), ("b2", "b")], start=2):
        assert attaches(bench.hear(Redirect(attempt, other), broker))
    bench.hear(Attached(5, "b/0", [], list(CONTACTS)))
    effects = bench.hear(Redirect(5, "b1"))
    assert not attaches(effects)
    assert retries(effects)
    assert attaches(bench.step(TimerFired("retry")))


def test_a_redirect_is_followed() -> None:
    bench = Bench().attach()
    bench.step(Suspected("b"))
    [(peer, message)] = attaches(bench.hear(Redirect(3, "b7"), broker="b1"))
    assert (peer, message.attempt, message.home) == ("b7", 4, "b/0")
    bench.hear(Attached(4, "b7/2", [], ["b7", "b2"]), broker="b7")
    [(peer, message)] = attaches(bench.step(Connected("b7")))
    assert (peer, message.home) == ("b7", "b7/2")


@pytest.mark.parametrize("answer", [NotYet(2), Gone(2)])
def test_without_an_answer_it_asks_again_later(answer: NotYet | Gone) -> None:
    bench = Bench().attach()
    effects = bench.hear(answer)
    assert attaches(effects) == []
    [timer] = retries(effects)
    [(peer, message)] = attaches(bench.step(TimerFired(timer.key)))
    assert (peer, message.attempt) == ("b1", 3)


def test_an_expired_session_ends_every_subscription_where_the_client_stopped() -> None:
    bench = Bench().attach().active("s", p=4).active("t", p=1, q=3)
    bench.hear(Delivery(2, 1, [Event("p", 6, {})], ["s"]))
    effects = bench.hear(Expired(2))
    assert [item for item in effects if isinstance(item, Ended)] == [Ended("s", {"p": 6}), Ended("t", {"p": 0, "q": 2})]
    assert attaches(effects) == [("b", Attach(3, "", [], {}, [], 1, unread=1, heard=2, seen={"p": 6}))]


def test_cuts_of_a_subscription_that_was_lost_with_its_broker_are_void() -> None:
    bench = Bench().attach().active("s", p=4).active("t")
    bench.step(Suspected("b"))
    assert bench.hear(Attached(3, "b1/0", ["s", "t"], ["b1"]), broker="b1") == [CutsVoided("s")]
    assert bench.hear(Cut(3, "s", {"p": 9}), broker="b1") == [CutFixed("s", "p", 9)]


def test_what_delivered_already_cannot_be_unknown_to_its_heir() -> None:
    bench = Bench().attach().active("s", p=4)
    bench.hear(Delivery(2, 1, [Event("p", 4, {})], ["s"]))
    bench.step(Suspected("b"))
    with pytest.raises(AssertionError):
        bench.hear(Attached(3, "b1/0", ["s"], ["b1"]), broker="b1")


def test_a_subscription_that_was_about_to_end_ends_where_it_stands_when_its_broker_is_lost() -> None:
    bench = Bench().attach().active("s", p=4)
    bench.hear(Delivery(2, 1, [Event("p", 5, {})], ["s"]))
    bench.step(Unsubscribe("s"))
    effects = bench.step(Suspected("b"))
    assert effects[0] == Ended("s", {"p": 5})
    assert attaches(effects)[0][1].brought == []


def test_it_is_attached_only_while_a_broker_holds_its_session() -> None:
    bench = Bench()
    bench.step(Start())
    assert not bench.node.is_attached
    bench.hear(Attached(1, "b/0", [], ["b"]))
    assert bench.node.is_attached
    bench.hear(Gone(1))
    assert not bench.node.is_attached


def test_it_waits_longer_each_time_that_no_answer_came_in_time() -> None:
    bench = Bench()
    [timer] = retries(bench.step(Start()))
    delays = [timer.delay_us]
    for _ in range(8):
        [timer] = retries(bench.step(TimerFired(timer.key)))
        delays.append(timer.delay_us)
    assert delays == [100_000 * 2**n for n in range(7)] + [6_400_000] * 2
    assert retries(bench.hear(NotYet(9), broker="b2"))[0].delay_us == 100_000, "somebody is there"


def test_a_client_that_is_asked_to_retry_comes_more_and_more_seldom_until_it_is_granted_its_session() -> None:
    def delays(name: str, count: int) -> list[int]:
        bench = Bench(name=name)
        bench.step(Start())
        found = []
        for attempt in range(1, count + 1):
            [timer] = retries(bench.hear(NotYet(attempt), broker=CONTACTS[(attempt - 1) % len(CONTACTS)]))
            found.append(timer.delay_us)
            bench.step(TimerFired(timer.key))
        return found

    found = delays("c", 12)
    assert found[:5] == [100_000] * 5, "most handovers are over by then"
    for times, delay in zip((2, 4, 8, 16, 16, 16, 16), found[5:], strict=True):
        assert times * 50_000 <= delay <= times * 100_000
    assert found == delays("c", 12), "a run can be repeated"
    assert found[5:] != delays("d", 12)[5:], "clients that lost the same broker spread out"


def test_who_is_dead_does_not_make_it_wait_longer_for_others() -> None:
    bench = Bench()
    bench.step(Start())
    for dead in ("b1", "b2"):
        bench.step(Suspected(dead))
    bench.hear(NotYet(1))
    asked = []
    for attempt in range(2, 12):
        effects = bench.step(TimerFired("retry"))
        [(broker, _)], [timer] = attaches(effects), retries(effects)
        assert timer.delay_us == 100_000
        asked.append(broker)
        if broker == "b":
            bench.hear(NotYet(attempt))
    assert {*asked} == {*CONTACTS}


def test_what_came_for_subscriptions_that_are_over_is_told_with_every_attach() -> None:
    bench = Bench().attach().active("s", p=4).active("t", p=1, q=3)
    bench.hear(Delivery(2, 1, [Event("p", 6, {})], ["s"]))
    bench.hear(Delivery(2, 2, [Event("p", 5, {}), Event("q", 3, {})], ["t"]))
    for name in ("s", "t"):
        bench.step(Unsubscribe(name))
        bench.hear(Unsubscribed(2, name, {}))
    [(_, attach)] = attaches(bench.step(Connected("b")))
    assert attach.seen == {"p": 6, "q": 3}


def test_what_is_lost_is_told_once_though_several_brokers_say_so() -> None:
    bench = Bench().attach()
    [(broker, asked)] = attaches(bench.step(Suspected("b")))
    told = bench.hear(Attached(asked.attempt, f"{broker}/0", [], list(CONTACTS), [(3, 4), (2, 3)]), broker)
    assert PublicationsLost([(2, 4)]) in told
    [(broker, asked)] = attaches(bench.step(Suspected(broker)))
    told = bench.hear(Attached(asked.attempt, f"{broker}/0", [], list(CONTACTS), [(1, 3), (6, 6)]), broker)
    assert PublicationsLost([(1, 1), (6, 6)]) in told


def test_what_is_lost_of_a_publisher_without_a_cut_is_told_when_its_cut_is_known() -> None:
    bench = Bench().attach().active("s", p=4)
    told = bench.hear(Delivery(2, 1, [tombstone("q", 3), tombstone("q", 1)], ["s"]))
    assert not any(isinstance(effect, Skipped) for effect in told)
    told = bench.hear(Cut(2, "s", {"q": 2}))
    assert told == [CutFixed("s", "q", 2), Skipped("s", {"q": [(3, 3)]})]
    assert bench.hear(Delivery(2, 3, [Event("q", 4, {})], ["s"]))[0] == Deliver(Event("q", 4, {}), "s")


def test_what_was_lost_before_a_subscription_began_does_not_concern_it_though_it_reads_from_there() -> None:
    bench = Bench().attach()
    bench.step(Subscribe("s", "TRUE"))
    bench.hear(Cut(2, "s", {"p": 4}, is_whole=True, began=50))
    bench.hear(Behind(2, 10, ["s"]))
    lost = {"gone": [(1, 2)], "p": [(3, 5)]}
    assert Skipped("s", {"p": [(4, 5)]}) in bench.hear(Reached(2, "", 10, False, [(40, lost)]))
    assert Skipped("s", {"gone": [(3, 3)]}) in bench.hear(Reached(2, "", 10, False, [(60, {"gone": [(3, 3)]})]))


def test_each_subscription_from_before_its_end_is_told_of_a_parting_once() -> None:
    bench = Bench().attach()
    for name, since, began in (("live", -1, 50), ("late", -1, 100), ("old", 20, 0), ("young", 100, 0)):
        bench.step(Subscribe(name, "TRUE", since=None if since < 0 else Position.at(since)))
        bench.hear(Cut(2, name, {}, is_whole=True, began=began))
    bench.step(Subscribe("waits", "TRUE"))
    told = (10, 1_000_000)
    assert bench.hear(Parted(2, 10, 100)) == [Skipped("live", {}, told), Skipped("old", {}, told)]
    assert bench.hear(Parted(2, 10, 100)) == [], "each broker says it"
    assert Skipped("waits", {}, told) in bench.hear(Cut(2, "waits", {}, is_whole=True, began=60))
    came = [Event("p", 1, {}, stamp=70), Event("q", 1, {}, stamp=65), Event("q", 2, {}, stamp=120)]
    given = bench.hear(Delivery(2, 1, came, ["live"]))
    assert [effect.event.stamp for effect in given if isinstance(effect, Deliver)] == [120], "too late, and told"
    given = bench.hear(Delivery(2, 4, came, ["late"]))
    assert [effect.event.stamp for effect in given if isinstance(effect, Deliver)] == [70, 65, 120], "it was not told"
    later = bench.hear(Parted(2, 10, 110))
    assert later == [Skipped("late", {}, told), Skipped("young", {}, told)], "a little longer: others were told that"
    [again] = {effect.gap for effect in bench.hear(Parted(2, 10, 1_000_001)) if isinstance(effect, Skipped)}
    assert again == (10, 2_000_000)


def test_what_has_a_cut_from_before_the_halves_met_begins_before() -> None:
    bench = Bench().attach()
    bench.step(Subscribe("s", "TRUE"))
    bench.hear(Cut(2, "s", {"p": 1}))
    bench.hear(Parted(2, 10, 100))
    assert Skipped("s", {}, (10, 1_000_000)) in bench.hear(Cut(2, "s", {}, is_whole=True, began=200))

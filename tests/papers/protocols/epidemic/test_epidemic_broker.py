"""One broker, message by message: forwarding, the three recoveries as in the paper's figures, and the tree."""

from typing import Any

import pytest

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocol import (
    BrokerPlace,
    Connected,
    Input,
    Linked,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
    Unlinked,
)
from gapless_papers.protocols.epidemic.broker import EpidemicBroker
from gapless_papers.protocols.epidemic.messages import (
    Accepted,
    ClientPublish,
    ClientState,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
    Interest,
    InterestKnown,
    Publication,
    PublisherPull,
    PushDigest,
    Request,
    Retransmission,
    Stamped,
    SubscriberPull,
)
from gapless_papers.protocols.epidemic.options import EpidemicOptions

TREE = Overlay(["u", "v", "w", "x"], [("u", "v"), ("v", "w"), ("v", "x")])
Sent = list[tuple[str, Any]]
A, B = "a = TRUE", "b = TRUE"


class Bench:
    """The broker v between u, w and x, and the messages that it sends."""

    def __init__(self, recovery: str = "combined-pull", incarnation: int = 0, **options: Any) -> None:
        place = BrokerPlace("v", TREE, 1, incarnation)
        self.node = EpidemicBroker(place, EpidemicOptions(recovery=recovery, **options))  # type: ignore[arg-type]
        self.timers: dict[str, int] = {}
        self.versions: dict[str, int] = {}
        self.give(Start())

    def give(self, item: Input, now: int = 0) -> Sent:
        effects = self.node.step(item, now)
        self.timers |= {effect.key: effect.delay_us for effect in effects if isinstance(effect, SetTimer)}
        return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]

    def feed(self, peer: str, message: Any, now: int = 0) -> Sent:
        return self.give(Received(peer, message), now)

    def want(self, peer: str, *patterns: str) -> Sent:
        self.versions[peer] = self.versions.get(peer, 0) + 1
        return self.feed(peer, Interest(self.versions[peer], False, patterns, ()))

    def round(self, now: int = 0) -> Sent:
        return self.give(TimerFired("gossip"), now)


def event(seq: int, *patterns: str) -> Event:
    return Event("p", seq, {pattern.split()[0]: True for pattern in patterns or (A,)})


def stamp(seq: int, source: str = "s/0", **numbers: int) -> Stamped:
    patterns = {"a": A, "b": B}
    named = {patterns[key]: number for key, number in numbers.items()}
    return Stamped(event(seq, *named), source, named)


def kinds(sent: Sent, kind: type) -> Sent:
    return [(peer, message) for peer, message in sent if isinstance(message, kind)]


# ---- subscription forwarding


def test_a_pattern_goes_over_a_link_once() -> None:
    bench = Bench()
    news = kinds(bench.feed("c", ClientSubscribe(1, A)), Interest)
    assert news == [(peer, Interest(1, False, (A,), ())) for peer in ("u", "w", "x")]
    assert bench.feed("c", ClientSubscribe(2, A)) == [("c", Accepted(2))]
    for peer in ("u", "w", "x"):
        bench.feed(peer, InterestKnown(1))
    assert kinds(bench.feed("c", ClientUnsubscribe(1)), Interest) == []
    news = kinds(bench.feed("c", ClientUnsubscribe(2)), Interest)
    assert news == [(peer, Interest(2, False, (), (A,))) for peer in ("u", "w", "x")]


def test_a_neighbours_pattern_goes_everywhere_else() -> None:
    bench = Bench()
    sent = bench.want("u", A)
    assert kinds(sent, InterestKnown) == [("u", InterestKnown(1))]
    assert [peer for peer, _ in kinds(sent, Interest)] == ["w", "x"]
    sent = bench.want("w", A)
    assert kinds(sent, Interest) == [("u", Interest(1, False, (A,), ()))]


def test_unconfirmed_events_are_sent_again() -> None:
    bench = Bench(resend_ms=70)
    bench.feed("c", ClientSubscribe(1, A))
    assert bench.timers["interest/u"] == 70_000
    assert bench.give(TimerFired("interest/u")) == [("u", Interest(1, False, (A,), ()))]
    bench.feed("u", InterestKnown(1))
    assert bench.give(TimerFired("interest/u")) == []
    assert kinds(bench.feed("u", Interest(1, False, (B,), ())), InterestKnown) == [("u", InterestKnown(1))]
    assert bench.feed("u", Interest(1, False, (B,), ())) == [("u", InterestKnown(1))], "a copy changes nothing"


def test_an_event_goes_where_it_is_wanted_and_not_back() -> None:
    bench = Bench("none")
    bench.want("u", A)
    bench.want("w", A, B)
    bench.want("x", B)
    bench.feed("c", ClientSubscribe(1, A))
    bench.feed("c", ClientSubscribe(2, B))
    bench.feed("d", ClientSubscribe(1, B))
    message = Publication(stamp(1, a=1), ())
    assert bench.feed("u", message) == [("w", message), ("c", Delivery(event(1), (1,)))]
    assert bench.feed("u", message) == []
    sent = bench.feed("p", ClientPublish(event(2, A, B)))
    assert [peer for peer, _ in sent] == ["u", "w", "x", "c", "d"]
    assert sent[3] == ("c", Delivery(event(2, A, B), (1, 2)))


def test_events_are_numbered_by_pattern_and_record_their_route() -> None:
    bench = Bench("publisher-pull", incarnation=3)
    bench.want("u", A)
    bench.want("w", B)
    (_, first), *_ = bench.feed("p", ClientPublish(event(1, A, B)))
    assert first == Publication(Stamped(event(1, A, B), "v/3", {A: 1, B: 1}), ("v",))
    ((_, second),) = bench.feed("p", ClientPublish(event(2, A)))
    assert second.stamped.numbers == {A: 2}
    ((peer, third),) = bench.feed("u", Publication(stamp(9, b=7), ("s", "u")))
    assert (peer, third) == ("w", Publication(stamp(9, b=7), ("s", "u", "v")))


@pytest.mark.parametrize(("recovery", "numbered"), [("none", False), ("push", False), ("subscriber-pull", True)])
def test_a_publication_carries_no_unneeded_fields(recovery: str, numbered: bool) -> None:
    bench = Bench(recovery)
    bench.want("u", A)
    ((_, message),) = bench.feed("p", ClientPublish(event(1)))
    assert bool(message.stamped.numbers) == numbered
    assert message.route == ()


# ---- push, figure 2


def test_push_sends_what_is_cached_for_a_pattern() -> None:
    bench = Bench("push", forward_probability=1.0)
    assert 0 < bench.timers["gossip"] <= 30_000
    bench.want("u", A)
    bench.want("w", B)
    assert bench.round() == []
    for seq, pattern in ((1, A), (2, A), (3, B)):
        bench.feed("x", Publication(Stamped(event(seq, pattern), "s/0", {}), ()))
    seen = set()
    for _ in range(20):
        ((peer, message),) = bench.round()
        seen.add((peer, message))
    assert seen == {
        ("u", PushDigest("v", A, (("p", 1), ("p", 2)))),
        ("w", PushDigest("v", B, (("p", 3),))),
    }


def test_a_subscriber_asks_the_initiator_for_what_it_lacks() -> None:
    bench = Bench("push", forward_probability=1.0)
    bench.feed("c", ClientSubscribe(1, A))
    bench.want("w", A)
    bench.feed("u", Publication(Stamped(event(1), "s/0", {}), ()))
    digest = PushDigest("far", A, (("p", 1), ("p", 2)))
    assert bench.feed("u", digest) == [("far", Request((("p", 2),))), ("w", digest)]
    missing = Retransmission(Stamped(event(2), "s/0", {}))
    assert bench.feed("far", missing) == [("c", Delivery(event(2), (1,)))], "what was recovered goes no further"
    assert bench.feed("far", missing) == []
    assert bench.feed("u", digest) == [("w", digest)]
    assert bench.feed("u", Publication(missing.stamped, ())) == [("w", Publication(missing.stamped, ()))]
    assert bench.feed("u", Publication(missing.stamped, ())) == []


def test_brokers_without_subscribers_do_not_request() -> None:
    bench = Bench("push", forward_probability=0.0)
    bench.want("w", A)
    assert bench.feed("u", PushDigest("far", A, (("p", 1),))) == []


def test_a_request_is_answered_from_the_cache() -> None:
    bench = Bench("push", buffer=1)
    bench.feed("c", ClientSubscribe(1, A))
    for seq in (1, 2):
        bench.feed("u", Publication(Stamped(event(seq), "s/0", {}), ()))
    sent = bench.feed("far", Request((("p", 1), ("p", 2), ("p", 3))))
    assert sent == [("far", Retransmission(Stamped(event(2), "s/0", {})))]


def test_gossip_goes_to_at_most_fanout_neighbours() -> None:
    for fanout in (1, 2, 3):
        bench = Bench("push", fanout=fanout)
        for peer in ("u", "w", "x"):
            bench.want(peer, A)
        bench.feed("p", ClientPublish(event(1)))
        reached = set()
        for _ in range(20):
            peers = [peer for peer, _ in bench.round()]
            assert len(set(peers)) == len(peers) == fanout
            reached.update(peers)
        assert reached == {"u", "w", "x"}


# ---- pull, figure 3


def lose_two(bench: Bench) -> None:
    """Deliver numbers 4 and 7 to a subscriber of A, by way of s and u, so that two are missing."""
    bench.feed("c", ClientSubscribe(1, A))
    bench.feed("u", Publication(stamp(4, a=4), ("s", "t", "u")))
    bench.feed("u", Publication(stamp(7, a=7), ("s", "t", "u")))


def test_rounds_happen_only_while_something_is_missing() -> None:
    bench = Bench("publisher-pull", gossip_ms=25, give_up_ms=1_000)
    bench.feed("c", ClientSubscribe(1, A))
    bench.feed("u", Publication(stamp(4, a=4), ("s", "u")))
    assert "gossip" not in bench.timers
    bench.feed("u", Publication(stamp(6, a=6), ("s", "u")))
    assert bench.timers.pop("gossip") == 25_000
    bench.feed("u", Publication(stamp(8, a=8), ("s", "u")))
    assert "gossip" not in bench.timers
    assert len(bench.round(25_000)) == 1
    assert bench.timers.pop("gossip") == 25_000
    assert bench.round(1_000_000) == []
    assert "gossip" not in bench.timers, "what is missing for a second is given up"


def test_a_round_can_start_as_soon_as_a_loss_is_detected() -> None:
    bench = Bench("publisher-pull", gossip_ms=25, at_once=True)
    bench.feed("c", ClientSubscribe(1, A))
    bench.feed("u", Publication(stamp(4, a=4), ("s", "u")))
    pulled = kinds(bench.feed("u", Publication(stamp(6, a=6), ("s", "u"))), PublisherPull)
    assert pulled == [("u", PublisherPull("v", "s/0", {A: (5,)}, ("s",)))]
    assert bench.timers.pop("gossip") == 25_000, "and if it brings nothing, there is another"
    assert kinds(bench.feed("u", Publication(stamp(7, a=7), ("s", "u"))), PublisherPull) == [], "nothing new is missing"


def test_pull_without_results_backs_off_if_so_configured() -> None:
    bench = Bench("publisher-pull", gossip_ms=25, gossip_max_ms=80)
    lose_two(bench)
    waits = [bench.timers.pop("gossip")]
    for now in (25_000, 75_000, 155_000):
        bench.round(now)
        waits.append(bench.timers.pop("gossip"))
    assert waits == [25_000, 50_000, 80_000, 80_000]
    bench.feed("u", Retransmission(stamp(5, a=5)))
    bench.round(235_000)
    assert bench.timers["gossip"] == 25_000, "something came, so more may be found"


def test_push_without_an_answer_backs_off_if_so_configured() -> None:
    bench = Bench("push", gossip_ms=25, gossip_max_ms=80)
    bench.want("u", A)
    bench.feed("x", Publication(Stamped(event(1, A), "s/0", {}), ()))
    waits = []
    for _ in range(3):
        bench.round()
        waits.append(bench.timers["gossip"])
    assert waits == [50_000, 80_000, 80_000]
    bench.feed("u", Request((("p", 1),)))
    bench.round()
    assert bench.timers["gossip"] == 25_000


def test_publisher_based_pull_walks_back_along_the_route() -> None:
    bench = Bench("publisher-pull")
    lose_two(bench)
    assert bench.round() == [("u", PublisherPull("v", "s/0", {A: (5, 6)}, ("s", "t")))]
    bench.feed("w", Publication(stamp(8, a=8), ("s", "w")))
    assert bench.round() == [("w", PublisherPull("v", "s/0", {A: (5, 6)}, ("s",)))], "the latest route counts"


def test_the_first_on_the_route_that_has_it_answers() -> None:
    bench = Bench("publisher-pull")
    bench.want("w", A)
    bench.feed("u", Publication(stamp(5, a=5), ("s", "u")))
    pull = PublisherPull("far", "s/0", {A: (5, 6)}, ("s", "u"))
    assert bench.feed("w", pull) == [
        ("far", Retransmission(stamp(5, a=5))),
        ("u", PublisherPull("far", "s/0", {A: (6,)}, ("s",))),
    ]
    assert bench.feed("w", PublisherPull("far", "s/0", {A: (5,)}, ("s", "u"))) == [
        ("far", Retransmission(stamp(5, a=5)))
    ]
    assert bench.feed("w", PublisherPull("far", "s/0", {A: (6,)}, ())) == [], "the source does not have it either"


def test_subscriber_based_pull_goes_towards_other_subscribers() -> None:
    bench = Bench("subscriber-pull")
    lose_two(bench)
    assert bench.round() == [], "there are none"
    bench.want("x", A)
    assert bench.round() == [("x", SubscriberPull("v", A, {"s/0": (5, 6)}))]


def test_an_event_is_found_under_another_pattern() -> None:
    """The example of section 4.2: a broker that has S:Pa-5:Pb-4 for Pb can serve one that lacks S:Pa-5."""
    bench = Bench("subscriber-pull", forward_probability=0.0)
    bench.feed("c", ClientSubscribe(1, B))
    bench.feed("u", Publication(stamp(1, a=5, b=4), ()))
    bench.want("w", A)
    pull = SubscriberPull("far", A, {"s/0": (5, 6)})
    assert bench.feed("u", pull) == [
        ("far", Retransmission(stamp(1, a=5, b=4))),
        ("w", SubscriberPull("far", A, {"s/0": (6,)})),
    ], "v did not subscribe to A, so the rest goes on for certain"
    bench.feed("c", ClientSubscribe(2, A))
    assert len(bench.feed("u", pull)) == 1, "now it did, and goes on with probability 0"


def test_combined_pull_draws_the_direction_and_takes_the_other_if_there_is_none() -> None:
    bench = Bench("combined-pull", publisher_probability=0.5)
    lose_two(bench)
    assert {type(message) for _ in range(20) for _, message in bench.round()} == {PublisherPull}
    bench.want("x", A)
    assert {type(message) for _ in range(40) for _, message in bench.round()} == {PublisherPull, SubscriberPull}


def test_pulled_events_are_delivered_and_not_requested_again() -> None:
    bench = Bench("publisher-pull")
    lose_two(bench)
    assert bench.feed("far", Retransmission(stamp(5, a=5))) == [("c", Delivery(event(5), (1,)))]
    ((_, pull),) = bench.round()
    assert pull.missing == {A: (6,)}
    sizes = bench.node.state_size()
    assert (sizes["lost"], sizes["losses_detected"], sizes["losses_recovered"]) == (1, 2, 1)
    assert (sizes["events_recovered"], sizes["gossip_sent"], sizes["gossip_rounds"]) == (1, 1, 1)


def test_only_what_concerns_the_broker_is_cached_if_so_set() -> None:
    for cached, found in (("all", 1), ("own", 0)):
        bench = Bench("subscriber-pull", cached=cached)
        bench.want("w", A)
        bench.feed("u", Publication(stamp(1, a=1), ()))
        assert bench.node.state_size()["cached"] == found
        bench.feed("p", ClientPublish(event(7)))
        assert bench.node.state_size()["cached"] == found + 1, "its own source caches it"


# ---- clients and the tree


def test_a_returning_client_is_served_from_the_state_it_supplies() -> None:
    bench = Bench("none")
    bench.feed("c", ClientSubscribe(1, A))
    bench.feed("c", ClientSubscribe(2, B))
    assert kinds(bench.feed("c", ClientState({2: B, 3: A})), Accepted) == [("c", Accepted(3))]
    sent = bench.feed("u", Publication(Stamped(event(1, A, B), "s/0", {}), ()))
    assert sent == [("c", Delivery(event(1, A, B), (2, 3)))] or sent == [("c", Delivery(event(1, A, B), (3, 2)))]


def test_a_new_connection_restarts_the_session() -> None:
    bench = Bench("none")
    bench.want("u", A, B)
    bench.feed("w", InterestKnown(1))
    assert bench.give(Connected("w")) == [("w", Interest(1, True, (A, B), ()))]
    bench.give(Connected("u"))
    bench.feed("u", Interest(1, True, (B,), ()))
    assert bench.feed("x", Publication(Stamped(event(1, A), "s/0", {}), ())) == []
    assert len(bench.feed("x", Publication(Stamped(event(2, B), "s/0", {}), ()))) == 1


def test_subscriptions_of_a_lost_link_are_kept_for_a_limited_time() -> None:
    bench = Bench("none", hold_ms=200)
    bench.want("u", A)
    bench.feed("w", InterestKnown(1))
    assert bench.give(Unlinked("u")) == []
    assert bench.timers["hold/u"] == 200_000
    assert bench.feed("x", Publication(Stamped(event(1), "s/0", {}), ())) == []
    assert bench.give(Linked("y")) == [("y", Interest(1, True, (A,), ()))]
    assert kinds(bench.give(TimerFired("hold/u")), Interest) == [("w", Interest(2, False, (), (A,)))]


def test_a_new_link_in_time_cancels_the_forgetting_of_the_old_one() -> None:
    bench = Bench("none")
    bench.want("u", A)
    bench.feed("w", InterestKnown(1))
    bench.give(Unlinked("u"))
    bench.give(Linked("y"))
    bench.feed("y", Interest(1, True, (A,), ()))
    assert kinds(bench.give(TimerFired("hold/u")), Interest) == [], "w has known A all the time"
    message = Publication(Stamped(event(1), "s/0", {}), ())
    assert bench.feed("w", message) == [("y", message)]

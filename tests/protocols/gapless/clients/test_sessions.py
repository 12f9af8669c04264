"""A session: what a client that comes back still lacks, and when endings are told."""

import pytest

from gapless.errors import CallError
from gapless.events import Event
from gapless.filters import parse
from gapless.protocols.gapless.client_messages import Attach, Delivery, Note, SubscriptionProgress, Unsubscribed
from gapless.protocols.gapless.clients.claims import NUMBER_MAX
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.session_state import Turn
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import epoch_of
from gapless.protocols.gapless.routing.records import Advertisement, Subscription

WINDOW = 100


def event(publisher: str, seq: int, **attributes: int) -> Event:
    return Event(publisher, seq, dict(attributes))


def make(attempt: int = 1, **filters: str) -> Session:
    session = Session("c", epoch_of(attempt))
    if attempt:
        claim(session, attempt)
    for name, text in filters.items():
        session.subscriptions[name] = Subscription(name, parse(text), None, "c")
    return session


def claim(session: Session, attempt: int, *brought: SubscriptionProgress) -> None:
    """The client comes back with these subscriptions."""
    session.claim(Attach(attempt, "b/0", list(brought), {}, [], 1), [])


def progress(name: str, cuts: dict[str, int], got: dict[str, int]) -> SubscriptionProgress:
    return SubscriptionProgress(name, "TRUE", cuts, got, True)


def numbers(found: list[Delivery | Note]) -> list[tuple[int, str]]:
    return [
        (item.number + place, event.id)
        for item in found
        if isinstance(item, Delivery)
        for place, event in enumerate(item.events)
    ]


def test_deliveries_are_numbered_sent_once_and_kept_until_taken() -> None:
    session = make(s="TRUE")
    session.put([Outgoing([event("p", 1)], ["s"])])
    session.put([Outgoing([event("p", 2)], ["s"])])
    assert numbers(session.unsent(WINDOW)) == [(1, "p:1"), (2, "p:2")]
    assert session.unsent(WINDOW) == []
    session.got(1)
    assert (session.total, session.taken) == (2, 1)
    session.put([Outgoing([event("p", 3)], ["s"])])
    assert numbers(session.unsent(WINDOW)) == [(3, "p:3")]
    session.got(3)
    assert session.taken == 3


def test_no_more_is_sent_than_a_window_ahead_of_what_was_taken() -> None:
    session = make(s="TRUE")
    session.put([Outgoing([event("p", seq)], ["s"]) for seq in range(1, 7)])
    session.take_leave(Unsubscribed(1, "s", {}))
    assert numbers(session.unsent(2)) == [(1, "p:1"), (2, "p:2")]
    assert session.unsent(2) == []
    session.got(1)
    assert numbers(session.unsent(2)) == [(3, "p:3")]
    session.got(3)
    assert numbers(session.unsent(2)) == [(4, "p:4"), (5, "p:5")]
    session.got(5)
    *_, last = session.unsent(2)
    assert isinstance(last, Unsubscribed), "the ending is told when everything before it has gone out"


def test_what_its_application_has_not_taken_counts_against_the_window_of_who_comes_back() -> None:
    session = make(s="TRUE")
    session.put([Outgoing([event("p", seq)], ["s"]) for seq in range(1, 7)])
    brought = [progress("s", {"p": 1}, {"p": 3})]
    session.claim(Attach(2, "b/0", brought, {}, [], 1, unread=3), [])
    assert numbers(session.unsent(4)) == [(4, "p:4")]
    session.got(3)
    assert numbers(session.unsent(4)) == [(5, "p:5"), (6, "p:6")]
    session.got(5)
    assert session.taken == session.total - 1


def test_what_was_never_sent_cannot_be_confirmed() -> None:
    session = make(s="TRUE")
    session.put([Outgoing([event("p", 1)], ["s"])])
    with pytest.raises(CallError, match="confirms delivery 1, but was sent only 0"):
        session.got(1)
    assert session.taken == 0


def test_an_event_is_due_from_the_cut_on() -> None:
    session = make(s="TRUE")
    subscription = session.subscriptions["s"]
    assert session.due_from(subscription, "p") > NUMBER_MAX
    subscription.cuts["p"] = 3
    assert session.due_from(subscription, "p") == 3


def test_an_orphan_collects_everything() -> None:
    session = make(attempt=0, s="TRUE")
    assert session.is_orphan
    assert session.due_from(session.subscriptions["s"], "p") == 0


def test_an_orphan_that_lies_behind_collects_for_what_has_delivered_nothing_yet() -> None:
    session = make(attempt=0, s="TRUE")
    session.lag(Turn.LACKS, 5)
    assert not session.collects, "it will be read out of history"
    session.untold["s"] = None
    assert session.collects


def test_who_comes_back_gets_what_lies_after_its_cut_and_its_position() -> None:
    session = make(attempt=0, s="TRUE", t="TRUE")
    for seq in range(1, 7):
        session.put([Outgoing([event("p", seq)], ["s", "t"])])
    session.put([Outgoing([event("q", 1)], ["s"])])
    claim(session, 2, progress("s", {"p": 2}, {"p": 4}), progress("t", {"p": 6}, {}))
    assert not session.is_orphan
    assert session.epoch == epoch_of(2)
    found = [
        (item.number, [event.id for event in item.events], item.subscriptions)
        for item in session.unsent(WINDOW)
        if isinstance(item, Delivery)
    ]
    assert found == [(1, ["p:5"], ["s"]), (2, ["p:6"], ["s", "t"])], "it holds no cut of q, so q:1 is not due"


def test_a_cut_that_only_the_broker_knows_counts_too() -> None:
    session = make(s="TRUE")
    session.subscriptions["s"].cuts["q"] = 2
    session.put([Outgoing([event("q", 3)], ["s"])])
    claim(session, 2, progress("s", {"p": 1}, {}))
    assert numbers(session.unsent(WINDOW)) == [(1, "q:3")]
    assert session.cuts_missing("s", {"p": 1}) == {"q": 2}


def test_what_was_due_stays_due_though_its_publisher_advertises_anew() -> None:
    session = make(s="TRUE")
    session.put([Outgoing([event("q", 3)], ["s"])])
    session.subscriptions["s"].former["q"] = 2
    session.subscriptions["s"].cuts["q"] = 4
    claim(session, 2, progress("s", {}, {}))
    assert numbers(session.unsent(WINDOW)) == [(1, "q:3")]
    assert session.cuts_missing("s", {}) == {"q": 2}


def test_a_subscription_that_the_client_no_longer_holds_gets_nothing() -> None:
    session = make(s="TRUE", t="TRUE")
    for name in ("s", "t"):
        session.subscriptions[name].cuts["p"] = 1
    session.put([Outgoing([event("p", 1)], ["s"])])
    session.put([Outgoing([event("p", 2)], ["s", "t"])])
    claim(session, 2, progress("t", {"p": 1}, {}))
    assert [item.subscriptions for item in session.unsent(WINDOW) if isinstance(item, Delivery)] == [["t"]]


def test_resuming_in_the_middle_starts_the_numbers_anew() -> None:
    session = make(s="TRUE")
    for seq in (1, 2, 3):
        session.put([Outgoing([event("p", seq)], ["s"])])
    session.unsent(WINDOW)
    session.got(1)
    claim(session, 2, progress("s", {"p": 1}, {"p": 2}))
    assert numbers(session.unsent(WINDOW)) == [(1, "p:3")]
    session.got(1)
    assert session.taken == session.total


def test_an_ending_is_told_after_the_deliveries_before_it() -> None:
    session = make(s="TRUE", t="TRUE")
    gone = Unsubscribed(1, "s", {"p": 2})
    session.put([Outgoing([event("p", 1)], ["s"])])
    session.put([Outgoing([event("p", 2)], ["s", "t"])])
    session.take_leave(gone)
    session.put([Outgoing([event("p", 3)], ["t"])])
    found = session.unsent(WINDOW)
    assert [type(item) for item in found] == [Delivery, Delivery, Unsubscribed, Delivery]
    assert session.unsent(WINDOW) == []


def test_an_ending_with_nothing_before_it_is_told_at_once() -> None:
    session = make(s="TRUE")
    gone = Unsubscribed(1, "s", {})
    session.take_leave(gone)
    assert session.unsent(WINDOW) == [gone]


def test_an_ending_does_not_wait_for_deliveries_to_others() -> None:
    session = make(s="TRUE", t="TRUE")
    first, second = Unsubscribed(1, "t", {"p": 1}), Unsubscribed(1, "s", {"p": 3})
    session.put(
        [Outgoing([event("p", 1)], ["s", "t"]), Outgoing([event("p", 2)], ["s"]), Outgoing([event("p", 3)], ["s"])]
    )
    session.take_leave(second)
    session.take_leave(first)
    [delivery, told] = session.unsent(1)
    assert isinstance(delivery, Delivery)
    assert told == first
    session.got(1)
    assert numbers(session.unsent(1)) == [(2, "p:2")]
    session.got(2)
    assert session.unsent(1)[-1] == second


def test_an_event_leaves_only_under_a_stable_advertisement() -> None:
    session = make()
    session.advertisements["a"] = Advertisement("a", "c", parse("x = 1"), None, 1)
    session.inbox.put([event("c", 1, x=1), event("c", 2, x=1)])
    session.inbox.put([event("c", 3, x=1), event("c", 4, x=2)])
    assert session.take_publications(10) == []
    session.stable["a"] = None
    assert session.take_publications(1) == [event("c", 1, x=1)]
    assert session.take_publications(10) == [event("c", 2, x=1), event("c", 3, x=1)]
    assert len(session.inbox) == 1, "the next is outside the advertisement"


def test_each_version_of_an_edge_tells_it_all() -> None:
    session = make(s="x = 1")
    session.advertisements["a"] = Advertisement("a", "c", parse("TRUE"), None, 3)
    first = session.record()
    session.stable["a"] = None
    session.admitted = 4
    second = session.record()
    assert first.version < second.version
    assert (first.advertisements, second.advertisements) == ({"a": ("TRUE", 3, False)}, {"a": ("TRUE", 3, True)})
    assert second.subscriptions == {"s": "x = 1"}
    assert second.awaited == {"s": None}, "nobody has said yet whose cuts it waits for"
    assert second.admitted == 4

"""A client computes which events of a publisher are lost from its state of a subscription."""

from gapless.filters import parse
from gapless.positions import Position
from gapless.protocols.gapless.client_subscription import HeldSubscription
from gapless.protocols.gapless.identities import Timed


def held(since: int | None = None) -> HeldSubscription:
    return HeldSubscription("s", parse("x > 0"), None if since is None else Position.at(since), None)


def test_received_events_are_not_reported_as_lost() -> None:
    subscription = held()
    subscription.cuts["p"] = 2
    subscription.record_arrival("p", 2, 3, 30)
    assert subscription.lose("p", 1, 5, 0) == [(4, 5)]
    assert subscription.lose("p", 1, 5, 0) == [], "a loss is reported once"


def test_losses_before_the_cut_are_not_reported() -> None:
    subscription = held()
    subscription.cuts["p"] = 4
    assert subscription.lose("p", 1, 5, 0) == [(4, 5)]


def test_losses_are_between_the_last_read_and_the_newest_event() -> None:
    subscription = held(since=0)
    subscription.record_arrival("p", 1, 3, 30)
    subscription.go_live(40)
    subscription.record_arrival("p", 45, 45, 45)
    assert subscription.lose("p", 2, 46, 0) == [(4, 44), (46, 46)]
    assert subscription.lose("p", 2, 46, 0) == []


def test_events_published_after_a_loss_are_not_part_of_it() -> None:
    subscription = held(since=0)
    subscription.go_live(20)
    assert subscription.lose("p", 1, 2, 0) == [(1, 2)]
    subscription.record_arrival("p", 3, 3, 30)
    assert subscription.lose("p", 1, 4, 0) == [(4, 4)]


def test_lost_events_that_all_brokers_had_processed_are_missed_only_by_readers() -> None:
    live, reader = held(), held(since=0)
    assert live.lose("p", 1, 5, 3) == [(4, 5)]
    assert reader.lose("p", 1, 5, 3) == [(1, 5)]
    reader.go_live(50)
    reader.record_arrival("p", 8, 8, 80)
    assert reader.lose("p", 6, 11, 9) == [(6, 7), (10, 11)], "it read up to 5, and 8 was published then"


def moved_twice() -> HeldSubscription:
    """Return a subscription that was live up to 100, from 200 to 300, and from 400 on, and read history in between."""
    subscription = held()
    for left, came_back in ((100, 200), (300, 400)):
        subscription.position = left
        subscription.begin_reading()
        subscription.go_live(came_back)
    return subscription


def test_a_subscription_does_not_lack_settled_numbers_from_before_each_of_its_moves() -> None:
    assert moved_twice().lose("p", 1, 5, 5, [Timed(1, 5, 1, 90)]) == []
    subscription = moved_twice()
    subscription.record_arrival("p", 2, 2, 250)
    assert subscription.lose("p", 1, 5, 5, [Timed(1, 5, 1, 290)]) == [(1, 1)], "3 to 5 were published while it was live"


def test_a_subscription_may_lack_settled_numbers_from_each_of_its_moves() -> None:
    assert moved_twice().lose("p", 1, 5, 5, [Timed(1, 5, 1, 150)]) == [(1, 5)]
    subscription = moved_twice()
    subscription.record_arrival("p", 2, 2, 250)
    assert subscription.lose("p", 2, 5, 5, [Timed(1, 5, 1, 350)]) == [(3, 5)]


def test_a_subscription_that_reads_again_may_lack_settled_numbers() -> None:
    subscription = moved_twice()
    subscription.record_arrival("p", 2, 2, 450)
    subscription.position = 500
    subscription.begin_reading()
    assert subscription.lose("p", 3, 5, 5, [Timed(1, 5, 1, 550)]) == [(3, 5)]


def test_numbers_missed_by_an_earlier_read_are_reported_after_a_later_one() -> None:
    subscription = held()
    subscription.record_arrival("p", 1, 1, 10)
    subscription.begin_reading()
    subscription.go_live(200)
    subscription.record_arrival("p", 5, 5, 210)
    subscription.position = 300
    subscription.begin_reading()
    subscription.go_live(400)
    assert subscription.lose("p", 2, 5, 5, [Timed(1, 5, 1, 210)]) == [(2, 4)]
    assert subscription.lose("p", 2, 5, 5, [Timed(1, 5, 1, 210)]) == [], "a loss is reported once"


def test_timestamps_of_some_numbers_tell_when_the_others_were_published() -> None:
    times = [Timed(1, 2, 90, 90), Timed(3, 4, 150, 150), Timed(5, 6, 250, 250), Timed(8, 8, 310, 310)]
    assert moved_twice().lose("p", 1, 9, 9, times) == [(3, 4), (7, 9)]
    assert moved_twice().lose("p", 7, 9, 9, [Timed(7, 9, 410, 450)]) == []
    assert moved_twice().lose("p", 7, 9, 8, [Timed(7, 9, 410, 450)]) == [(9, 9)]

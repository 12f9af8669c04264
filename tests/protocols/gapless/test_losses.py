"""A client computes which events of a publisher are lost from its state of a subscription."""

from gapless.filters import parse
from gapless.positions import Position
from gapless.protocols.gapless.client_subscription import HeldSubscription


def held(since: int | None = None) -> HeldSubscription:
    return HeldSubscription("s", parse("x > 0"), None if since is None else Position.at(since), None)


def test_received_events_are_not_reported_as_lost() -> None:
    subscription = held()
    subscription.cuts["p"] = 2
    subscription.came("p", 2, 3)
    assert subscription.lose("p", 1, 5, 0) == [(4, 5)]
    assert subscription.lose("p", 1, 5, 0) == [], "a loss is reported once"


def test_losses_before_the_cut_are_not_reported() -> None:
    subscription = held()
    subscription.cuts["p"] = 4
    assert subscription.lose("p", 1, 5, 0) == [(4, 5)]


def test_losses_are_between_the_last_read_and_the_newest_event() -> None:
    subscription = held(since=0)
    subscription.came("p", 1, 3)
    subscription.go_live()
    subscription.came("p", 45, 45)
    assert subscription.lose("p", 2, 46, 0) == [(4, 44), (46, 46)]
    assert subscription.lose("p", 2, 46, 0) == []


def test_events_published_after_a_loss_are_not_part_of_it() -> None:
    subscription = held(since=0)
    subscription.go_live()
    assert subscription.lose("p", 1, 2, 0) == [(1, 2)]
    subscription.came("p", 3, 3)
    assert subscription.lose("p", 1, 4, 0) == [(4, 4)]


def test_lost_events_that_all_brokers_had_processed_are_missed_only_by_readers() -> None:
    live, reader = held(), held(since=0)
    assert live.lose("p", 1, 5, 3) == [(4, 5)]
    assert reader.lose("p", 1, 5, 3) == [(1, 5)]
    reader.go_live()
    reader.came("p", 8, 8)
    assert reader.lose("p", 6, 11, 9) == [(6, 7), (10, 11)], "it read up to 5, and 8 was published then"

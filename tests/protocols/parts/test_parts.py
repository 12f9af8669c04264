"""The parts that several protocols share."""

from gapless.protocols.parts.forgetting import forget_oldest
from gapless.protocols.parts.held import Held


def test_the_oldest_are_dropped_first() -> None:
    entries = dict.fromkeys([3, 1, 2])
    forget_oldest(entries, 3)
    assert list(entries) == [3, 1, 2]
    forget_oldest(entries, 1)
    assert list(entries) == [2]


def test_a_subscription_ends_with_the_last_that_came_of_each_publisher_or_before_its_start() -> None:
    held = Held("s")
    held.cuts.update(ann=5, bob=3)
    assert held.last() == {"ann": 4, "bob": 2}
    held.got["bob"] = 7
    assert held.last() == {"ann": 4, "bob": 7}

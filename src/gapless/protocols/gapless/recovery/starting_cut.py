"""Finding the starting cut of a subscription whose markers were lost with a broker.

A subscription holds cuts for some publishers and was on its way to others, represented there by a covering one. The
broker at which it was represented is gone, and with it the markers it had given or was about to give. Two things can
be known: from which number on the covering subscription got a publisher's events (`Bound.least`), and, from the merged
log, what each event came after.

The cut is the first event of the publisher that comes after some event that the known cuts let in. So the subscription
gets every effect of what it gets. And it gets no event whose effects it has missed: whatever comes after such an event
comes after the known cuts, too. If there is no such event, the cut is the next event to come.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from gapless.events import Event
from gapless.filters import Filter
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.routing.records import Subscription

__all__ = ["Bound", "find_effects", "find_start", "last_missed"]


class Bound(msgspec.Struct, frozen=True):
    """What is known of a cut that was on its way: not before `least`, and `following` if nothing else is found."""

    least: int
    following: int


def find_start(
    events: Iterable[Event],
    pasts: Mapping[tuple[str, int], Cuts],
    pattern: Filter,
    publisher: str,
    bound: Bound,
    known: Cuts,
    stamp_of: Callable[[str, int], int] = lambda publisher, first: -1,
) -> int:
    """The cut for a publisher, consistent with the known cuts of other publishers.

    `stamp_of` tells the stamp of the first event of a publisher from a number on, if it is known. A broker that passed
    on one event after another does not tell the second for its effect. The smallest story: q:1 is admitted before p:1,
    and comes to b0 after it. s gets p:1, and its cut of q is q:2. If q:1 counted as an effect of p:1, s would have to
    get it, after it has passed.
    """
    for event in events:
        if event.publisher == publisher and event.seq >= bound.least and pattern.matches(event.attributes):
            past = pasts.get((event.publisher, event.seq), {})
            if any(past.get(other, 0) >= cut and stamp_of(other, cut) <= event.stamp for other, cut in known.items()):
                return event.seq
    return bound.following


def find_effects(
    events: Iterable[Event], pasts: Mapping[tuple[str, int], Cuts], publisher: str, first: int
) -> list[tuple[int, Event]]:
    """What others published after an event of the publisher from that number on, each with the last such number."""
    found = [(pasts.get((event.publisher, event.seq), {}).get(publisher, 0), event) for event in events]
    return [(seq, event) for seq, event in found if seq >= first and event.publisher != publisher]


def last_missed(effects: Iterable[tuple[int, Event]], subscription: Subscription, passed: Cuts) -> int:
    """The last number of a publisher of which the subscription has missed an effect, by its cuts, or has got one, for
    it has `passed` here: or else 0.

    The smallest story: p publishes p:1 and takes its advertisement back, and q answers with q:1. s comes, and starts
    with q:2. p's broker is lost, and its advertisement is found on an old disk. If s started with p:1, it would miss
    the answer. If s had come before the answer, it would get p:1 after it.
    """
    cuts = {**subscription.former, **subscription.cuts}
    over = [(seq, event) for seq, event in effects if _is_over(event, cuts, passed)]
    return max((seq for seq, event in over if subscription.filter.matches(event.attributes)), default=0)


def _is_over(event: Event, cuts: Cuts, passed: Cuts) -> bool:
    """Whether an event does not come any more to who has these cuts: it is before them, or has come."""
    publisher = event.publisher
    return publisher in cuts and event.seq < max(cuts[publisher], passed.get(publisher, 0) + 1)

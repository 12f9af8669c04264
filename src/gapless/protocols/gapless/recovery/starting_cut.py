"""Finding the starting cut of a subscription whose markers were lost with a broker.

A subscription holds cuts for some publishers and was on its way to others, represented there by a covering one. The
broker at which it was represented is gone, and with it the markers it had given or was about to give. What can be
known: from which number on the covering subscription attracted a publisher's events (`Bound.least`), and, from the
merged log, what each event came after.

The cut is the first event that comes after anything from the known cuts on. With it every effect of what the
subscription gets is in, and nothing is whose own effects it has missed: whatever comes after such an event comes after
the known cuts too. If there is none, the next event to come will do.
"""

from collections.abc import Iterable, Mapping

import msgspec

from gapless.events import Event
from gapless.filters import Filter
from gapless.protocols.gapless.messages import Cuts

__all__ = ["Bound", "find_start"]


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
) -> int:
    """The cut for a publisher that goes with the cuts known of others."""
    for event in events:
        if event.publisher == publisher and event.seq >= bound.least and pattern.matches(event.attributes):
            past = pasts.get((event.publisher, event.seq), {})
            if any(past.get(other, 0) >= cut for other, cut in known.items()):
                return event.seq
    return bound.following

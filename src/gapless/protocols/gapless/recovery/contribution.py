"""What a member contributes to a hand-over: who subscribes and publishes on its side, and what it knows of others."""

from collections.abc import Callable, Mapping

from gapless.filters import Filter, parse
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.messages import Cuts, SideAdvertisement, SideSubscription
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.routing.records import Link, Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable

__all__ = ["MERGED", "is_inside", "side_advertisements", "side_known_cuts", "side_subscriptions"]

COMPARED = 4
"""Units of work to find what covers a filter; and filters that are compared with another, for one unit."""
MERGED = "*"
"""Where an event of a merged log came from, if it entered through no live broker."""


def is_inside(region: Region, name: str, via: str) -> bool:
    """Whether what comes that way comes from inside the region, seen from one of its members."""
    return via == MERGED or via in region.core or (name in region.core and via != "")


def side_subscriptions(
    name: str,
    table: RoutingTable,
    is_own: Callable[[Link | None], bool],
    coverage: bool,
    told: Mapping[str, SideSubscription],
    log_first: int,
) -> Pieces[list[SideSubscription]]:
    """The subscriptions of the broker's own side, without those that others of them cover.

    What was `told` in a hand-over that this broker dropped is told again, even if it has ended since.
    Its smallest story: S covers T, and b1 contributes S alone. b1 drops the hand-over, but b2 completes it: for b2, S
    represents T. S ends. If b1 contributes only T now, b2 does not know that T takes over the cuts of S.
    S is told under another name then, for it may have ended only here: another member may hold its session by now.
    """
    ended = [
        item
        if item.ended
        else SideSubscription(f"{original}~{name}", item.filter, item.cuts, "", original, item.log_from)
        for original, item in told.items()
        if original not in table.subscriptions
    ]
    before = [parse(item.filter) for item in ended]
    kept: dict[str, Subscription] = {}

    def is_covered(pattern: Filter) -> bool:
        return any(item.covers(pattern) for item in before) or any(
            item.name in kept for item in table.covering(pattern)
        )

    for subscription in table.subscriptions.values():
        if is_own(subscription.origin) and (
            subscription.name in told or not (coverage and is_covered(subscription.filter))
        ):
            kept[subscription.name] = subscription
        yield COMPARED + len(before) // COMPARED
    return ended + [
        SideSubscription(
            item.name,
            item.filter.text,
            {**item.former, **item.cuts},
            item.client,
            log_from=max(0, item.entered_at - log_first),
        )
        for item in kept.values()
    ]


def side_advertisements(
    table: RoutingTable, is_own: Callable[[Link | None], bool], inside: set[str]
) -> list[SideAdvertisement]:
    """The advertisements of the broker's own side. One that waits for a peer inside the region is told as awaited.

    So is one whose answer is deferred. Its smallest story: an advertisement comes while this broker has no link at all,
    so it waits for nobody. If the hand-over told it as one that nobody has to answer, it would be stable before the
    others know it.
    """
    return [
        SideAdvertisement(
            item.name,
            item.publisher,
            item.filter.text,
            item.first,
            awaited=item.is_deferred or any(peer in inside for peer in item.waiting),
        )
        for item in table.advertisements.values()
        if is_own(item.origin)
    ]


def side_known_cuts(table: RoutingTable, is_own: Callable[[Link | None], bool]) -> dict[str, Cuts]:
    """The cuts that the subscriptions of the other sides have here: their own brokers may have missed the markers."""
    return {
        subscription.name: {**subscription.cuts, **subscription.former}
        for subscription in table.subscriptions.values()
        if (subscription.cuts or subscription.former) and not is_own(subscription.origin)
    }

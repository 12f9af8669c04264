"""What a member contributes to a hand-over: who subscribes and publishes on its side, and what it knows of others."""

from collections.abc import Callable, Mapping

from gapless.filters import parse
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.messages import Cuts, SideAdvertisement, SideSubscription
from gapless.protocols.gapless.routing.routing_table import Link, RoutingTable, Subscription

__all__ = ["MERGED", "is_inside", "side_advertisements", "side_known_cuts", "side_subscriptions"]

MERGED = "*"
"""Where an event of a merged log came from, if it entered through nobody who is left."""


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
) -> list[SideSubscription]:
    """The subscriptions of the broker's own side, but for those that others of them cover.

    Those that were `told` in a hand-over that came to nothing here are told again, also if they have ended since: the
    others may have completed it, and know from where on they represent those that were not told. They get a name of
    their own, for they may have ended here alone, and live elsewhere.
    """
    ended = [
        item if item.ended else SideSubscription(f"{original}~{name}", item.filter, item.cuts, "", original)
        for original, item in told.items()
        if original not in table.subscriptions
    ]
    covers = [parse(item.filter) for item in ended]
    kept: list[Subscription] = []
    for subscription in table.subscriptions.values():
        if is_own(subscription.origin) and (
            subscription.name in told
            or not (coverage and any(pattern.covers(subscription.filter) for pattern in covers))
        ):
            kept.append(subscription)
            covers.append(subscription.filter)
    return ended + [
        SideSubscription(
            item.name,
            item.filter.text,
            {**item.former, **item.cuts},
            item.client,
            log_from=max(0, item.entered_at - log_first),
        )
        for item in kept
    ]


def side_advertisements(
    table: RoutingTable, is_own: Callable[[Link | None], bool], inside: set[str]
) -> list[SideAdvertisement]:
    """The advertisements of one's own side; those are awaited that wait for a peer inside.

    So are those whose answer is deferred: they may have come while no link led inside, and reached nobody there.
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
    """The cuts that the others' subscriptions have here: those others may have missed them."""
    return {
        subscription.name: {**subscription.cuts, **subscription.former}
        for subscription in table.subscriptions.values()
        if (subscription.cuts or subscription.former) and not is_own(subscription.origin)
    }

"""I3, I5 and I6: logs, active subscriptions, and representation by covering subscriptions.

- I3: a processed event is in the broker's log until a position after it is final at all joined brokers.
- I5: when a subscription is active, every publisher that had a stable overlapping advertisement when the attempt began
  has answered. Between handovers, an active subscription, or one that covers it, is in the table of every broker on
  the path from each publisher with a stable overlapping advertisement.
- I6: a subscription that represents others on a link is active, was activated by its own broker, and covers them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from gapless.filters import Filter
from gapless.protocol import InvariantError
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.gapless.invariants.journals import JournalInvariants
from gapless.protocols.gapless.routing_state import Subscription
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.parts.filter_pairs import overlap

__all__ = ["TableInvariants"]

States: TypeAlias = Callable[[], Mapping[str, BrokerState]]
Stable: TypeAlias = tuple[Incarnation, Name, Attempt]
"""A stable advertisement: the incarnation of the publisher's broker, the advertisement's name, and the attempt."""


@dataclass(eq=False)
class _Watched:
    """The last observed state of one incarnation."""

    log: dict[tuple[str, int], int] = field(default_factory=dict)
    """The timestamps of processed events."""
    log_seen: object = None
    """The broker's log object, which is replaced when the log is truncated."""
    stable: int = 0
    has_joined_at: int = 0
    """The largest final position that any broker knew when this broker joined the tree."""
    is_installed: bool = False
    begun: dict[tuple[Name, Attempt], list[Stable]] = field(default_factory=dict)
    active: set[tuple[Name, Attempt]] = field(default_factory=set)
    handovers: int = 0


class TableInvariants:
    """Checks logs and routing tables."""

    def __init__(self, journals: JournalInvariants) -> None:
        self._journals = journals
        self._watched: dict[Incarnation, _Watched] = {}
        self._activated: set[tuple[Name, Attempt]] = set()
        """Subscriptions that have been active at their own broker."""

    def after_step(self, s: BrokerState, states: States) -> None:
        """Check the broker's log."""
        seen = self._seen(s)
        if s.is_installed and not seen.is_installed:
            seen.is_installed, seen.has_joined_at = True, self._journals.largest_final
        self._check_log(s, seen)
        if s.stable > seen.stable:
            seen.stable = s.stable
            self._check_stable(s, states)

    def _seen(self, s: BrokerState) -> _Watched:
        seen = self._watched.get(s.incarnation)
        if seen is None:
            seen = self._watched[s.incarnation] = _Watched(is_installed=s.number == 0)
        return seen

    def check_tables(self, s: BrokerState, states: States) -> None:
        """Check the broker's tables, and the paths of all active subscriptions if something has changed."""
        seen = self._seen(s)
        has_changed = self._check_active(s, seen, states)
        self._check_representation(s)
        if len(s.covered) > seen.handovers:
            seen.handovers, has_changed = len(s.covered), True
        if has_changed:
            self._check_paths(states)

    # ---- I3 -----------------------------------------------------------------------------------------------

    def _check_log(self, s: BrokerState, seen: _Watched) -> None:
        grown = len(s.log) - len(seen.log)
        if s.log is seen.log_seen and grown >= 0:
            new = list(islice(reversed(s.log.items()), grown + 1))
            if not grown or not seen.log or new.pop()[0] == next(reversed(seen.log)):
                seen.log |= {key: events.stamp for key, events in reversed(new[:grown])}
                return
        seen.log_seen = s.log
        for key, timestamp in seen.log.items():
            if timestamp > s.stable and key not in s.log:
                raise InvariantError(
                    "I3", f"{s.name}#{s.number} has dropped {key[0]}'s event {key[1]} with timestamp {timestamp}; all "
                    f"brokers have processed those up to {s.stable}",
                )  # fmt: skip
        seen.log = {key: events.stamp for key, events in s.log.items()}

    def _check_stable(self, s: BrokerState, states: States) -> None:
        for other in self._members(states):
            known = self._watched.get(other.incarnation)
            joined_at = 0 if known is None else known.has_joined_at
            if other.is_installed and max(other.final.timestamp, joined_at) < s.stable:
                raise InvariantError(
                    "I3", f"{s.name}#{s.number} drops what lies before {s.stable}, and {other.name}#{other.number} has "
                    f"not got so far: {other.final.timestamp}",
                )  # fmt: skip

    def _members(self, states: States) -> Iterator[BrokerState]:
        return (each for each in states().values() if not self._journals.is_dead(each))

    # ---- I5 -----------------------------------------------------------------------------------------------

    def _check_active(self, s: BrokerState, seen: _Watched, states: States) -> bool:
        """Check newly active subscriptions; return whether any became active or ended."""
        for local in s.pending.values():
            key = local.name, local.attempt
            if key not in seen.begun:
                seen.begun[key] = list(self._stable(local.filter, states))
        active: set[tuple[Name, Attempt]] = set()
        for name, local in s.locals.items():
            subscription = s.subscriptions.get(name)
            if subscription is None or subscription.origin is not None or not subscription.is_active:
                continue
            key = name, subscription.attempt
            active.add(key)
            if key not in seen.active:
                self._activated.add(key)
                now = set(self._stable(subscription.filter, states))
                for stable in seen.begun.pop(key, []):
                    if stable in now and stable[1].client not in local.cuts:
                        raise InvariantError(
                            "I5", f"{name} is active at {s.name}, and {stable[1].client} at {stable[0].broker} has not "
                            "answered",
                        )  # fmt: skip
        has_changed = active != seen.active
        seen.active = active
        return has_changed

    def _stable(self, wanted: Filter, states: States) -> Iterator[Stable]:
        """Yield the stable advertisements of live brokers' clients that overlap with the subscription."""
        for state in self._members(states):
            for each in state.advertisements.values():
                if each.origin is None and each.is_stable and overlap(each.filter, wanted):
                    yield state.incarnation, each.name, each.attempt

    def _check_paths(self, states: States) -> None:
        """Check the paths of all active subscriptions, unless a handover is in progress somewhere."""
        members = {each.name: each for each in self._members(states)}
        if any(each.is_frozen or each.due for each in members.values()):
            return
        if any(each.statuses != next(iter(members.values())).statuses for each in members.values()):
            return
        for home in members.values():
            hops = _hops_to(home, members)
            for name in home.locals:
                subscription = home.subscriptions.get(name)
                if subscription is None or subscription.origin is not None or not subscription.is_active:
                    continue
                for at, _, _ in self._stable(subscription.filter, states):
                    if at.broker in hops:
                        _check_path(home, members, hops, at.broker, subscription)

    # ---- I6 -----------------------------------------------------------------------------------------------

    def _check_representation(self, s: BrokerState) -> None:
        for link in s.links.values():
            for name, representative in link.represented.items():
                cover, covered = s.subscriptions.get(representative), s.subscriptions.get(name)
                if cover is None or not cover.is_active or link.sent.get(representative) != (cover.attempt, True):
                    raise InvariantError(
                        "I6", f"{representative} represents {name} at {s.name} towards {link.peer}, and is not active"
                    )
                if (representative, cover.attempt) not in self._activated:
                    raise InvariantError("I6", f"{representative} is active at {s.name}, and not at its own broker")
                if covered is not None and not cover.filter.covers(covered.filter):
                    raise InvariantError("I6", f"{representative} represents {name} at {s.name} and does not cover it")


def _hops_to(home: BrokerState, members: Mapping[str, BrokerState]) -> dict[str, str]:
    """Return the next hop of each broker towards `home`, along links that both ends have installed."""
    hops: dict[str, str] = {}
    reached = [home.name]
    for name in reached:
        for peer, tag in members[name].links:
            other = members.get(peer)
            if other is not None and peer != home.name and peer not in hops and (name, tag) in other.links:
                hops[peer] = name
                reached.append(peer)
    return hops


def _check_path(
    home: BrokerState, members: Mapping[str, BrokerState], hops: Mapping[str, str], start: str, wanted: Subscription
) -> None:
    at = start
    while at != home.name:
        state, hop = members[at], hops[at]
        towards = [each for each in state.subscriptions.values() if each.origin is not None and each.origin.peer == hop]
        if not any(each.name == wanted.name or each.filter.covers(wanted.filter) for each in towards):
            raise InvariantError(
                "I5", f"{wanted.name} is active at {home.name}, and {at} does not know it on the path from {start}"
            )
        at = hop

"""Represents shared subscriptions (groups) in a trace: the guarantees to the group, and to each member.

Each event is delivered to one member. It is redelivered to another only if it was not acknowledged in time, or its
member was disconnected, and no two members may both acknowledge it. Each member receives its part in causal order,
except for redeliveries. The trace expresses this so that checkers need not know groups:

- *The group* is one subscription, `group:NAME`, of a client with the same name. It received each event that a member
  received, in the order of timestamps, which is a causal order: events that no member received are missing. An event
  occurs twice if two members were notified of its acknowledgement, or if it was delivered to one after that.
- *Each member's* subscription contains its first deliveries; everything else is reported as skipped.
- *Each redelivery* has its own subscription, which expects nothing else: it can occur at any time, but must match.

A group without members can have unfinished work, so it has no subscription of its own then.
"""

from collections.abc import Iterable

import msgspec

from gapless.events import Event
from gapless.trace.names import Act

__all__ = ["GROUP_CLIENT", "Given", "Groups"]

GROUP_CLIENT = "group:"
"""The prefix of a group's client, before the shared name."""


class Member(msgspec.Struct):
    """A member of a group, with its knowledge about acknowledgements."""

    name: str
    position: int
    joined_us: int
    kept: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """When the member learned that everything up to some delivery to its client is acknowledged."""
    kept_each: dict[int, int] = msgspec.field(default_factory=dict)
    """When the member learned that single deliveries are acknowledged."""
    revoked: set[int] = msgspec.field(default_factory=set)
    """Deliveries that were revoked, because they belong to another member."""


class Given(msgspec.Struct):
    """An event that was delivered to one member."""

    event: Event
    at: int
    subscription: str
    kept_us: int | None
    """When the member learned that the event is acknowledged."""


class Groups:
    """The groups of one run."""

    def __init__(self, slack_us: int = 0) -> None:
        """`slack_us` is the possible difference between the clocks of two clients."""
        self._slack_us = slack_us
        self.members: dict[str, Member] = {}
        """The members, by subscription."""
        self.again: set[int] = set()
        """The indices of actions in the run that are redeliveries."""

    def __bool__(self) -> bool:
        return bool(self.members)

    def joined(self, subscription: str, name: str, position: int, now_us: int) -> None:
        """Record that a client joined a group."""
        self.members[subscription] = Member(name, position, now_us)

    def kept(self, subscription: str, count: int, now_us: int) -> None:
        """Record when a member learned that everything up to a delivery to its client is acknowledged."""
        if subscription in self.members:
            self.members[subscription].kept.append((count, now_us))

    def revoked(self, subscription: str, counts: Iterable[int]) -> None:
        """Record when a member learned that these single deliveries are acknowledged."""
        if subscription in self.members:
            self.members[subscription].revoked.update(counts)

    def kept_each(self, subscription: str, counts: Iterable[int], now_us: int) -> None:
        """Record when a member learned that these deliveries are acknowledged."""
        if subscription in self.members:
            self.members[subscription].kept_each.update(dict.fromkeys(counts, now_us))

    def by_name(self) -> dict[str, list[str]]:
        """Return the members of each group, in the order in which they joined."""
        found: dict[str, list[str]] = {}
        for subscription, member in sorted(self.members.items(), key=lambda item: item[1].joined_us):
            found.setdefault(member.name, []).append(subscription)
        return found

    def given(self, acts: list[Act]) -> dict[str, dict[str, list[Given]]]:
        """Return, by group and event, the members to which the event was delivered, in order."""
        counts: dict[str, int] = {}
        found: dict[str, dict[str, list[Given]]] = {}
        for client, event, subscription, at in acts:
            if subscription is None:
                continue
            number = counts[client] = counts.get(client, 0) + 1
            member = self.members.get(subscription)
            if member is not None:
                times_us = [now_us for count, now_us in member.kept if count >= number]
                if number in member.kept_each:
                    times_us.append(member.kept_each[number])
                kept_us = None if number in member.revoked or not times_us else min(times_us)
                given = Given(event, at, subscription, kept_us)
                found.setdefault(member.name, {}).setdefault(event.id, []).append(given)
        return found

    def whole(self, name: str, given: dict[str, list[Given]]) -> list[Act]:
        """Return what the group as a whole has received."""
        client = GROUP_CLIENT + name
        events = sorted(given.values(), key=lambda all_of_it: _order(all_of_it[0].event))
        found: list[Act] = []
        for unsorted in events:
            each = sorted(unsorted, key=lambda given: given.at)
            first = each[0]
            found.append((client, first.event, client, first.at))
            if _is_twice(each, self._slack_us):
                found.append((client, first.event, client, each[-1].at))
        return found


def _order(event: Event) -> tuple[int, str, int]:
    return event.stamp, event.publisher, event.seq


def _is_twice(given: list[Given], slack_us: int) -> bool:
    """Return whether two members know that the event is acknowledged, or one received the event after another
    one knew."""
    kept = [each.kept_us for each in given if each.kept_us is not None]
    return len(kept) > 1 or any(each.at > min(kept) + slack_us for each in given if kept)

"""A durable subscription that a group shares, in a trace: what is promised to all of them, and to each.

Each event goes to a member; to another only if it was not confirmed in time, or its member was out of sight; never to
two who were both told that it is confirmed. Each member gets its part in causal order, but for what is given again. To
let the judges see this without knowing of groups:

- *For all of them* stands one subscription, `group:NAME`, of a client that is called the same. It got each event that a
  member got, in the order of stamps, which is a causal one: what nobody got is missing. An event stands there twice if
  two were told that it is confirmed, or if it was given to one after another had been told so.
- *Each member's* own is judged by what it was given for the first time; all else it does not wait for (`skipped`).
- *What is given again* has a subscription of its own each time, which waits for nothing else: it may come at any time,
  but only if it matches.

A group that everybody has left may have left something undone, so nothing is said of all of them then.
"""

from collections.abc import Iterable

import msgspec

from gapless.events import Event
from gapless.trace.names import Act

__all__ = ["GROUP_CLIENT", "Given", "Groups"]

GROUP_CLIENT = "group:"
"""What the client of a group is called, before the name that it shares."""


class Member(msgspec.Struct):
    """One member."""

    name: str
    position: int
    joined_us: int
    kept: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """When it was told that all up to some delivery to its client is confirmed."""
    revoked: set[int] = msgspec.field(default_factory=set)
    """Deliveries of which it was told that they are another's."""


class Given(msgspec.Struct):
    """One event, given to one member."""

    event: Event
    at: int
    subscription: str
    kept_us: int | None
    """When the member knew that it is confirmed."""


class Groups:
    """All of one run."""

    def __init__(self, slack_us: int = 0) -> None:
        """`slack_us`: how far the clocks of two clients may differ."""
        self._slack_us = slack_us
        self.members: dict[str, Member] = {}
        """By subscription."""
        self.again: set[int] = set()
        """Which acts of the run gave something again."""

    def __bool__(self) -> bool:
        return bool(self.members)

    def joined(self, subscription: str, name: str, position: int, now_us: int) -> None:
        """A client is in a group."""
        self.members[subscription] = Member(name, position, now_us)

    def kept(self, subscription: str, count: int, now_us: int) -> None:
        """A member knows that all up to a delivery to its client is confirmed."""
        if subscription in self.members:
            self.members[subscription].kept.append((count, now_us))

    def revoked(self, subscription: str, counts: Iterable[int]) -> None:
        """A member knows that these deliveries to its client are another's."""
        self.members[subscription].revoked.update(counts)

    def by_name(self) -> dict[str, list[str]]:
        """The members of each group, in the order in which they joined."""
        found: dict[str, list[str]] = {}
        for subscription, member in sorted(self.members.items(), key=lambda item: item[1].joined_us):
            found.setdefault(member.name, []).append(subscription)
        return found

    def given(self, acts: list[Act]) -> dict[str, dict[str, list[Given]]]:
        """By name and event: to whom it was given, in order."""
        counts: dict[str, int] = {}
        found: dict[str, dict[str, list[Given]]] = {}
        for client, event, subscription, at in acts:
            if subscription is None:
                continue
            number = counts[client] = counts.get(client, 0) + 1
            member = self.members.get(subscription)
            if member is not None:
                told = [now_us for count, now_us in member.kept if count >= number]
                kept_us = None if number in member.revoked or not told else min(told)
                given = Given(event, at, subscription, kept_us)
                found.setdefault(member.name, {}).setdefault(event.id, []).append(given)
        return found

    def whole(self, name: str, given: dict[str, list[Given]]) -> list[Act]:
        """What the group as a whole got."""
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
    """Whether two know that it is confirmed, or one got it after another knew."""
    kept = [each.kept_us for each in given if each.kept_us is not None]
    return len(kept) > 1 or any(each.at > min(kept) + slack_us for each in given if kept)

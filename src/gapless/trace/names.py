"""A durable subscription in a trace: one subscription of one client that never left, whoever listened.

Each client that opened it has a subscription of its own in the trace, from where it was told to go on. Beside these
stands one for the name, of a client that is called as it is. Its history is what all of them got, one after the other:

- what a client was delivered, and told that it is confirmed: if that comes again for another, it came twice;
- what a client was about to confirm when the next one opened it: all that it asked for at a time may come again or not,
  so it counts once;
- of what a client got and did not confirm: nothing. If it does not come again, it is missing.
- All that the last one got.

So the judges need to know nothing of names: what would be wrong for one client is wrong for all of them together.
"""

import msgspec

from gapless.events import Event

__all__ = ["NAME_CLIENT", "Act", "Opening", "Openings"]

NAME_CLIENT = "name:"
"""What the client of a name is called, before the name itself."""

NEVER = 1 << 62

Act = tuple[str, Event, str | None, int]
"""Client, event, the subscription it was delivered for (none if it was published), and when."""


class Opening(msgspec.Struct):
    """One client's share of a durable subscription."""

    name: str
    subscription: str
    client: str
    generation: int
    position: int
    got: dict[str, int]
    opened_us: int
    confirmed: int = 0
    """The client knows that all up to this delivery to it is confirmed."""
    asked: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """When it was about to confirm, up to which delivery."""


class Openings:
    """All of one run."""

    def __init__(self, slack_us: int = 0) -> None:
        """`slack_us`: how far the clocks of two clients may differ."""
        self._slack_us = slack_us
        self._by_subscription: dict[str, Opening] = {}

    def __bool__(self) -> bool:
        return bool(self._by_subscription)

    def opened(self, opening: Opening) -> None:
        """A client opened a durable subscription."""
        self._by_subscription[opening.subscription] = opening

    def acknowledged(self, subscription: str, count: int, now_us: int, *, is_stored: bool) -> None:
        """A client is about to confirm all up to a delivery to it; or knows that it is confirmed."""
        opening = self._by_subscription.get(subscription)
        if opening is None:
            return
        if is_stored:
            opening.confirmed = max(opening.confirmed, count)
        else:
            opening.asked.append((now_us, count))

    def of(self, subscription: str) -> Opening | None:
        """What is known of this one."""
        return self._by_subscription.get(subscription)

    def by_name(self) -> dict[str, list[Opening]]:
        """The openings of each name, in order."""
        found: dict[str, list[Opening]] = {}
        for opening in sorted(self._by_subscription.values(), key=lambda opening: opening.generation):
            found.setdefault(opening.name, []).append(opening)
        return found

    def stitched(self, name: str, acts: list[Act]) -> list[Act]:
        """What was delivered for a name, once for all who listened."""
        client = NAME_CLIENT + name
        shares = self._shares(acts)
        openings = self.by_name()[name]
        found: list[Act] = []
        for place, opening in enumerate(openings):
            following = openings[place + 1 :]
            own = shares.get(opening.subscription, [])
            later = {event.id for other in following for _, event, _ in shares.get(other.subscription, [])}
            upto = own[-1][0] if own else 0
            if following:
                # All deliveries to the client count, those for other subscriptions, too.
                again = min(
                    (number for number, event, _ in own if number > opening.confirmed and event.id in later),
                    default=NEVER,
                )
                asked = [
                    count
                    for at, count in opening.asked
                    if at <= following[0].opened_us + self._slack_us and count < again
                ]
                upto = max([opening.confirmed, *asked])
            found += [(client, event, client, at) for number, event, at in own if number <= upto]
        return found

    def _shares(self, acts: list[Act]) -> dict[str, list[tuple[int, Event, int]]]:
        """By subscription that opened a name: each delivery, with its number among all to its client."""
        counts: dict[str, int] = {}
        shares: dict[str, list[tuple[int, Event, int]]] = {}
        for client, event, subscription, at in acts:
            if subscription is None:
                continue
            counts[client] = counts.get(client, 0) + 1
            if subscription in self._by_subscription:
                shares.setdefault(subscription, []).append((counts[client], event, at))
        return shares

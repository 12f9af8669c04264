"""Represents durable subscriptions in a trace: each becomes one subscription of one client that never left.

Each client that attached has its own subscription in the trace, from the position where it
continued. In addition there is one for the name, of a client with that name. Its history is what
all of them received, one after the other:

- Events that a client received, with a confirmed acknowledgement: another delivery is a duplicate.
- Events that a client was about to acknowledge when the next one attached: they may be redelivered
  or not, so they count once.
- Events that a client received without acknowledging them are omitted. If they are not redelivered,
  they are missing.
- All events that the last client received.

So checkers need not know durable subscriptions: an anomaly of one client is an anomaly of all of
them together.
"""

from collections.abc import Sequence

import msgspec

from gapless.events import Event

__all__ = ["NAME_CLIENT", "Act", "Opening", "Openings"]

NAME_CLIENT = "name:"
"""The prefix of the client that stands for a durable subscription."""

NEVER = 1 << 62

Act = tuple[str, Event, str | None, int]
"""A client, an event, its subscription (None for a publication), and the time."""


class Opening(msgspec.Struct):
    """The attachment of one client to a durable subscription."""

    name: str
    subscription: str
    client: str
    generation: int
    position: int
    got: dict[str, int]
    opened_us: int
    confirmed: int = 0
    """The delivery up to which the client knows everything to be acknowledged."""
    asked: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """The times at which the client was about to acknowledge, each with the delivery up to which it did."""
    confirmed_each: set[int] = msgspec.field(default_factory=set)
    """The deliveries that the client knows to be acknowledged individually."""
    asked_each: dict[int, int] = msgspec.field(default_factory=dict)
    """The deliveries that the client was about to acknowledge individually, with the times."""
    given_back: set[int] = msgspec.field(default_factory=set)


class Openings:
    """The attachments to all durable subscriptions of one run."""

    def __init__(self, slack_us: int = 0) -> None:
        """`slack_us` is the possible difference between the clocks of two clients."""
        self._slack_us = slack_us
        self._by_subscription: dict[str, Opening] = {}

    def __bool__(self) -> bool:
        return bool(self._by_subscription)

    def opened(self, opening: Opening) -> None:
        """Record that a client attached to a durable subscription."""
        self._by_subscription[opening.subscription] = opening

    def acknowledged(self, subscription: str, count: int, now_us: int, *, is_stored: bool) -> None:
        """Record that a client is about to acknowledge everything up to a delivery, or knows that it is
        acknowledged.
        """
        opening = self._by_subscription.get(subscription)
        if opening is None:
            return
        if is_stored:
            opening.confirmed = max(opening.confirmed, count)
        else:
            opening.asked.append((now_us, count))

    def acknowledged_each(self, subscription: str, counts: Sequence[int], now_us: int, *, is_stored: bool) -> None:
        """Record acknowledgements of single deliveries."""
        opening = self._by_subscription.get(subscription)
        if opening is None:
            return
        if is_stored:
            opening.confirmed_each.update(counts)
        for count in counts:
            opening.asked_each.setdefault(count, now_us)

    def given_back(self, subscription: str, counts: Sequence[int]) -> None:
        """Record that the client returned deliveries with `nack`. Only a later delivery of their events counts."""
        opening = self._by_subscription.get(subscription)
        if opening is not None:
            opening.given_back.update(counts)

    def of(self, subscription: str) -> Opening | None:
        """Return the attachment of this subscription, or None."""
        return self._by_subscription.get(subscription)

    def by_name(self) -> dict[str, list[Opening]]:
        """Return the attachments of each durable subscription, in order."""
        found: dict[str, list[Opening]] = {}
        for opening in sorted(self._by_subscription.values(), key=lambda opening: opening.generation):
            found.setdefault(opening.name, []).append(opening)
        return found

    def stitched(self, name: str, acts: list[Act]) -> list[Act]:
        """Return what was delivered for a durable subscription, once for all clients."""
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
                # All deliveries to the client count, including those for other subscriptions.
                again = min(
                    (
                        number for number, event, _ in own
                        if number > opening.confirmed and number not in opening.given_back and event.id in later
                    ),
                    default=NEVER,
                )  # fmt: skip
                asked = [
                    count
                    for at, count in opening.asked
                    if at <= following[0].opened_us + self._slack_us and count < again
                ]
                upto = max([opening.confirmed, *asked])
            end_us = following[0].opened_us + self._slack_us if following else NEVER
            found += _finished(client, opening, own, upto, later, end_us)
        if any(opening.asked_each or opening.given_back for opening in openings):
            # The next client gets the open events after the acknowledged ones: timestamps are a causal order.
            found.sort(key=lambda act: (act[1].stamp, act[1].publisher, act[1].seq))
        return found

    def settled_before(self, name: str, acts: list[Act]) -> dict[str, list[Event]]:
        """Return, by subscription, the events that earlier clients acknowledged individually and that are not
        redelivered.
        """
        shares = self._shares(acts)
        found: dict[str, list[Event]] = {}
        settled: list[Event] = []
        for opening in self.by_name()[name]:
            own = shares.get(opening.subscription, [])
            came = {event.id for _, event, _ in own}
            found[opening.subscription] = [event for event in settled if event.id not in came]
            settled += [event for number, event, _ in own if number in opening.asked_each]
        return found

    def _shares(self, acts: list[Act]) -> dict[str, list[tuple[int, Event, int]]]:
        """Return the deliveries of each attached subscription, with their numbers among all deliveries to the
        client.
        """
        counts: dict[str, int] = {}
        shares: dict[str, list[tuple[int, Event, int]]] = {}
        for client, event, subscription, at in acts:
            if subscription is None:
                continue
            counts[client] = counts.get(client, 0) + 1
            if subscription in self._by_subscription:
                shares.setdefault(subscription, []).append((counts[client], event, at))
        return shares


def _finished(
    client: str, opening: Opening, own: list[tuple[int, Event, int]], upto: int, later: set[str], end_us: int
) -> list[Act]:
    """Return the deliveries of one attachment that count. A returned one counts only for the last client, which may
    still receive the event again.
    """
    counted = {event.id for number, event, _ in own if number not in opening.given_back}
    found: list[Act] = []
    for number, event, at in own:
        if number in opening.given_back:
            is_done = end_us == NEVER and event.id not in counted
            counted.add(event.id)
        else:
            is_asked = opening.asked_each.get(number, NEVER) <= end_us and event.id not in later
            is_done = number <= upto or number in opening.confirmed_each or is_asked
        if is_done:
            found.append((client, event, client, at))
    return found

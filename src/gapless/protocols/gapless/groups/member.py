"""A member of a group that shares a durable subscription: what it was dealt, and what of it is confirmed.

What it was dealt has numbers, of one *line* to one dealer. When it joins another, or the same again, it begins a new
line with what it holds: all that it was dealt and does not know to be confirmed. The application confirms what it was
delivered up to some place; what the dealer has given to another meanwhile is no part of that.

What comes late may be another's by now, and is not taken. Late is what the dealer gave out when the last that it had
heard was a report that is older by now than the time after which it gives an event to another.
"""

from collections import deque
from itertools import islice
from math import inf

from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.client_messages import HOLDS_MAX
from gapless.protocols.gapless.groups.dealer import Dealer
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["Item", "Member"]

REPORTS_MAX = 1_000
"""Of so many reports it is known when they were sent."""


class Item:
    """An event that it was dealt."""

    __slots__ = ("count", "key", "number", "stamp")

    def __init__(self, number: int, count: int, event: Event) -> None:
        self.number = number
        self.count = count
        """Which delivery to its client that was."""
        self.key = (event.publisher, event.seq)
        self.stamp = event.stamp


class Member:
    """One of them."""

    def __init__(self, call: Subscribe) -> None:
        self.call = call
        self.line = ""
        self.lines = 0
        """How many it had."""
        self.generation = 0
        self.client = ""
        """Who deals, and where that one is."""
        self.broker = ""
        self.dealer: Dealer | None = None
        """If it deals itself."""
        self.is_open = False
        """Whether it is known who deals."""
        self.was_open = False
        self.is_leaving = False
        self.asked = 0
        """When it asked who deals."""
        self.heard = 0
        """When the dealer was heard last."""
        self.is_dirty = False
        """Whether there is something to tell the dealer."""
        self._redeliver = 0
        """After so long the dealer gives to another what is not confirmed."""
        self._reports = 0
        self._sent: dict[int, int] = {}
        """When each report was sent, by its number in the line."""
        self._is_known = False
        """Whether the dealer knows what it holds."""
        self._hand: deque[Item] = deque()
        self._received = 0
        self._refused: list[int] = []
        """What it heard last to be another's."""
        self._latest = 0
        self._count = 0
        """The application is done with all up to this delivery."""
        self._asked = 0
        self._over = 0

    def renew(self) -> str:
        """Begin a new line; returns its name."""
        self.lines += 1
        self.line = f"{self.call.subscription}#{self.lines}"
        self.is_open = self._is_known = False
        return self.line

    def join(self, generation: int, client: str, broker: str, now: int, redeliver_us: int) -> None:
        """It is known who deals."""
        self._redeliver = redeliver_us
        self._reports = 0
        self._sent.clear()
        self.generation, self.client, self.broker = generation, client, broker
        self.is_open = self.was_open = self.is_dirty = True
        self.heard = now
        for number, item in enumerate(self._hand, 1):
            item.number = number
        self._received = len(self._hand)
        self._refused = []

    # ---- what comes ---------------------------------------------------------------------------------------

    def dealt(self, deal: GroupDeal, now: int) -> list[tuple[int, Event, bool]]:
        """What is new of what the dealer says; each of it has to be `take`n.

        The smallest story of what comes late: d deals p:1 to m, and all that d says hangs for five seconds. d hears no
        confirmation, takes p:1 back after three, and gives it to itself, which confirms it. Then p:1 comes to m, and
        only after that d's word that it is another's.
        """
        self._is_known = True
        if deal.after > self._received:
            return []
        fresh = [item for item in deal.items if item[0] > self._received]
        if fresh and now - self._sent.get(deal.since, -inf) >= self._redeliver:
            self.is_dirty = True
            return []
        if deal.upto > self._received:
            self._received = deal.upto
            self.is_dirty = True
        return fresh

    def take(self, number: int, count: int, event: Event) -> None:
        """This delivery to the client has that number of the line."""
        self._hand.append(Item(number, count, event))
        self._latest = max(self._latest, event.stamp)

    def refused(self, numbers: list[int]) -> list[int]:
        """What is another's by now: which deliveries these were."""
        self.is_dirty = self.is_dirty or numbers != self._refused
        self._refused = numbers
        found = [item.count for item in self._hand if item.number in numbers] if numbers else []
        if found:
            self._hand = deque(item for item in self._hand if item.number not in numbers)
        return found

    def kept(self, number: int) -> None:
        """What it was done with up to this number is confirmed."""
        while self._hand and self._hand[0].number <= number:
            self._hand.popleft()

    def confirm(self, count: int) -> None:
        """The application is done with all up to this delivery."""
        if count > self._count:
            self._count = count
            self.is_dirty = True

    def newly_over(self) -> int | None:
        """All up to this delivery is confirmed, or another's; None if that was told."""
        count = min(self._count, self._hand[0].count - 1) if self._hand else self._count
        if count <= self._over:
            return None
        self._over = count
        return count

    # ---- what is told -------------------------------------------------------------------------------------

    def asking(self) -> int | None:
        """Up to which delivery it is about to confirm all; None if that was told."""
        if self._count <= self._asked:
            return None
        self._asked = self._count
        return self._count

    def report(self, now: int) -> GroupReport:
        """What the dealer has to know."""
        self.is_dirty = False
        self._reports += 1
        self._sent[self._reports] = now
        forget_oldest(self._sent, REPORTS_MAX)
        open_items = (item.number - 1 for item in self._hand if item.count > self._count)
        confirmed = next(open_items, self._received)
        holds = None if self._is_known else [(*item.key, item.stamp) for item in islice(self._hand, HOLDS_MAX)]
        return GroupReport(
            self.generation, self.line, self._received, confirmed, holds, self._latest, self._refused,
            self.is_leaving, self._reports,
        )  # fmt: skip

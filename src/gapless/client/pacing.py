"""How far the application has come: the node is told, once a turn of the event loop, so that the network does not run
too far ahead. What was delivered counts as taken up to the oldest delivery that a subscription keeps back for its
application."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from gapless.protocol import Consumed

__all__ = ["Pacing"]


class _Subscription(Protocol):
    """Where deliveries wait to be taken."""

    @property
    def holds_back(self) -> bool: ...

    def oldest(self) -> int | None: ...


class Pacing:
    """Of one client; it `tells` if its protocol takes such news."""

    def __init__(
        self, subscriptions: Mapping[str, _Subscription], give: Callable[[Consumed], None], *, tells: bool
    ) -> None:
        self.deliveries = 0
        """How many there were."""
        self._subscriptions = subscriptions
        self._give = give
        self._tells = tells
        self._taken = 0
        self._is_telling = False

    def took(self) -> None:
        """The application took something, or wants no more."""
        if self._tells and not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._is_telling = False
        waiting = [subscription.oldest() for subscription in self._subscriptions.values() if subscription.holds_back]
        taken = min((number for number in waiting if number is not None), default=self.deliveries + 1) - 1
        if taken > self._taken:
            self._taken = taken
            self._give(Consumed(taken))

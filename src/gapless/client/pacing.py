"""Reports to the protocol node how many deliveries the application has taken, so that brokers can limit how far they
send ahead.

Reports are sent every `TELL_S`, and at once after a large share of the window. Deliveries count as taken up to the
oldest pending one of any subscription. All subscriptions and reads of a client share one window, so a subscription
whose events are not taken stops the others as soon as they fill the window. If that lasts for `PATIENCE_S`, the log
names it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from gapless.protocol import Consumed

__all__ = ["Pacing"]

PATIENCE_S = 5.0
TELL_S = 0.002
"""The interval between reports. A report for each event would cost as much as the event itself."""
TELL_SHARE = 8
"""The reciprocal of the fraction of the window after which a report is sent immediately."""

_logger = logging.getLogger("gapless.client")


class _Subscription(Protocol):
    filter: str

    @property
    def _holds_back(self) -> bool: ...

    def _oldest(self) -> int | None: ...


class Pacing:
    """Flow control of one client. Brokers send at most `window` deliveries ahead, or all if it is 0. `sends_reports`
    says whether the client's protocol uses reports.
    """

    def __init__(
        self,
        client: str,
        subscriptions: Mapping[str, _Subscription],
        give: Callable[[Consumed], None],
        *,
        sends_reports: bool,
        window: int,
    ) -> None:
        self._deliveries = 0
        self._client = client
        self._subscriptions = subscriptions
        self._give = give
        self._sends_reports = sends_reports
        self._window = window
        self._taken = 0
        self._is_reporting = False
        self._is_looking = False

    @property
    def deliveries(self) -> int:
        """Return the total number of deliveries so far."""
        return self._deliveries

    def delivered(self, count: int = 1) -> int:
        """Add `count` to the number of deliveries; return the number of the first of them."""
        first = self._deliveries + 1
        self._deliveries += count
        self.look_if_full()
        return first

    def took(self) -> None:
        """Schedule a report, because the application took events or closed a subscription."""
        if self._sends_reports and not self._is_reporting:
            self._is_reporting = True
            loop = asyncio.get_running_loop()
            if (self._deliveries - self._taken) * TELL_SHARE >= self._window:
                loop.call_soon(self._report)
            else:
                loop.call_later(TELL_S, self._report)

    def _report(self) -> None:
        self._is_reporting = False
        taken = self._first_waiting()[0] - 1
        if taken > self._taken:
            self._taken = taken
            self._give(Consumed(taken))

    def _first_waiting(self) -> tuple[int, str]:
        """Return the oldest pending delivery and its subscription. If none is pending, return the number of the next
        delivery.
        """
        first, name = self._deliveries + 1, ""
        for each, subscription in self._subscriptions.items():
            oldest = subscription._oldest() if subscription._holds_back else None
            if oldest is not None and oldest < first:
                first, name = oldest, each
        return first, name

    # ---- detection of a subscription that blocks others -------------------------------------------------

    def look_if_full(self) -> None:
        """Start watching the window if several subscriptions share it or a delivery is pending."""
        if self._window and self._deliveries - self._taken >= self._window and not self._is_looking:
            self._look_later()

    def _look_later(self) -> None:
        self._is_looking = True
        asyncio.get_running_loop().call_later(PATIENCE_S, self._look, self._deliveries, self._taken)

    def _look(self, deliveries: int, taken: int) -> None:
        """Log the subscription whose pending events delay another subscription."""
        self._is_looking = False
        name = self._first_waiting()[1]
        if self._deliveries - self._taken < self._window or not name:
            return
        if (self._deliveries, self._taken) != (deliveries, taken):
            self._look_later()
        elif len(self._subscriptions) > 1:
            waiting = self._deliveries - self._taken
            _logger.warning(
                f"{name} (to {self._subscriptions[name].filter!r}) blocks all other subscriptions and reads of "
                f"{self._client}: {waiting:,} of its events are pending, and its application takes none; take them, "
                "close it, or use a separate client for it",
                extra={"event": "subscription.blocks_others"},
            )

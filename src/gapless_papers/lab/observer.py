"""What is written down of a run while it goes on, when no trace of it is wanted.

A trace of a thousand subscribers that get a thousand events each is a million rows, and the certificate of their causal
past takes longer than the run. Most measures need less: when each event was published, how long each delivery of it
took, and how many there were.
"""

from array import array
from collections import Counter
from typing import Any

from gapless.events import Event
from gapless.trace import Recorder

__all__ = ["COURSE_US", "Observer"]

COURSE_US = 100_000


class Observer(Recorder):
    """A recorder that keeps times and counts; and everything else, too, where a trace is wanted."""

    def __init__(self, *, keeps_trace: bool, **what: Any) -> None:
        super().__init__(**what)
        self._keeps_trace = keeps_trace
        self.published_us: dict[tuple[str, int], int] = {}
        self.deliveries: dict[tuple[str, int], int] = {}
        """How often each event was delivered, to others than its publisher."""
        self.latencies_us = array("q")
        """From publication to delivery, of all deliveries to others than the publisher."""
        self.last_us = 0
        """When something was published or delivered last."""
        self.first_us: dict[str, int] = {}
        """When each subscription got its first event."""
        self.course: Counter[int] = Counter()
        """Deliveries, over time: how many within each span of `COURSE_US`, by its number."""
        self.own_deliveries = 0
        """Of events to their own publishers."""

    def publish(self, client: str, event: Event, now_us: int) -> None:
        """A client published an event of its own."""
        self.published_us[event.publisher, event.seq] = self.last_us = now_us
        if self._keeps_trace:
            super().publish(client, event, now_us)

    def deliver(
        self, client: str, event: Event, subscription_id: str, now_us: int, *, redelivered: bool = False
    ) -> None:
        """An event was handed to the client's application."""
        publisher = event.publisher
        self.last_us = now_us
        self.first_us.setdefault(subscription_id, now_us)
        self.course[now_us // COURSE_US] += 1
        if publisher != client:
            key = (publisher, event.seq)
            self.deliveries[key] = self.deliveries.get(key, 0) + 1
            self.latencies_us.append(now_us - self.published_us[key])
        else:
            self.own_deliveries += 1
        if self._keeps_trace:
            super().deliver(client, event, subscription_id, now_us, redelivered=redelivered)

    def first_event_latencies_ms(self) -> dict[str, float]:
        """From the call until the first event, of all subscriptions that got one."""
        return {name: (first - self._requests[name][2]) / 1000 for name, first in self.first_us.items()}

    def subscription_latencies_ms(self) -> dict[str, float | None]:
        """From the call until the subscription was active; None if it never was."""
        return {
            name: None if name not in self._active_us else (self._active_us[name] - requested) / 1000
            for name, (_, _, requested) in self._requests.items()
        }

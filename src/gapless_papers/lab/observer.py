"""Records the numbers of a run while it goes on, if no trace is wanted.

A trace of a thousand subscribers that get a thousand events each has a million rows, and certifying their causal past
takes longer than the run. Most measures need less: the time of each publication, the latency of each delivery, and the
number of deliveries.
"""

from array import array
from collections import Counter
from typing import Any

from gapless.events import Event
from gapless.trace import Recorder

__all__ = ["COURSE_US", "Observer"]

COURSE_US = 100_000


class Observer(Recorder):
    """A recorder that keeps times and counts, and also the full trace if it is wanted."""

    def __init__(self, *, keeps_trace: bool, **what: Any) -> None:
        super().__init__(**what)
        self._keeps_trace = keeps_trace
        self.published_us: dict[tuple[str, int], int] = {}
        self.deliveries: dict[tuple[str, int], int] = {}
        """The number of deliveries of each event to clients other than its publisher."""
        self.latencies_us = array("q")
        """The latencies of all deliveries to clients other than the publisher."""
        self.last_us = 0
        """The time of the last publication or delivery."""
        self.first_us: dict[str, int] = {}
        """The time of each subscription's first event."""
        self.course: Counter[int] = Counter()
        """Deliveries over time: the number within each span of `COURSE_US`, by the span's index."""
        self.own_deliveries = 0
        """The number of deliveries of events to their own publishers."""

    def publish(self, client: str, event: Event, now_us: int) -> None:
        """Record that a client published an event."""
        self.published_us[event.publisher, event.seq] = self.last_us = now_us
        if self._keeps_trace:
            super().publish(client, event, now_us)

    def deliver(
        self, client: str, event: Event, subscription_id: str, now_us: int, *, redelivered: bool = False
    ) -> None:
        """Record that an event was delivered to a client's application."""
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
        """Return the time from the call until the first event, for each subscription that got one."""
        return {name: (first - self._requests[name][2]) / 1000 for name, first in self.first_us.items()}

    def subscription_latencies_ms(self) -> dict[str, float | None]:
        """Return the time from each call until the subscription was active; None if it never was."""
        return {
            name: None if name not in self._active_us else (self._active_us[name] - requested) / 1000
            for name, (_, _, requested) in self._requests.items()
        }

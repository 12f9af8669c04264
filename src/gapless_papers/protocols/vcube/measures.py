"""The paper's measurements at a broker (section IV), kept if the option `measured` is set.

- Size of messages: the number of direct causes of each message received here.
- Delay: the time between the reception of a message and its delivery.
- False positives: messages received by a broker that no longer wants them.
"""

from collections import Counter

__all__ = ["Measures"]


class Measures:
    """The counts of one broker."""

    def __init__(self) -> None:
        self.published: Counter[int] = Counter()
        """This broker's messages, counted by their number of direct causes."""
        self.received: Counter[int] = Counter()
        """Received and wanted messages, counted by their number of direct causes."""
        self.delays_us: Counter[int] = Counter()
        """Deliveries, counted by their delay after reception."""
        self.false_positives: Counter[int] = Counter()
        """Unwanted messages, counted by their number of direct causes."""
        self._arrivals: dict[tuple[str, int, int], int] = {}

    def summary(self) -> dict[str, Counter[int]]:
        """Return all counts, for experiments."""
        return {
            "published": self.published,
            "received": self.received,
            "delays_us": self.delays_us,
            "false_positives": self.false_positives,
        }

    def arrive(self, topic: str, source: int, number: int, causes: int, now: int) -> None:
        """Record the arrival of a wanted message."""
        self.received[causes] += 1
        self._arrivals[topic, source, number] = now

    def deliver(self, topic: str, source: int, number: int, now: int) -> None:
        """Record the delivery of a message that has arrived."""
        self.delays_us[now - self._arrivals.pop((topic, source, number))] += 1

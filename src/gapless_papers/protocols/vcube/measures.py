"""What the paper measures at a broker (section IV), kept where the option `measured` asks for it.

- Size of messages: how many direct causes each message has that is received here.
- Delay: the time between the reception of a message and its delivery.
- False positives: messages received by a broker that does not want them any more.
"""

from collections import Counter

__all__ = ["Measures"]


class Measures:
    """The counts of one broker."""

    def __init__(self) -> None:
        self.published: Counter[int] = Counter()
        """How many messages of this broker have so many direct causes."""
        self.received: Counter[int] = Counter()
        """How many messages that it received and wanted have so many direct causes."""
        self.delays_us: Counter[int] = Counter()
        """How many messages were delivered so long after they were received."""
        self.false_positives: Counter[int] = Counter()
        """How many messages that it did not want have so many direct causes."""
        self._arrivals: dict[tuple[str, int, int], int] = {}

    def told(self) -> dict[str, Counter[int]]:
        """All counts, for who experiments."""
        return {
            "published": self.published,
            "received": self.received,
            "delays_us": self.delays_us,
            "false_positives": self.false_positives,
        }

    def arrive(self, topic: str, source: int, number: int, causes: int, now: int) -> None:
        """A message has come that is wanted."""
        self.received[causes] += 1
        self._arrivals[topic, source, number] = now

    def deliver(self, topic: str, source: int, number: int, now: int) -> None:
        """It is delivered."""
        self.delays_us[now - self._arrivals.pop((topic, source, number))] += 1

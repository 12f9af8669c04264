"""Computes how long a peer may be silent before it is suspected: the arithmetic of the failure
detector, without a clock.

A peer that is alive on an overloaded machine is silent for as long as it is not scheduled. So the
limit adapts:

- *The base limit* is `suspect_us`. It applies to a peer without a connection, which cannot answer.
- *The peer's history.* A peer that was silent for some time and then heard may be silent for twice
  as long. So a machine that slows down raises the limit before it is exceeded, and a wrong
  suspicion raises it afterwards. This memory decays by half in `HALF_LIFE_US`.
- *The peer's kernel.* If the other kernel still acknowledges data, its machine runs. The process
  may be starved or stopped: it gets `ACKNOWLEDGED` times the base limit, but not more.
- *Clients* get `CLIENT` times the limit of a broker, in both directions. Excluding a broker costs
  the network a handover, but a client that fails over costs several brokers work, and its machine
  is often the busiest.
- *The maximum* is `MOST` times the base limit.

Silence is counted only while this process was able to listen. The lag of its event loop does not
count.
"""

__all__ = ["ACKNOWLEDGED", "CLIENT", "MOST", "Silence"]

ACKNOWLEDGED = 3
CLIENT = 2
MOST = 8
MARGIN = 2
HALF_LIFE_US = 120_000_000


class Silence:
    """Measures the silence of one peer, in microseconds. `late` is the total lag of the event loop so far."""

    __slots__ = ("_late", "_longest", "_seen_at", "last_seen_at")

    def __init__(self, now: int, late: int = 0) -> None:
        self.last_seen_at = now
        self._late = late
        self._longest = 0.0
        """The longest silence that ended when the peer was heard, decaying over time."""
        self._seen_at = now

    def note(self, now: int, late: int) -> None:
        """Record that the peer was heard."""
        silence = self.so_far(now, late)
        self._longest = max(silence, self._remembered(now))
        self._seen_at = now
        self.begin(now, late)

    def begin(self, now: int, late: int) -> None:
        """Restart the measurement, for a new connection."""
        self.last_seen_at, self._late = now, late

    def so_far(self, now: int, late: int) -> int:
        """Return how long the peer has been silent while this process listened."""
        return max(0, now - self.last_seen_at - (late - self._late))

    def limit(self, now: int, suspect_us: int, *, is_connected: bool, is_acknowledged: bool, is_client: bool) -> int:
        """Return how long the peer may be silent now before it is suspected."""
        if not is_connected:
            return suspect_us
        least = suspect_us * (ACKNOWLEDGED if is_acknowledged else 1)
        longer = max(least, MARGIN * self._remembered(now)) * (CLIENT if is_client else 1)
        return int(min(longer, MOST * suspect_us))

    def _remembered(self, now: int) -> float:
        return float(self._longest * 0.5 ** ((now - self._seen_at) / HALF_LIFE_US))

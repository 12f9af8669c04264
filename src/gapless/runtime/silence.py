"""How long a peer may be silent before it is suspected: the arithmetic of the failure detector, without a clock.

A peer that is alive on an overloaded machine is silent for as long as the machine lets it wait. So the limit adapts:

- *The usual limit* is `suspect_us`. It applies to a peer without a connection: nobody answers there.
- *The peer's own past.* A peer that was silent for some time and then heard may be silent for twice as long. So a
  machine that gets slower raises the limit before it is exceeded, and a wrong suspicion raises it afterwards. What was
  seen is forgotten by half in `HALF_LIFE_US`.
- *The peer's kernel.* A connection on which the other kernel still acknowledges what we send leads to a machine that
  runs. Its process may be starved, or stopped: it gets `ACKNOWLEDGED` times the usual limit, and not for ever.
- *Clients* get `CLIENT` times the limit of a broker, in both directions. A broker that is excluded costs the network
  a handover, but a client that fails over costs several brokers work, and its machine is often the busiest.
- *Nobody* gets more than `MOST` times the usual limit.

Silence is counted in time in which this process was able to listen. The time by which its event loop was late is no
silence of a peer.
"""

__all__ = ["ACKNOWLEDGED", "CLIENT", "MOST", "Silence"]

ACKNOWLEDGED = 3
CLIENT = 2
MOST = 8
MARGIN = 2
HALF_LIFE_US = 120_000_000


class Silence:
    """Of one peer. Times are in microseconds; `late` is by how much our event loop was late in all, up to now."""

    __slots__ = ("_late", "_longest", "_seen_at", "heard_at")

    def __init__(self, now: int, late: int = 0) -> None:
        self.heard_at = now
        self._late = late
        self._longest = 0.0
        """The longest silence that ended well, as far as it is remembered."""
        self._seen_at = now

    def hear(self, now: int, late: int) -> None:
        """The peer gave a sign of life."""
        silence = self.so_far(now, late)
        self._longest = max(silence, self._remembered(now))
        self._seen_at = now
        self.begin(now, late)

    def begin(self, now: int, late: int) -> None:
        """Count from now on, as after a new connection, which says nothing about the time before."""
        self.heard_at, self._late = now, late

    def so_far(self, now: int, late: int) -> int:
        """How long the peer has been silent while we listened."""
        return max(0, now - self.heard_at - (late - self._late))

    def limit(self, now: int, suspect_us: int, *, is_connected: bool, is_acknowledged: bool, is_client: bool) -> int:
        """How long it may be silent now."""
        if not is_connected:
            return suspect_us
        least = suspect_us * (ACKNOWLEDGED if is_acknowledged else 1)
        longer = max(least, MARGIN * self._remembered(now)) * (CLIENT if is_client else 1)
        return int(min(longer, MOST * suspect_us))

    def _remembered(self, now: int) -> float:
        return float(self._longest * 0.5 ** ((now - self._seen_at) / HALF_LIFE_US))

"""The options of the protocol, each with the reason for its default."""

import msgspec

__all__ = ["RULES", "GaplessOptions"]

RULES = frozenset({"active-only", "void", "sort", "majority", "last-numbers", "fence", "synced", "union"})
"""Rules that tests can switch off to check that the checker detects it: only active subscriptions represent others; a
handover voids pending attempts; its members process the union of their logs, sorted by timestamp; an exclusion needs a
majority; advertisements contain the publisher's last number; a client that moves waits for a final position; brokers
wait for their disks."""


class GaplessOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options under `[protocol.options]` in a scenario, or of `--option` on the command line."""

    wave_ms: float = 200.0
    """The interval between the root's waves, which determine final positions. A longer interval makes brokers keep
    events longer; a shorter one costs more messages."""

    window: int = 10_000
    """The maximum number of publications that a broker releases for its clients before all brokers have processed them;
    further ones wait. Each KiB of them counts as one more. The window is smaller if `history_bytes` has no room for
    this many entries of each journal."""

    history_bytes: int = 64 * 1024 * 1024
    """The maximum size in bytes of the journals that a broker keeps in memory: its own, and the copies of others. The
    broker drops the oldest entries beyond that, but none that some broker has not processed."""

    history_s: float = 0.0
    """The age in seconds at which entries are dropped; 0 for no limit."""

    client_window: int = 8_000
    """The maximum number of unconfirmed publications of a client; further calls are rejected."""

    delivery_window: int = 4_096
    """The maximum number of deliveries that a broker sends before the application takes them; further ones wait at the
    broker."""

    lag_window: int = 16_384
    """The maximum number of deliveries that wait at the broker for a slow client; beyond that the client lags, and its
    events are read from history. Each KiB of them counts as one more, here and in `delivery_window`."""

    retry_ms: float = 100.0
    """How long a client waits for an answer before it asks the next broker. The time doubles after each round."""

    rebalance_ms: float = 5_000.0
    """How long a client that had to move waits before it asks whether its preferred broker is available again. The
    actual time is one to two times this, so that not all clients return at the same time."""

    proposal_ms: float = 500.0
    """How long a broker that promised to seal a journal waits before it continues the proposal itself."""

    return_ms: float = 5_000.0
    """How long restarted brokers wait for others after an outage of more than f brokers of an electorate. A broker that
    takes longer counts among the f that may be lost."""

    session_s: float = 60.0
    """How long a session waits for a disconnected client, in seconds. After that, its subscriptions end at the client's
    last position."""

    switched_off: tuple[str, ...] = ()
    """For tests only: the names of rules to switch off (see `RULES`)."""

    def __post_init__(self) -> None:
        for name in ("window", "client_window", "delivery_window", "lag_window", "history_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("wave_ms", "retry_ms", "rebalance_ms", "proposal_ms", "return_ms", "session_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0")
        if self.history_s < 0:
            raise ValueError("history_s must be at least 0")
        unknown = [name for name in self.switched_off if name not in RULES]
        if unknown:
            raise ValueError(
                f"there is no rule {unknown[0]!r} to switch off; the rules are: {', '.join(sorted(RULES))}"
            )

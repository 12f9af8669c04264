"""What is said of a network that runs: of the run, and of each subscription."""

import msgspec

from gapless.checkers.verdict import Anomaly, AnomalyKind
from gapless.trace import CutShortRow, RunRow

__all__ = ["RunReport", "SubscriptionReport"]


class RunReport(msgspec.Struct, frozen=True):
    """What is known of the run as a whole."""

    run: RunRow | None
    fault: str
    """Why these parts cannot be judged; empty if they can."""
    machines: list[str]
    events: int
    open_clients: list[CutShortRow]
    """Who has not closed its part, or has none. If it ended now, they would be cut short."""
    read: int
    """Records that came since the last report."""
    waiting: int
    """Those of all that wait for a publication."""
    held: int
    """Events that are held."""
    now_ms: float
    """The last moment of which something is known."""


class SubscriptionReport(msgspec.Struct, frozen=True):
    """What there is to say of one subscription."""

    subscription: str
    client: str
    filter: str
    exists: bool
    """Not if it was refused, or if all that is known of it is what somebody was delivered by mistake."""
    state: str
    """`asked`, `active` or `ended`."""
    deliveries: int
    accepted: int
    lag: int
    """Matching events that have left their publishers, are to come and have not."""
    behind_ms: float
    """How old the oldest of them is."""
    open: int
    """Events that it holds."""
    unjudged: int
    """Deliveries of events from too far back to be judged."""
    anomalies: list[Anomaly]
    """What is wrong if the run goes on."""
    at_rest: list[Anomaly]
    """What is wrong if nothing comes any more."""
    more: dict[AnomalyKind, int]
    """Anomalies that are counted and not told."""
    silence: str | None
    silence_at_rest: str | None

"""Reports on a run in progress: on the run, and on each subscription."""

import msgspec

from gapless.checkers.verdict import Anomaly, AnomalyKind
from gapless.trace import CutShortRow, RunRow

__all__ = ["RunReport", "SubscriptionReport"]


class RunReport(msgspec.Struct, frozen=True):
    """The report on the run as a whole."""

    run: RunRow | None
    fault: str
    """Why these parts cannot be checked; empty if they can."""
    machines: list[str]
    events: int
    open_clients: list[CutShortRow]
    """Clients that have not closed their part, or have none. If the run ended now, they would be
    incomplete.
    """
    read: int
    """Records read since the last report."""
    waiting: int
    """Records that wait for a publication."""
    held: int
    """Events that are held."""
    now_ms: float
    """The time of the latest known act."""


class SubscriptionReport(msgspec.Struct, frozen=True):
    """The report on one subscription."""

    subscription: str
    client: str
    filter: str
    exists: bool
    """False if it was rejected, or is known only from a wrong delivery."""
    state: str
    """`asked`, `active` or `ended`."""
    deliveries: int
    accepted: int
    lag: int
    """Matching events that have left their publishers and are not delivered yet."""
    behind_ms: float
    """The age of the oldest of them."""
    open: int
    """Events that it holds."""
    unjudged: int
    """Deliveries of events that are too old to be checked."""
    anomalies: list[Anomaly]
    """Anomalies if the run continues."""
    at_rest: list[Anomaly]
    """The anomalies if nothing more arrives."""
    more: dict[AnomalyKind, int]
    """Anomalies that are counted but not listed."""
    silence: str | None
    silence_at_rest: str | None

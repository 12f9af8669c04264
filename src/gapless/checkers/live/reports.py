"""Reports on a run in progress: on the run, and on each subscription."""

import msgspec

from gapless.checkers.verdict import Anomaly, AnomalyKind
from gapless.trace import CutShortRow, RunRow

__all__ = ["RunReport", "SubscriptionReport"]


class RunReport(msgspec.Struct, frozen=True):
    """The report on the run as a whole."""

    run: RunRow | None
    fault: str
    """Why the parts cannot be checked, or an empty string if they can."""
    machines: list[str]
    events: int
    open_clients: list[CutShortRow]
    """The clients that have not closed their part, or have none. If the run ended now, they would be incomplete."""
    read: int
    """The number of records read since the last report."""
    waiting: int
    """The number of records that wait for a publication."""
    held: int
    """The number of events that are kept."""
    now_ms: float
    """The time of the latest known action."""


class SubscriptionReport(msgspec.Struct, frozen=True):
    """The report on one subscription."""

    subscription: str
    client: str
    filter: str
    exists: bool
    """False if the subscription was rejected, or is known only from a wrong delivery."""
    state: str
    """The state: `asked`, `active` or `ended`."""
    deliveries: int
    accepted: int
    lag: int
    """The number of matching events that have left their publishers and are not delivered yet."""
    behind_ms: float
    """The age in milliseconds of the oldest of these events."""
    open: int
    """The number of events that the checker keeps for the subscription."""
    unjudged: int
    """The number of deliveries that were too old to be checked."""
    anomalies: list[Anomaly]
    """The anomalies so far, if the run continues."""
    at_rest: list[Anomaly]
    """The anomalies if the run ended now and nothing more arrived."""
    more: dict[AnomalyKind, int]
    """The number of anomalies that are counted but not listed, by kind."""
    silence: str | None
    silence_at_rest: str | None

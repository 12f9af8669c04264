"""Checks a run in progress: reads the trace parts of clients while they are being written, and reports the anomalies so
far.

| rule | module |
| --- | --- |
| the facts that a subscription receives | `facts` |
| the order in which clients' acts are processed, and the past of each event | `replay` |
| the events due to a subscription, and its anomalies | `subscription` |
| the reports on the run and on a subscription | `reports` |
| the verdict on all of them | `summary` |

It reports the same as `check` for the same records, except that it only counts the deliveries of
durable subscriptions. It holds only open events: those that are
still due, and those of the last minute, for new subscriptions. Deliveries of older events are
counted as not checked.
"""

from gapless.checkers.live.facts import Fact
from gapless.checkers.live.replay import Replay
from gapless.checkers.live.reports import RunReport, SubscriptionReport
from gapless.checkers.live.subscription import LiveChecker
from gapless.checkers.live.summary import sum_up

__all__ = ["Fact", "LiveChecker", "Replay", "RunReport", "SubscriptionReport", "sum_up"]

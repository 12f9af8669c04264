"""The judge of a run that is under way: hears what clients write down, as they write it, and says what is wrong so far.

| rule | file |
| --- | --- |
| what a subscription is told | `facts` |
| in which order clients' acts are taken, and what each event's past is | `replay` |
| what a subscription is still owed, and what went wrong | `subscription` |
| what is said of the run, and of a subscription | `reports` |
| the verdict on all of them | `summary` |

It says what `check` says of the same records put together, and holds only what is open: events that somebody may still
get, and those of the last minute, for subscriptions that begin. What comes from further back is counted as not judged.
"""

from gapless.checkers.live.facts import Fact
from gapless.checkers.live.replay import Replay
from gapless.checkers.live.reports import RunReport, SubscriptionReport
from gapless.checkers.live.subscription import LiveChecker
from gapless.checkers.live.summary import sum_up

__all__ = ["Fact", "LiveChecker", "Replay", "RunReport", "SubscriptionReport", "sum_up"]

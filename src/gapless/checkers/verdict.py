"""Represents the result of a check: a verdict for each run, and an anomaly for each problem.

The anomalies have names. Each wrong delivery and each missing event gets exactly one, the first
that fits in the order of `ANOMALY_KINDS`; the module that finds an anomaly defines it.

| kind | found by | meaning |
| --- | --- | --- |
| `spurious` | `acceptance` | delivered, but not asked for |
| `duplicate` | `acceptance` | delivered again for the same subscription |
| `fifo-inversion` | `gapless_fifo` | delivered after a later event of the same publisher |
| `gap` | `gapless_fifo` | missing, though a later event of the publisher came or the ending cut covers it |
| `causal-inversion` | `causal_order` | delivered after, or missing before, its own effect |
| `unobserved` | `progress` | due at the quiet end of a run, and never came |
| `late-start` | `late_start` | missing before the cut, though it was published when the subscription was active |
| `missing-effect` | `missing_effect` | missing before the cut, though a cause of it was delivered |
| `false-loss` | `reported_loss` | reported as lost, though it was delivered or never published |
| `false-past` | `certificate` | the table `pasts` contradicts the table `history` |

The guarantee that a run claims decides which anomalies count: see `JUDGED`. `false-past` is about
the trace, not about the protocol, and always counts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from gapless.protocol import Guarantee

__all__ = ["ANOMALY_KINDS", "JUDGED", "Anomaly", "AnomalyKind", "Status", "Verdict", "summarize"]

AnomalyKind: TypeAlias = Literal[
    "spurious", "duplicate", "fifo-inversion", "gap", "causal-inversion", "unobserved", "late-start", "missing-effect",
    "false-loss", "false-past",
]  # fmt: skip
Status: TypeAlias = Literal["valid", "invalid", "unknown"]

ANOMALY_KINDS: tuple[AnomalyKind, ...] = (
    "spurious", "duplicate", "fifo-inversion", "gap", "causal-inversion", "unobserved", "late-start", "missing-effect",
    "false-loss", "false-past",
)  # fmt: skip
"""All kinds of anomalies, in order of precedence."""

_ALWAYS: frozenset[AnomalyKind] = frozenset({"spurious", "duplicate", "false-loss", "false-past"})
_GFD: frozenset[AnomalyKind] = _ALWAYS | {"fifo-inversion", "gap", "unobserved"}

JUDGED: dict[Guarantee, frozenset[AnomalyKind]] = {
    "best-effort": _ALWAYS,
    "gfd": _GFD,
    "topic-causal": _GFD | {"causal-inversion"},
    "gcd": frozenset(ANOMALY_KINDS),
}
"""The anomalies that each guarantee forbids. `late-start` concerns subscriptions that are ready
with the whole cut.
"""


class Anomaly(msgspec.Struct, frozen=True):
    """One problem, with the smallest set of facts that proves it."""

    kind: AnomalyKind
    client: str
    """The subscriber; for `false-past`, the publisher of the event whose past is wrong."""
    subscription: str | None
    """The subscription; None for `false-past`."""
    event: str | None
    """The event that is wrong or missing; None for a subscription that never became active."""
    publisher: str | None
    """The publisher of the event; for `false-past`, the publisher that the wrong entry is about."""
    witness: tuple[str, ...]
    """Event ids, and steps written as `client#step`, that prove the anomaly."""
    message: str
    """The anomaly in one sentence."""


class Verdict(msgspec.Struct, frozen=True):
    """The result of checking one run."""

    run: str
    guarantee: Guarantee
    status: Status
    """The status: `invalid` with anomalies, `unknown` if nothing could be checked, and otherwise `valid`."""
    reason: str
    """The reason in one sentence."""
    anomalies: tuple[Anomaly, ...]
    events: int
    subscriptions: int
    deliveries: int
    cut_short: tuple[str, ...] = ()
    """One sentence for each client whose part of the trace is incomplete."""
    reported_losses: int = 0
    """The number of events that were reported as lost, counted for each subscription. They are not anomalies."""

    @property
    def counts(self) -> dict[AnomalyKind, int]:
        """Return the number of anomalies by kind, in order of precedence."""
        found = Counter(anomaly.kind for anomaly in self.anomalies)
        return {kind: found[kind] for kind in ANOMALY_KINDS if found[kind]}


def summarize(anomalies: Sequence[Anomaly]) -> str:
    """Return the anomalies in one sentence."""
    first = anomalies[0].message
    return first if len(anomalies) == 1 else f"{first} (and {len(anomalies) - 1} more)"

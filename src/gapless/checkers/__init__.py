"""The checker of traces: decides whether a run kept its guarantee, and names each anomaly with a proof."""

from gapless.checkers.incomplete_clients import incomplete_sentences
from gapless.checkers.judge import check, check_all
from gapless.checkers.verdict import ANOMALY_KINDS, JUDGED, Anomaly, AnomalyKind, Status, Verdict, summarize

__all__ = [
    "ANOMALY_KINDS", "JUDGED", "Anomaly", "AnomalyKind", "Status", "Verdict", "check", "check_all",
    "incomplete_sentences", "summarize",
]  # fmt: skip

"""The checkers of traces, which decide whether a run kept its guarantee, and prove each anomaly."""

from gapless.checkers.incomplete_clients import incomplete_sentences
from gapless.checkers.judge import check, check_all
from gapless.checkers.verdict import ANOMALY_KINDS, JUDGED, Anomaly, AnomalyKind, Status, Verdict, summarize

__all__ = [
    "ANOMALY_KINDS", "JUDGED", "Anomaly", "AnomalyKind", "Status", "Verdict", "check", "check_all",
    "incomplete_sentences", "summarize",
]  # fmt: skip

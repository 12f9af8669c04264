"""The judge of traces: says whether a run kept its guarantee, and if not, what is wrong, by name and with a proof."""

from gapless.checkers.incomplete_clients import incomplete_sentences
from gapless.checkers.judge import check, check_all
from gapless.checkers.verdict import ANOMALY_KINDS, JUDGED, Anomaly, AnomalyKind, Status, Verdict, summarize

__all__ = [
    "ANOMALY_KINDS", "JUDGED", "Anomaly", "AnomalyKind", "Status", "Verdict", "check", "check_all",
    "incomplete_sentences", "summarize",
]  # fmt: skip

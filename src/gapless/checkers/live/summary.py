"""Computes the verdict on a run in progress, or on one that has just ended, from the reports on its subscriptions."""

from collections.abc import Iterable

from gapless.checkers.incomplete_clients import IncompleteClient
from gapless.checkers.live.reports import RunReport, SubscriptionReport
from gapless.checkers.verdict import ANOMALY_KINDS, Anomaly, Status, Verdict

__all__ = ["sum_up"]


def sum_up(run: RunReport, reports: Iterable[SubscriptionReport], *, quiesced: bool) -> Verdict:
    """Return the verdict that `check` would give if the run ended now. `quiesced` means that nothing is in flight and
    all faults are healed."""
    assert run.run is not None
    cut_short = IncompleteClient(run.open_clients, run.run.run)
    found: list[Anomaly] = []
    silences: list[str] = []
    more = events = deliveries = accepted = subscriptions = 0
    for report in sorted(reports, key=lambda report: report.subscription):
        is_quiet = quiesced and report.client not in cut_short
        found += [each for each in (report.at_rest if is_quiet else report.anomalies) if _counts(each, cut_short)]
        more += sum(report.more.values())
        why = report.silence_at_rest if is_quiet else report.silence
        if why is not None:
            silences.append(why)
        accepted += report.accepted
        deliveries += report.deliveries
        subscriptions += report.exists
    found.sort(key=lambda each: ANOMALY_KINDS.index(each.kind))
    events = run.events
    status, reason = _status(found, more, accepted, silences)
    return Verdict(
        run=run.run.run, guarantee=run.run.guarantee, status=status, reason=reason + cut_short.reason(),
        anomalies=tuple(found), events=events, subscriptions=subscriptions, deliveries=deliveries,
        cut_short=cut_short.sentences(),
    )  # fmt: skip


def _counts(anomaly: Anomaly, cut_short: IncompleteClient) -> bool:
    """Return whether the anomaly is certain. It is not if the last publications of an incomplete client could explain
    it."""
    is_unpublished = anomaly.kind == "spurious" and anomaly.publisher is None and anomaly.event is not None
    return not (is_unpublished and str(anomaly.event).rpartition(":")[0] in cut_short)


def _status(found: list[Anomaly], more: int, accepted: int, silences: list[str]) -> tuple[Status, str]:
    if found or more:
        rest = len(found) + more - 1
        first = found[0].message if found else "there are more anomalies than reported"
        return "invalid", first if rest <= 0 else f"{first} (and {rest} more)"
    if not accepted:
        return "unknown", "nothing was delivered in the whole run"
    if silences:
        return "unknown", silences[0]
    return "valid", f"{accepted} deliveries are as promised"

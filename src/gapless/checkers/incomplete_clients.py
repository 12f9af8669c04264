"""Describes clients whose part of a trace is incomplete. The verdict says that their unknown actions were not checked.

A client is *cut short* if its part of a live trace does not state that it is complete: it was killed, ended without
`close()`, or is still running; or it wrote none, and others received its events. Its known actions are checked as
usual, with two exceptions:

- For its subscriptions the run is not quiet: their cuts are checked, but not completeness.
- Its events that no client received and that were not confirmed to it (`sent_seq`) may never have left it, so they are
  not due to any subscription.
"""

from collections.abc import Iterable, Sequence

from gapless.errors import TraceError
from gapless.trace import CutShortRow, EventRow, HistoryRow

__all__ = ["NAMED_MAX", "IncompleteClient", "incomplete_sentences"]

NAMED_MAX = 3
"""The maximum number of clients named in the reason of a verdict. The verdict itself lists all of them."""


class IncompleteClient:
    """The incomplete clients of one run."""

    def __init__(self, rows: Sequence[CutShortRow], run: str) -> None:
        self._rows = {row.client: row for row in sorted(rows, key=lambda row: row.client)}
        if len(self._rows) < len(rows):
            raise TraceError(f"run {run}: a client is listed twice as cut short")

    def __contains__(self, client: str) -> bool:
        return client in self._rows

    def is_due(self, event: EventRow) -> bool:
        """Return whether the event is known to have left its publisher."""
        row = self._rows.get(event.publisher)
        return row is None or event.seq <= row.sent_seq

    def check_deliveries(self, histories: dict[str, list[HistoryRow]], run: str) -> None:
        """Raise an error if a delivered event was not sent, because no run can leave such a trace."""
        if not self._rows:
            return
        for history in histories.values():
            for act in history:
                publisher, _, number = act.event_id.rpartition(":")
                row = self._rows.get(publisher) if act.kind == "deliver" else None
                if row is not None and number.isdecimal() and int(number) > row.sent_seq:
                    raise TraceError(
                        f"run {run}: {act.event_id} was delivered, though {publisher}, which is cut short, is said to "
                        f"have sent its events up to {row.sent_seq} only"
                    )

    def reason(self) -> str:
        """Return a sentence to be added to the reason of a verdict, or an empty string if all clients are complete."""
        clients = list(self._rows)
        if not clients:
            return ""
        left = len(clients) - NAMED_MAX
        return f"; cut short: {', '.join(clients[:NAMED_MAX])}" + (f" and {left} more" if left > 0 else "")

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each incomplete client."""
        return incomplete_sentences(self._rows.values())


def incomplete_sentences(rows: Iterable[CutShortRow]) -> tuple[str, ...]:
    """Return a sentence about each incomplete client."""
    return tuple(_sentence(row) for row in rows)


def _sentence(row: CutShortRow) -> str:
    if row.last_ms is None and row.forgotten:
        return f"{row.client} published events, but wrote no part: {row.forgotten} deliveries of its events are omitted"
    known = "no actions are known of" if row.last_ms is None else f"{row.acts} actions are known of"
    lost = f"; {row.forgotten} deliveries of its events are omitted" if row.forgotten else ""
    return f"{known} {row.client}, which is cut short: later actions are not checked{lost}"

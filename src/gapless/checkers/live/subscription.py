"""What one subscription is still owed, and what went wrong with it: the rules of the checkers, fact by fact.

*Open* is every event that matches and has not come. What is wrong with what came is known when it comes, and stays.
What is wrong with what is missing follows from what is open, so it is found anew each time somebody asks: a gap is none
any more when the event comes after all, and then it is a `fifo-inversion`.

So the state is what is open, a number or two for each publisher, and the anomalies. Of what came, the last `RECENT`
steps are remembered, to say when a duplicate came first. An event that stands before the start of its publisher is
dropped when nothing can make it due any more: it was published before the subscription was active, and none of its
causes can still come.

A witness through other clients' acts would need all of them: here it is cause and effect alone.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from gapless.checkers.acceptance import (
    AcceptedHistory,
    duplicate_delivery,
    flaw_of_event,
    flaw_of_time,
    spurious_delivery,
)
from gapless.checkers.gapless_fifo import Absences, fifo_inversion, gap_at
from gapless.checkers.late_start import find_late_starts
from gapless.checkers.live import facts
from gapless.checkers.live.replay import HORIZON_MS
from gapless.checkers.progress import find_unobserved, silence
from gapless.checkers.verdict import JUDGED, Anomaly, AnomalyKind
from gapless.trace import CutRow, EventRow, HistoryRow, SkippedRow, SubscriptionRow

__all__ = ["KEPT_MAX", "SubscriptionJudge", "SubscriptionReport"]

RECENT = 200
"""Deliveries whose steps are remembered."""
KEPT_MAX = 1_000
"""Anomalies of one subscription that are told; more are counted."""

_FORBIDDEN = {str(guarantee): kinds for guarantee, kinds in JUDGED.items()}


class SubscriptionReport(msgspec.Struct, frozen=True):
    """What there is to say of one subscription."""

    subscription: str
    client: str
    filter: str
    exists: bool
    """Not if it was refused, or if all that is known of it is what somebody was delivered by mistake."""
    state: str
    """`asked`, `active` or `ended`."""
    deliveries: int
    accepted: int
    lag: int
    """Matching events that have left their publishers, are to come and have not."""
    behind_ms: float
    """How old the oldest of them is."""
    open: int
    """Events that it holds."""
    unjudged: int
    """Deliveries of events from too far back to be judged."""
    anomalies: list[Anomaly]
    """What is wrong if the run goes on."""
    at_rest: list[Anomaly]
    """What is wrong if nothing comes any more."""
    more: dict[AnomalyKind, int]
    """Anomalies that are counted and not told."""
    silence: str | None
    silence_at_rest: str | None


@dataclass
class _Open:
    published_ms: float
    order: str | None
    past: dict[str, int]
    following: int | None = None
    """The lowest number above it that was accepted."""


@dataclass
class _Came:
    step: int
    is_accepted: bool


@dataclass
class _Covered:
    """The highest number of each publisher in the past of what was delivered, and by which events it grew."""

    reached: dict[str, int] = field(default_factory=dict)
    growth: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def merge(self, past: dict[str, int], event_id: str) -> None:
        for publisher, seq in past.items():
            if seq > self.reached.get(publisher, 0):
                self.reached[publisher] = seq
                self.growth.setdefault(publisher, []).append((seq, event_id))

    def first_effect(self, publisher: str, seq: int) -> str:
        return next(event_id for reached, event_id in self.growth[publisher] if reached >= seq)

    def revoke(self, event_id: str) -> None:
        """That event does not count: what only its past reached is not covered."""
        for publisher, grown in self.growth.items():
            if any(effect == event_id for _, effect in grown):
                self.growth[publisher] = [entry for entry in grown if entry[1] != event_id]
                self.reached[publisher] = max((seq for seq, _ in self.growth[publisher]), default=0)

    def forget(self, publisher: str, below: int) -> None:
        """Nobody will ask for numbers of the publisher below this one."""
        self.growth[publisher] = [entry for entry in self.growth[publisher] if entry[0] >= below]


class SubscriptionJudge:
    """One subscription, whatever its client."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: frozenset[AnomalyKind] = frozenset()
        self._history: AcceptedHistory | None = None
        self._open: dict[str, dict[int, _Open]] = {}
        self._recent: dict[tuple[str, int], _Came] = {}
        self._dropped: dict[str, int] = {}
        """By publisher, up to which number events before the start are not held any more."""
        self._seen: dict[str, int] = {}
        """By publisher, the last number that was due."""
        self._covered: dict[str, _Covered] = {}
        self._found: list[Anomaly] = []
        self._more: Counter[AnomalyKind] = Counter()
        self._deliveries = self._accepted = self._unjudged = 0
        self._now_ms = 0.0

    def take(self, fact: facts.Fact) -> None:
        """The next fact."""
        match fact:
            case facts.Requested():
                self._requested(fact)
            case facts.Stray():
                self._stray(fact)
            case _ if self._history is None:
                return
            case facts.Refused():
                self._history = None
                self._open.clear()
            case facts.Activated():
                if self._row.active_ms is None:
                    self._change(active_ms=self._at(fact.time_ms))
            case facts.Cut():
                row = CutRow(self._row.run, self._name, fact.publisher, fact.from_seq, None)
                self._history.cuts[fact.publisher] = row
                self._revoke(self._history, fact.publisher)
            case facts.Voided():
                self._history.cuts.clear()
            case facts.Skipped():
                self._skipped(fact)
            case facts.Due():
                self._due(fact)
            case facts.Delivered():
                self._delivered(fact)
            case facts.Ended():
                self._ended(fact)

    def report(self, skew_ms: float = 0.0) -> SubscriptionReport:
        """What there is to say; and let go of what cannot matter any more."""
        history = self._history
        if history is None:
            return SubscriptionReport(
                self._name, "", "", False, "asked", self._deliveries, 0, 0, 0.0, 0, 0, list(self._found),
                list(self._found), dict(self._more), None, None,
            )  # fmt: skip
        self._forget(skew_ms)
        missing = self._absences(history)
        waiting = missing.after_last if history.row.ended_ms is None else []
        oldest_ms = min((event.published_ms for event in waiting), default=self._now_ms)
        is_served = "gap" not in self._kinds or self._accepted > 0
        return SubscriptionReport(
            subscription=self._name,
            client=history.row.client,
            filter=history.row.filter,
            exists=True,
            state="ended"
            if history.row.ended_ms is not None
            else "asked"
            if history.row.active_ms is None
            else "active",
            deliveries=self._deliveries,
            accepted=self._accepted,
            lag=len(waiting),
            behind_ms=max(0.0, self._now_ms - oldest_ms),
            open=sum(map(len, self._open.values())),
            unjudged=self._unjudged,
            anomalies=[*self._found, *self._missing(history, missing, skew_ms, quiet=False)][:KEPT_MAX],
            at_rest=[*self._found, *self._missing(history, missing, skew_ms, quiet=True)][:KEPT_MAX],
            more=dict(self._more),
            silence=None if is_served else silence(history, missing, False),
            silence_at_rest=None if is_served else silence(history, missing, True),
        )

    # ---- facts ------------------------------------------------------------------------------------------------

    @property
    def _row(self) -> SubscriptionRow:
        assert self._history is not None
        return self._history.row

    def _at(self, time_ms: float) -> float:
        self._now_ms = max(self._now_ms, time_ms)
        return time_ms

    def _change(self, **what: float) -> None:
        assert self._history is not None
        self._history = msgspec.structs.replace(self._history, row=msgspec.structs.replace(self._row, **what))

    def _requested(self, fact: facts.Requested) -> None:
        row = SubscriptionRow(
            fact.run, self._name, fact.client, fact.filter, self._at(fact.time_ms), None, None, fact.ready
        )
        self._kinds = _FORBIDDEN[fact.guarantee]
        self._history = AcceptedHistory(row, {}, {}, [], [], set(), {}, {}, {})

    def _stray(self, fact: facts.Stray) -> None:
        owner = fact.owner
        flaw = "the subscription was never requested" if owner is None else f"the subscription belongs to {owner}"
        row = HistoryRow(fact.run, fact.client, fact.step, "deliver", fact.event_id, self._name, fact.time_ms)
        publisher, _, seq = fact.event_id.rpartition(":")
        event = EventRow(fact.run, fact.event_id, publisher, int(seq), "", 0.0) if fact.is_published else None
        self._deliveries += 1
        self._note(spurious_delivery(row, event, flaw))

    def _skipped(self, fact: facts.Skipped) -> None:
        assert self._history is not None
        for publisher, ranges in fact.lost.items():
            rows = self._history.skipped.setdefault(publisher, [])
            rows += [SkippedRow(self._row.run, self._name, publisher, first, last) for first, last in ranges]
            waiting = self._open.get(publisher, {})
            for seq in [seq for seq in waiting if self._history.is_skipped(self._event(publisher, seq))]:
                del waiting[seq]

    def _due(self, fact: facts.Due) -> None:
        assert self._history is not None
        self._at(fact.published_ms)
        self._seen[fact.publisher] = max(fact.seq, self._seen.get(fact.publisher, 0))
        if not self._history.is_skipped(self._event(fact.publisher, fact.seq)):
            opened = _Open(fact.published_ms, fact.order, fact.past)
            self._open.setdefault(fact.publisher, {})[fact.seq] = opened

    def _ended(self, fact: facts.Ended) -> None:
        assert self._history is not None
        self._change(ended_ms=self._at(fact.time_ms))
        for publisher, last in fact.last_seq.items():
            cut = self._history.cuts.get(publisher)
            if cut is not None:
                self._history.cuts[publisher] = msgspec.structs.replace(cut, to_seq=last)
                self._revoke(self._history, publisher)

    def _delivered(self, fact: facts.Delivered) -> None:
        history, publisher, seq = self._history, fact.publisher, fact.seq
        assert history is not None
        self._at(fact.time_ms)
        self._deliveries += 1
        opened = self._open.get(publisher, {}).get(seq)
        is_published = fact.known != "unpublished"
        event = self._event(publisher, seq, opened) if is_published else None
        row = HistoryRow(self._row.run, self._row.client, fact.step, "deliver", fact.event_id, self._name, fact.time_ms)
        flaw = flaw_of_event(event, fact.known != "no match", history)
        if flaw is None and opened is None:
            self._again(fact, row, event)
            return
        flaw = flaw or flaw_of_time(row, history.row)
        if opened is not None:
            del self._open[publisher][seq]
        if fact.known in ("match", "forgotten"):
            self._remember(publisher, seq, _Came(fact.step, flaw is None))
        if flaw is not None:
            self._note(spurious_delivery(row, event, flaw))
        elif event is not None and opened is not None:
            self._accept(history, event, opened)

    def _again(self, fact: facts.Delivered, row: HistoryRow, event: EventRow | None) -> None:
        """It matches and is not open: it came before, or it is from too far back."""
        first = self._recent.get((fact.publisher, fact.seq))
        if first is not None:
            self._note(duplicate_delivery(row, first.step, event))
        elif fact.seq <= self._dropped.get(fact.publisher, 0) or fact.publisher not in self._seen:
            self._unjudged += 1
        elif fact.known == "match":
            told = duplicate_delivery(row, fact.step, event)
            message = f"{row.client} was delivered {row.event_id} again for {self._name}, in step {fact.step}"
            witness = (row.event_id, f"{row.client}#{fact.step}")
            self._note(msgspec.structs.replace(told, message=message, witness=witness))
        else:
            self._unjudged += 1

    def _remember(self, publisher: str, seq: int, came: _Came) -> None:
        self._recent.setdefault((publisher, seq), came)
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]

    def _accept(self, history: AcceptedHistory, event: EventRow, opened: _Open) -> None:
        publisher, seq = event.publisher, event.seq
        self._accepted += 1
        highest = history.highest.get(publisher)
        is_late = highest is not None and seq < highest
        if is_late and "fifo-inversion" in self._kinds:
            assert highest is not None
            self._note(fifo_inversion(history, event, self._event(publisher, highest)))
        history.lowest[publisher] = min(seq, history.lowest.get(publisher, seq))
        history.highest[publisher] = max(seq, highest or seq)
        for number, other in self._open.get(publisher, {}).items():  # in the order of numbers, as they became due
            if number > seq:
                break
            other.following = seq if other.following is None else min(seq, other.following)
        if "causal-inversion" in self._kinds and opened.order is not None:
            covered = self._covered.setdefault(opened.order, _Covered())
            if covered.reached.get(publisher, 0) >= seq and not is_late:
                self._note(_inversion(history, event, covered.first_effect(publisher, seq), "before"))
            covered.merge(opened.past, event.event_id)

    def _revoke(self, history: AcceptedHistory, publisher: str) -> None:
        """A cut was told after what it excludes had come: that is spurious, and does not count."""
        came = [(seq, came) for (name, seq), came in self._recent.items() if name == publisher and came.is_accepted]
        for seq, each in came:
            event = self._event(publisher, seq)
            flaw = flaw_of_event(event, True, history)
            if flaw is None:
                continue
            each.is_accepted = False
            self._accepted -= 1
            about = [found for found in self._found if found.event == event.event_id]
            again = [int(found.witness[-1].rpartition("#")[2]) for found in about if found.kind == "duplicate"]
            dropped = ("fifo-inversion", "causal-inversion", "duplicate")
            self._found = [found for found in self._found if found not in about or found.kind not in dropped]
            for step in (each.step, *again):
                row = HistoryRow(self._row.run, self._row.client, step, "deliver", event.event_id, self._name, 0.0)
                self._note(spurious_delivery(row, event, flaw))
            for covered in self._covered.values():
                covered.revoke(event.event_id)
            left = [number for number, other in came if other.is_accepted]
            self._found = [found for found in self._found if not self._is_void(found, event.event_id, seq, left)]
            for bound, choose in ((history.lowest, min), (history.highest, max)):
                if left:
                    bound[publisher] = choose(left)
                else:
                    bound.pop(publisher, None)

    def _is_void(self, found: Anomaly, revoked: str, seq: int, left: list[int]) -> bool:
        """Whether an inversion was one only against an event that does not count."""
        if found.kind != "fifo-inversion" or found.witness[0] != revoked:
            return False
        late = int(str(found.event).rpartition(":")[2])
        return not any(late < number < seq for number in left)

    def _event(self, publisher: str, seq: int, opened: _Open | None = None) -> EventRow:
        published_ms = opened.published_ms if opened is not None else 0.0
        return EventRow(self._row.run, f"{publisher}:{seq}", publisher, seq, "", published_ms)

    def _note(self, anomaly: Anomaly) -> None:
        if len(self._found) < KEPT_MAX:
            self._found.append(anomaly)
        else:
            self._more[anomaly.kind] += 1

    # ---- what is missing --------------------------------------------------------------------------------------

    def _absences(self, history: AcceptedHistory) -> Absences:
        """What never came, by its place: see `gapless_fifo`."""
        found = Absences([], [], [])
        for publisher in sorted(self._open):
            start = history.start(publisher)
            last = max(history.highest.get(publisher, 0), history.end(publisher) or 0)
            for seq in sorted(self._open[publisher]):
                event = self._event(publisher, seq, self._open[publisher][seq])
                if start is None or seq < start:
                    found.before_start.append(event)
                elif seq <= last:
                    found.within.append(event)
                else:
                    found.after_last.append(event)
        return found

    def _missing(
        self, history: AcceptedHistory, missing: Absences, skew_ms: float, *, quiet: bool
    ) -> Iterator[Anomaly]:
        """As `judge` asks the rules."""
        if "gap" not in self._kinds:
            return
        for event in missing.within:
            following = self._open[event.publisher][event.seq].following
            yield gap_at(history, event, self._event(event.publisher, following) if following is not None else None)
        inverted = {anomaly.event: anomaly for anomaly in self._inverted(history, missing.after_last)}
        yield from inverted.values()
        if quiet:
            left = [event for event in missing.after_last if event.event_id not in inverted]
            yield from find_unobserved(history, left)
        if "late-start" not in self._kinds:
            return
        late = {anomaly.event: anomaly for anomaly in find_late_starts(history, missing.before_start, skew_ms, quiet)}
        yield from late.values()
        for event in missing.before_start:
            if event.event_id not in late and history.is_reached(event, quiet):
                cause = self._cause_of(history, self._open[event.publisher][event.seq])
                if cause is not None:
                    yield _missing_effect(history, event, cause)

    def _inverted(self, history: AcceptedHistory, missing: list[EventRow]) -> Iterator[Anomaly]:
        if "causal-inversion" not in self._kinds:
            return
        for event in missing:
            order = self._open[event.publisher][event.seq].order
            covered = self._covered.get(order) if order is not None else None
            if covered is not None and covered.reached.get(event.publisher, 0) >= event.seq:
                yield _inversion(history, event, covered.first_effect(event.publisher, event.seq), "without")

    def _cause_of(self, history: AcceptedHistory, opened: _Open) -> str | None:
        """Something in the history that is in the event's past."""
        for publisher, seq in history.lowest.items():
            if opened.past.get(publisher, 0) >= seq:
                return f"{publisher}:{seq}"
        return None

    # ---- what is forgotten ------------------------------------------------------------------------------------

    def _forget(self, skew_ms: float) -> None:
        history = self._history
        assert history is not None
        self._drop_before_start(history, skew_ms)
        if history.row.ended_ms is not None:
            self._drop_after_end(history)
        for covered in self._covered.values():
            for publisher in covered.growth:
                waiting = self._open.get(publisher)
                covered.forget(publisher, min(waiting) if waiting else self._seen.get(publisher, 0) + 1)
        for publisher in [publisher for publisher, waiting in self._open.items() if not waiting]:
            del self._open[publisher]

    def _drop_before_start(self, history: AcceptedHistory, skew_ms: float) -> None:
        row = history.row
        if row.active_ms is None:
            return
        may_come = {
            publisher: min(seqs)
            for publisher, waiting in self._open.items()
            if (seqs := [seq for seq in waiting if seq >= self._first(history, publisher)])
        }
        for publisher, waiting in self._open.items():
            start = history.start(publisher)
            for seq, opened in list(waiting.items()):
                if start is not None and seq >= start:
                    continue
                is_promised = row.ready == "whole" and opened.published_ms > row.active_ms + skew_ms
                is_old = opened.published_ms < self._now_ms - HORIZON_MS
                if is_promised or (publisher not in history.cuts and not is_old):
                    continue
                may_be_due = any(may_come.get(other, last + 1) <= last for other, last in opened.past.items())
                if self._cause_of(history, opened) is None and (is_old or not may_be_due):
                    del waiting[seq]
                    self._dropped[publisher] = max(seq, self._dropped.get(publisher, 0))

    def _first(self, history: AcceptedHistory, publisher: str) -> int:
        cut = history.cuts.get(publisher)
        return cut.from_seq if cut is not None else 0

    def _drop_after_end(self, history: AcceptedHistory) -> None:
        """What stands after an ending cut is not missing, and none of it is asked for again."""
        for publisher, waiting in self._open.items():
            end = history.end(publisher)
            covered = [each.reached.get(publisher, 0) for each in self._covered.values()]
            last = max([end if end is not None else 0, history.highest.get(publisher, 0), *covered])
            if end is None and publisher not in history.cuts:
                continue
            for seq in [seq for seq in waiting if seq > last]:
                del waiting[seq]


def _inversion(history: AcceptedHistory, cause: EventRow, effect: str, how: str) -> Anomaly:
    client, subscription = history.row.client, history.row.subscription_id
    return Anomaly(
        kind="causal-inversion",
        client=client,
        subscription=subscription,
        event=cause.event_id,
        publisher=cause.publisher,
        witness=(cause.event_id, effect),
        message=f"{client} was delivered {effect} {how} its cause {cause.event_id} for {subscription}",
    )


def _missing_effect(history: AcceptedHistory, missing: EventRow, cause: str) -> Anomaly:
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    start = history.start(publisher)
    where = f"nothing of {publisher} ever came" if start is None else f"it starts at {publisher}:{start} only"
    return Anomaly(
        kind="missing-effect",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=(cause, missing.event_id),
        message=f"{client} was delivered {cause} for {subscription}, but not its effect {missing.event_id}: {where}",
    )

"""A second checker, slow and simple: it searches the graph of actions and applies every definition literally.

It shares no code with the checker. For each pair of events it walks the graph whose nodes are the steps of clients and
whose edges lead to a client's next step and from a publication to its deliveries.
"""

from collections import Counter
from itertools import zip_longest

from gapless.filters import parse
from gapless.trace import CutRow, EventRow, HistoryRow, SubscriptionRow, Trace, attributes_from_text

Name = tuple[str, str, str | None, str | None, str | None]
"""The kind, client, subscription, event and publisher of an anomaly."""


class NaiveJudge:
    """Judges a trace of one run."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.run = trace.runs[0]
        self.events = {row.event_id: row for row in trace.events}
        self.attributes = {row.event_id: attributes_from_text(row.attributes) for row in trace.events}
        self.reach = self._reachability(set(self.events))
        self.found: Counter[Name] = Counter()
        self.silent = False
        self.cut_short = {row.client: row for row in trace.cut_short}

    def judge(self) -> tuple[str, Counter[Name]]:
        accepted = 0
        for subscription in self.trace.subscriptions:
            accepted += self._judge_subscription(subscription)
        self._strays()
        self._false_pasts()
        if self.found:
            return "invalid", self.found
        return ("unknown" if self.silent or not accepted else "valid"), self.found

    def before(self, first: str, second: str) -> bool:
        return second in self.reach.get(first, ())

    def _reachability(self, taking_part: set[str]) -> dict[str, set[str]]:
        acts = [row for row in self.trace.history if row.event_id in taking_part]
        acts.sort(key=lambda row: (row.client, row.step))
        following: dict[tuple[str, int], list[tuple[str, int]]] = {(row.client, row.step): [] for row in acts}
        published = {row.event_id: (row.client, row.step) for row in acts if row.kind == "publish"}
        for row, later in zip_longest(acts, acts[1:]):
            if row.kind == "deliver":
                following[published[row.event_id]].append((row.client, row.step))
            if later is not None and later.client == row.client:
                following[row.client, row.step].append((later.client, later.step))
        event_at = {node: event_id for event_id, node in published.items()}
        reach = {}
        for event_id, node in published.items():
            visited, stack = {node}, [node]
            while stack:
                for after in following[stack.pop()]:
                    if after not in visited:
                        visited.add(after)
                        stack.append(after)
            reach[event_id] = {event_at[place] for place in visited - {node} if place in event_at}
        return reach

    def _judge_subscription(self, subscription: SubscriptionRow) -> int:
        name = subscription.subscription_id
        cuts = {row.publisher: row for row in self.trace.cuts if row.subscription_id == name}
        rows = sorted(
            (row for row in self.trace.history if row.subscription_id == name and row.client == subscription.client),
            key=lambda row: row.step,
        )
        history = self._accept(subscription, cuts, rows)
        self._false_losses(subscription, {row.event_id for row in rows})
        if self.run.guarantee != "best-effort":
            came = {row.event_id for row in rows}
            self._orders(subscription, history)
            self._missing(subscription, cuts, history, came)
        return len(history)

    def _false_losses(self, subscription: SubscriptionRow, came: set[str]) -> None:
        reported = [row for row in self.trace.skipped if row.subscription_id == subscription.subscription_id]
        named = set()
        for row in reported:
            known = [event.seq for event in self.trace.events if event.publisher == row.publisher]
            numbers = range(row.from_seq, row.to_seq + 1)
            named |= {f"{row.publisher}:{seq}" for seq in numbers if seq in known and f"{row.publisher}:{seq}" in came}
            never = [seq for seq in numbers if known and seq not in known and row.publisher not in self.cut_short]
            if never:
                named.add(f"{row.publisher}:{never[0]}")
        for event in named:
            publisher = event.rpartition(":")[0]
            self.found["false-loss", subscription.client, subscription.subscription_id, event, publisher] += 1

    def _is_reported(self, subscription: SubscriptionRow, event: EventRow) -> bool:
        return any(
            row.subscription_id == subscription.subscription_id
            and row.publisher == event.publisher
            and row.from_seq <= event.seq <= row.to_seq
            for row in self.trace.skipped
        )

    def _name(self, kind: str, subscription: SubscriptionRow, event: str | None) -> None:
        publisher = self.events[event].publisher if event in self.events else None
        self.found[kind, subscription.client, subscription.subscription_id, event, publisher] += 1

    def _accept(self, subscription: SubscriptionRow, cuts: dict[str, CutRow], rows: list[HistoryRow]) -> list[EventRow]:
        history: list[EventRow] = []
        seen: set[str] = set()
        for row in rows:
            event = self.events.get(row.event_id)
            early = row.time_ms < subscription.requested_ms
            late = subscription.ended_ms is not None and row.time_ms > subscription.ended_ms
            if event is None or not self._matches(subscription, event) or _outside(event, cuts):
                self._name("spurious", subscription, row.event_id)
            elif row.event_id in seen:
                self._name("duplicate", subscription, row.event_id)
            elif early or late:
                self._name("spurious", subscription, row.event_id)
            else:
                history.append(event)
            seen.add(row.event_id)
        return history

    def _matches(self, subscription: SubscriptionRow, event: EventRow) -> bool:
        return parse(subscription.filter).matches(self.attributes[event.event_id])

    def _causally_before(self, first: EventRow, second: EventRow) -> bool:
        if first.publisher == second.publisher or self.run.guarantee == "gfd":
            return False
        if self.run.guarantee == "gcd":
            return self.before(first.event_id, second.event_id)
        topic = self.attributes[first.event_id].get("topic")
        of_topic = {event_id for event_id, values in self.attributes.items() if values.get("topic") == topic}
        if topic is None or second.event_id not in of_topic:
            return False
        return second.event_id in self._reachability(of_topic)[first.event_id]

    def _orders(self, subscription: SubscriptionRow, history: list[EventRow]) -> None:
        for place, late in enumerate(history):
            earlier = history[:place]
            if any(other.publisher == late.publisher and other.seq > late.seq for other in earlier):
                self._name("fifo-inversion", subscription, late.event_id)
            elif any(self._causally_before(late, other) for other in earlier):
                self._name("causal-inversion", subscription, late.event_id)

    def _missing(
        self, subscription: SubscriptionRow, cuts: dict[str, CutRow], history: list[EventRow], came: set[str]
    ) -> None:
        lives = subscription.ended_ms is None
        quiet = self._is_quiet(subscription)
        if quiet and lives and subscription.active_ms is None:
            self._name("unobserved", subscription, None)
        for event in self.trace.events:
            if event.event_id in came or not self._matches(subscription, event) or self._may_not_have_left(event):
                continue
            if self._is_reported(subscription, event):
                continue
            cut = cuts.get(event.publisher)
            numbers = [other.seq for other in history if other.publisher == event.publisher]
            start = cut.from_seq if cut else min(numbers, default=None)
            end = cut.to_seq if cut else None
            if start is None or event.seq < start:
                self._before_start(subscription, event, start, end, numbers, history)
            elif event.seq < max(numbers, default=0) or (end is not None and event.seq <= end):
                self._name("gap", subscription, event.event_id)
            elif any(self._causally_before(event, other) for other in history):
                self._name("causal-inversion", subscription, event.event_id)
            elif quiet and lives and subscription.active_ms is not None:
                self._name("unobserved", subscription, event.event_id)
            elif not quiet and lives and not history:
                self.silent = True

    def _before_start(
        self,
        subscription: SubscriptionRow,
        event: EventRow,
        start: int | None,
        end: int | None,
        numbers: list[int],
        history: list[EventRow],
    ) -> None:
        lives, active_ms = subscription.ended_ms is None, subscription.active_ms
        quiet = self._is_quiet(subscription)
        if start is None and not history and quiet and lives and active_ms is not None:
            self.silent = self.silent or event.published_ms > active_ms
        if end is not None:
            reached = event.seq <= end
        elif not lives:
            reached = bool(numbers)
        else:
            reached = start is not None or quiet
        if self.run.guarantee == "gcd" and reached and self._was_promised(subscription, event):
            self._name("late-start", subscription, event.event_id)
        elif self.run.guarantee == "gcd" and reached and any(self.before(c.event_id, event.event_id) for c in history):
            self._name("missing-effect", subscription, event.event_id)

    def _is_quiet(self, subscription: SubscriptionRow) -> bool:
        return self.run.quiesced and subscription.client not in self.cut_short

    def _may_not_have_left(self, event: EventRow) -> bool:
        return event.publisher in self.cut_short and event.seq > self.cut_short[event.publisher].sent_seq

    def _was_promised(self, subscription: SubscriptionRow, event: EventRow) -> bool:
        skew, active_ms, ended_ms = self.run.clock_skew_ms, subscription.active_ms, subscription.ended_ms
        returned = active_ms is not None and active_ms + skew < event.published_ms
        is_over = ended_ms is not None and ended_ms - skew <= event.published_ms
        return subscription.ready == "whole" and returned and not is_over

    def _strays(self) -> None:
        owners = {row.subscription_id: row.client for row in self.trace.subscriptions}
        for row in self.trace.history:
            if row.subscription_id is not None and owners.get(row.subscription_id) != row.client:
                publisher = self.events[row.event_id].publisher if row.event_id in self.events else None
                self.found["spurious", row.client, row.subscription_id, row.event_id, publisher] += 1

    def _false_pasts(self) -> None:
        claims = {(row.event_id, row.publisher): row.seq for row in self.trace.pasts}
        publishers = {row.publisher for row in self.trace.events} | {row.publisher for row in self.trace.pasts}
        for event in self.trace.events:
            for publisher in publishers:
                claim = claims.get((event.event_id, publisher))
                truth = self._past(event, publisher)
                before = max((other for other in self.trace.events if _precedes(other, event)), key=_seq, default=None)
                known = self._past(before, publisher) if before else 0
                wrong = claim is not None if publisher == event.publisher else (claim or known) != truth
                if wrong or claim == 0:
                    self.found["false-past", event.publisher, None, event.event_id, publisher] += 1

    def _past(self, event: EventRow, publisher: str) -> int:
        if publisher == event.publisher:
            return 0
        known = [other.seq for other in self.trace.events if other.publisher == publisher
                 and self.before(other.event_id, event.event_id)]  # fmt: skip
        return max(known, default=0)


def _precedes(first: EventRow, second: EventRow) -> bool:
    return first.publisher == second.publisher and first.seq < second.seq


def _seq(event: EventRow) -> int:
    return event.seq


def _outside(event: EventRow, cuts: dict[str, CutRow]) -> bool:
    cut = cuts.get(event.publisher)
    return cut is not None and (event.seq < cut.from_seq or (cut.to_seq is not None and event.seq > cut.to_seq))

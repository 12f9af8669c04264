"""Records a run as it happens, and returns the trace at the end.

It is on the hot path of the simulator, so recording an act is one `append`. Everything that can
wait (ids, JSON, milliseconds, steps, the certificate) is computed in `finish`.

One recorder records one run. Each publication must be recorded before any of its deliveries.
"""

from collections.abc import Sequence
from itertools import count, pairwise

import msgspec

from gapless.events import Event
from gapless.positions import Position
from gapless.protocol import NEWEST, Guarantee, Ready
from gapless.trace.attributes_text import attributes_to_text
from gapless.trace.certificate import KnownPasts
from gapless.trace.groups import GROUP_CLIENT, Groups
from gapless.trace.names import NAME_CLIENT, Act, Opening, Openings
from gapless.trace.rows import (
    CutRow,
    EventRow,
    HistoryRow,
    MessageRow,
    PastRow,
    RunRow,
    SkippedRow,
    SubscriptionRow,
    Trace,
)
from gapless.trace.stamps import Stamps

__all__ = ["Recorder"]


STITCHED = (NAME_CLIENT, GROUP_CLIENT)
"""The prefixes of subscriptions that are merged from the subscriptions of several clients."""


class Recorder:
    """Records the actions in one run. Times are integer microseconds of the run's clock."""

    def __init__(
        self,
        *,
        run: str,
        protocol: str,
        guarantee: Guarantee,
        scenario: str,
        seed: int,
        brokers: int,
        f: int,
        options: str = "{}",
        with_messages: bool = False,
        slack_us: int = 0,
    ) -> None:
        """`slack_us` is the possible difference between the clocks of two clients."""
        self._run = RunRow(run, protocol, guarantee, scenario, seed, brokers, f, False, options)
        self._with_messages = with_messages
        self._requests: dict[str, tuple[str, str, int]] = {}
        self._ready: dict[str, Ready] = {}
        self._active_us: dict[str, int] = {}
        self._ends: dict[str, tuple[dict[str, int], int]] = {}
        self._cuts: dict[tuple[str, str], int] = {}
        self._complete: set[str] = set()
        self._gaps: list[tuple[str, tuple[int, int]]] = []
        self._skipped: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._spans: dict[str, tuple[Position, Position | None]] = {}
        self.confirmations: dict[str, list[tuple[int, int]]] = {}
        """For each publisher, the times at which it learned that everything up to a number is confirmed."""
        self._acts: list[tuple[str, Event, str | None, int]] = []
        self._known: list[tuple[str, int, int]] = []
        self._openings = Openings(slack_us)
        self._groups = Groups(slack_us)
        self._moved: set[str] = set()
        self._letters: dict[str, list[tuple[str, int]]] = {}
        """Events that became dead letters, by subscription."""
        self._messages: list[tuple[str, str, str, int, int | None, int]] = []

    def subscribe(
        self,
        client: str,
        subscription_id: str,
        filter_text: str,
        now_us: int,
        *,
        ready: Ready = "first",
        since: Position | None = None,
        until: Position | None = None,
    ) -> None:
        """Record that a client requested a subscription. `ready` is the protocol's meaning of active.

        `since` and `until` are positions, if it reads history (see `protocol.Subscribe`).
        """
        assert subscription_id not in self._requests, f"subscription {subscription_id} was requested twice"
        self._ready[subscription_id] = ready
        self._requests[subscription_id] = (client, filter_text, now_us)
        if since is not None:
            self._spans[subscription_id] = (since, until)

    def open_name(
        self, subscription_id: str, name: str, generation: int, position: int, got: dict[str, int], now_us: int
    ) -> None:
        """Record that the subscription is durable, and continues after a position and after the numbers in `got`, by
        publisher."""
        client = self._requests[subscription_id][0]
        self._spans[subscription_id] = (Position.at(position), None)
        self._openings.opened(Opening(name, subscription_id, client, generation, position, got, now_us))

    def move_name(self, name: str) -> None:
        """Record that a durable subscription is moved or deleted. Then each attachment is checked separately, because
        events between two of them can be missing or repeated.
        """
        self._moved.add(name)

    def acknowledged(self, subscription_id: str, count: int, now_us: int, *, is_stored: bool) -> None:
        """Record that everything up to a delivery is about to be acknowledged, or is known to be acknowledged."""
        self._openings.acknowledged(subscription_id, count, now_us, is_stored=is_stored)
        if is_stored:
            self._groups.kept(subscription_id, count, now_us)

    def acknowledged_each(self, subscription_id: str, counts: Sequence[int], now_us: int, *, is_stored: bool) -> None:
        """Record that these deliveries are about to be acknowledged, or are known to be acknowledged."""
        self._openings.acknowledged_each(subscription_id, counts, now_us, is_stored=is_stored)
        if is_stored:
            self._groups.kept_each(subscription_id, counts, now_us)

    def dead_letter(self, subscription_id: str, publisher: str, seq: int) -> None:
        """Record that an event of a durable subscription became a dead letter."""
        self._letters.setdefault(subscription_id, []).append((publisher, seq))

    def join_group(self, subscription_id: str, name: str, position: int, now_us: int) -> None:
        """Record that the client joined the group of a shared subscription, which is acknowledged up to this
        position.
        """
        self._groups.joined(subscription_id, name, position, now_us)

    def revoke(self, subscription_id: str, counts: Sequence[int]) -> None:
        """Record that these deliveries were reassigned to another member of the group."""
        self._groups.revoked(subscription_id, counts)
        self._openings.given_back(subscription_id, counts)

    def refuse(self, subscription_id: str) -> None:
        """Record that the protocol rejected the subscription."""
        assert subscription_id not in self._active_us, f"subscription {subscription_id} is already active"
        del self._requests[subscription_id]

    def activate(self, subscription_id: str, now_us: int) -> None:
        """Record that `subscribe()` returned. Only the first call counts, because its guarantee stays valid whatever is
        reset later.
        """
        assert subscription_id in self._requests, f"subscription {subscription_id} was never requested"
        self._active_us.setdefault(subscription_id, now_us)

    def fix_cut(self, subscription_id: str, publisher: str, from_seq: int) -> None:
        """Record that the publisher's matching events from `from_seq` on are due. The last call counts."""
        assert subscription_id in self._requests, f"subscription {subscription_id} was never requested"
        self._cuts[subscription_id, publisher] = from_seq

    def void_cuts(self, subscription_id: str) -> None:
        """Record that the cuts of the subscription are void. Nothing was delivered according to them."""
        for key in [key for key in self._cuts if key[0] == subscription_id]:
            del self._cuts[key]

    def publish(self, client: str, event: Event, now_us: int) -> None:
        """Record a client's publication, whose call began at `now_us`."""
        assert client == event.publisher, f"{client} cannot publish {event.id}"
        self._acts.append((client, event, None, now_us))

    def deliver(
        self, client: str, event: Event, subscription_id: str, now_us: int, *, redelivered: bool = False
    ) -> None:
        """Record that an event was passed to the client's application for one subscription; in a group, possibly as a
        redelivery.
        """
        if redelivered:
            self._groups.again.add(len(self._acts))
        self._acts.append((client, event, subscription_id, now_us))

    def skip(
        self, subscription_id: str, lost: dict[str, list[tuple[int, int]]], gap: tuple[int, int] | None = None
    ) -> None:
        """Record that these events, given as numbers by publisher, and everything between two positions, were reported
        as lost."""
        if gap is not None:
            self._gaps.append((subscription_id, gap))
        reported = self._skipped.setdefault(subscription_id, {})
        for publisher, ranges in lost.items():
            reported.setdefault(publisher, []).extend(ranges)

    def know(self, client: str, seq: int, now_us: int) -> None:
        """Record that an event of the client was published no earlier than this. `act` records the
        publication itself.
        """
        self._known.append((client, seq, now_us))

    def act(self, client: str, event: Event, subscription_id: str | None, now_us: int, *, redelivered: bool) -> None:
        """Record an action of a client: a delivery, or a publication if there is no subscription."""
        if redelivered:
            self._groups.again.add(len(self._acts))
        self._acts.append((client, event, subscription_id, now_us))

    def confirm(self, client: str, seq: int, now_us: int) -> None:
        """Record that the client learned that its events up to this number are confirmed."""
        self.confirmations.setdefault(client, []).append((now_us, seq))

    def end(self, subscription_id: str, last_seq: dict[str, int], now_us: int, *, is_complete: bool = False) -> None:
        """Record that the subscription has ended, with this ending cut. Publishers without a starting cut get no ending
        cut.

        A subscription to history `is_complete` if it received everything up to the position where
        it was to end.
        """
        assert subscription_id in self._requests, f"subscription {subscription_id} was never requested"
        self._ends[subscription_id] = (dict(last_seq), now_us)
        if is_complete:
            self._complete.add(subscription_id)

    def message(self, kind: str, sender: str, receiver: str, sent_us: int, received_us: int | None, size: int) -> None:
        """Record a message between nodes; `received_us` is None if it was lost."""
        if self._with_messages:
            self._messages.append((kind, sender, receiver, sent_us, received_us, size))

    def finish(self, *, quiesced: bool) -> Trace:
        """Return the trace of the run. `quiesced` means that it ended without messages in flight, with all faults
        healed.
        """
        run = msgspec.structs.replace(self._run, quiesced=quiesced)
        if self._groups:
            self._enter_groups()
        if self._openings:
            self._enter_names()
        events, history, pasts = self._played_back()
        self._cut_histories()
        return Trace(
            runs=[run],
            events=events,
            subscriptions=[self._subscription_row(name) for name in self._requests],
            cuts=[self._cut_row(*pair, from_seq) for pair, from_seq in sorted(self._cuts.items())],
            history=history,
            pasts=pasts,
            skipped=[
                SkippedRow(run.run, name, publisher, first, last)
                for name, lost in self._skipped.items()
                for publisher, ranges in lost.items()
                for first, last in ranges
            ],
            messages=[
                MessageRow(run.run, kind, sender, receiver, sent / 1000, _ms(received), size)
                for kind, sender, receiver, sent, received, size in self._messages
            ],
        )

    def _enter_names(self) -> None:
        """Add a subscription for each durable subscription (see `trace.names`)."""
        stitched = []
        for name, openings in self._openings.by_name().items():
            for subscription, events in self._openings.settled_before(name, self._acts).items():
                for event in events:
                    self.skip(subscription, {event.publisher: [(event.seq, event.seq)]})
            if name in self._moved:
                continue
            whole = NAME_CLIENT + name
            first, last = openings[0], openings[-1]
            _, text, asked_us = self._requests[first.subscription]
            self._requests[whole] = (whole, text, asked_us)
            self._ready[whole] = self._ready[first.subscription]
            self._spans[whole] = (Position.at(first.position), None)
            active = [self._active_us[each.subscription] for each in openings if each.subscription in self._active_us]
            if active:
                self._active_us[whole] = min(active)
            for opening in openings:
                self._gaps += [(whole, gap) for reported, gap in self._gaps if reported == opening.subscription]
                self.skip(whole, self._skipped.get(opening.subscription, {}))
                self._skip_letters(whole, opening.subscription)
            acts = self._openings.stitched(name, self._acts)
            if last.subscription in self._ends:
                seqs, ended_us = self._ends[last.subscription]
                self._ends[whole] = dict(seqs), max([ended_us, *(at for *_, at in acts)])
                for _, event, _, _ in acts:
                    seqs = self._ends[whole][0]
                    seqs[event.publisher] = max(seqs.get(event.publisher, 0), event.seq)
            stitched += acts
        self._set_apart_redeliveries()
        self._acts += stitched

    def _set_apart_redeliveries(self) -> None:
        """Add a separate subscription for each event that was redelivered to the same attachment after a `nack`."""
        given_back: set[tuple[str, str]] = set()
        counts: dict[str, int] = {}
        parts: dict[str, dict[str, set[int]]] = {}
        for place, (client, event, subscription, at) in enumerate(self._acts):
            if subscription is None:
                continue
            counts[client] = counts.get(client, 0) + 1
            opening = self._openings.of(subscription)
            if opening is None:
                continue
            if (subscription, event.id) in given_back:
                again = self._enter_again(subscription, place)
                self._acts[place] = (client, event, again, at)
                parts[again] = {event.publisher: {event.seq}}
            if counts[client] in opening.given_back:
                given_back.add((subscription, event.id))
        self._limit(parts)

    def _skip_letters(self, whole: str, subscription: str) -> None:
        """Count a dead letter as the delivery of its event, even if the event was never delivered."""
        for publisher, seq in self._letters.get(subscription, ()):
            self.skip(whole, {publisher: [(seq, seq)]})

    def _enter_groups(self) -> None:
        """Add a subscription for each group, and adjust those of its members (see `trace.groups`)."""
        given = self._groups.given(self._acts)
        whole_acts: list[Act] = []
        for name, members in self._groups.by_name().items():
            if name not in self._moved and not all(member in self._ends for member in members):
                self._enter_group(name, members)
                whole_acts += self._groups.whole(name, given.get(name, {}))
        first: dict[str, dict[str, set[int]]] = {member: {} for member in self._groups.members}
        for place in range(len(self._acts)):
            client, event, subscription, at = self._acts[place]
            if subscription is None or subscription not in first:
                continue
            if place in self._groups.again:
                subscription = self._enter_again(subscription, place)
                self._acts[place] = (client, event, subscription, at)
                first[subscription] = {}
            first[subscription].setdefault(event.publisher, set()).add(event.seq)
        self._limit(first)
        self._acts += whole_acts

    def _limit(self, parts: dict[str, dict[str, set[int]]]) -> None:
        """Limit each of these subscriptions to the given numbers, by publisher."""
        last = self._last_numbers()
        for subscription, got in parts.items():
            for publisher, seq in last.items():
                self._cuts[subscription, publisher] = 1
                rest = _numbers_between(sorted(got.get(publisher, ())), seq)
                self.skip(subscription, {publisher: rest})

    def _enter_group(self, name: str, members: list[str]) -> None:
        whole = GROUP_CLIENT + name
        _, text, asked_us = self._requests[members[0]]
        self._requests[whole] = (whole, text, asked_us)
        self._ready[whole] = self._ready[members[0]]
        self._spans[whole] = (Position.at(self._groups.members[members[0]].position), None)
        self._active_us[whole] = min(self._active_us[member] for member in members if member in self._active_us)
        for member in members:
            self._gaps += [(whole, gap) for reported, gap in self._gaps if reported == member]
            self.skip(whole, self._skipped.get(member, {}))
            self._skip_letters(whole, member)

    def _enter_again(self, subscription: str, place: int) -> str:
        """Add a subscription for one redelivered event, and return its id."""
        name = f"{subscription}/again-{place}"
        self._requests[name] = self._requests[subscription]
        self._ready[name] = self._ready[subscription]
        self._active_us[name] = self._active_us[subscription]
        if subscription in self._ends:
            self._ends[name] = ({}, self._ends[subscription][1])
        return name

    def _last_numbers(self) -> dict[str, int]:
        last: dict[str, int] = {}
        for _, event, _, _ in self._acts:
            last[event.publisher] = max(last.get(event.publisher, 0), event.seq)
        return last

    def _cut_histories(self) -> None:
        """Compute where subscriptions to history begin and end, from known timestamps and times.

        An event's timestamp is not smaller than its time of publication, and its publisher's later
        events have larger ones. The timestamp of an event that nobody received is unknown.
        """
        self._leave_out_delivered()
        if not (self._spans or self._gaps):
            return
        stamps = Stamps()
        for client, seq, now_us in self._known:
            stamps.published(client, seq, now_us)
        for client, event, subscription_id, now_us in self._acts:
            if subscription_id is not None:
                stamps.delivered(event)
            elif not self._known:
                stamps.published(client, event.seq, now_us)
        for name, gap in self._gaps:
            self.skip(name, {publisher: [stamps.between(publisher, *gap)] for publisher in stamps.publishers})
        self._leave_out_delivered()
        for name, (since, until) in self._spans.items():
            last = self._ends[name][0] if name in self._complete else {}
            for publisher in stamps.publishers:
                self._cuts[name, publisher] = self._start(name, publisher, stamps.first_after(publisher, since))
                if until is None or name not in self._complete:
                    continue
                if until != NEWEST:
                    last[publisher] = stamps.last_up_to(publisher, until)
                else:
                    safe = [seq for at, seq in self.confirmations.get(publisher, ()) if at < self._requests[name][2]]
                    last[publisher] = max([last.get(publisher, 0), *safe])

    def _leave_out_delivered(self) -> None:
        """Remove delivered events from reported losses, for three reasons. The content between two positions is
        unknown, so an event may have been delivered before. Another attachment or member may have received an event
        that was reported as lost. A member's events may be due again after a move.
        """
        vague = {name for name, _ in self._gaps} | {name for name in self._skipped if name.startswith(STITCHED)}
        vague |= {name for name, member in self._groups.members.items() if member.name in self._moved}
        for name in vague & self._skipped.keys():
            came = {(event.publisher, event.seq) for _, event, reported, _ in self._acts if reported == name}
            for publisher, ranges in self._skipped[name].items():
                ranges[:] = [
                    (seq, seq)
                    for seq in sorted({seq for first, last in ranges for seq in range(first, last + 1)})
                    if (publisher, seq) not in came
                ]

    def _start(self, name: str, publisher: str, first: int) -> int:
        opening = self._openings.of(name)
        return first if opening is None else max(first, opening.got.get(publisher, 0) + 1)

    def _subscription_row(self, name: str) -> SubscriptionRow:
        client, filter_text, requested_us = self._requests[name]
        active_us = self._active_us.get(name)
        ended_us = self._ends[name][1] if name in self._ends else None
        return SubscriptionRow(
            self._run.run, name, client, filter_text, requested_us / 1000, _ms(active_us), _ms(ended_us),
            self._ready[name],
        )  # fmt: skip

    def _cut_row(self, subscription_id: str, publisher: str, from_seq: int) -> CutRow:
        last_seq = self._ends[subscription_id][0] if subscription_id in self._ends else {}
        return CutRow(self._run.run, subscription_id, publisher, from_seq, last_seq.get(publisher))

    def _played_back(self) -> tuple[list[EventRow], list[HistoryRow], list[PastRow]]:
        run = self._run.run
        events: dict[tuple[str, int], EventRow] = {}
        history: list[HistoryRow] = []
        past_rows: list[PastRow] = []
        steps: dict[str, count[int]] = {}
        pasts = KnownPasts()
        for client, event, subscription_id, now_us in self._acts:
            publisher, seq = event.publisher, event.seq
            known = events.get((publisher, seq))
            event_id = known.event_id if known is not None else event.id
            if subscription_id is None:
                assert known is None, f"event {event_id} was published twice"
                events[publisher, seq] = EventRow(
                    run, event_id, publisher, seq, attributes_to_text(event.attributes), now_us / 1000
                )
                advanced = pasts.publish(client, seq)
                past_rows.extend([PastRow(run, event_id, other, last) for other, last in advanced.items()])
            elif known is not None:
                pasts.deliver(client, publisher, seq)
            if client not in steps:
                steps[client] = count()
            history.append(
                HistoryRow(
                    run,
                    client,
                    next(steps[client]),
                    "publish" if subscription_id is None else "deliver",
                    event_id,
                    subscription_id,
                    now_us / 1000,
                )
            )
        return list(events.values()), history, past_rows


def _ms(time_us: int | None) -> float | None:
    return None if time_us is None else time_us / 1000


def _numbers_between(numbers: list[int], last: int) -> list[tuple[int, int]]:
    """Return the ranges of numbers from 1 to the last that are not in `numbers`."""
    edges = [0, *numbers, last + 1]
    return [(low + 1, high - 1) for low, high in pairwise(edges) if high - low > 1]

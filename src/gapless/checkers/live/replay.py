"""Merges the actions of all clients while their parts grow, so that no event is delivered before it is published.

Parts are read at different moments, so a delivery may be known before its publication. Then the replay of its client
waits. A publication is written to disk before it is sent to a broker: if it is missing after all parts were read twice
more, it was never made. If its publisher has no part at all, deliveries of its events are omitted and counted. The
output is the facts for each subscription (`facts`); nothing is checked here.

Subscriptions learn of an event when it is known to have left its publisher: it was confirmed to the publisher, or
delivered to a client, or the publisher closed its part. Until then it is not due to any subscription, as in
`incomplete_clients`.

The past of an event is a vector, as in `happens_before`. Events are kept for `HORIZON_MS` for new subscriptions. Older
ones are not due to them; if one is delivered anyway, it is counted, but not checked.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from gapless.checkers.acceptance import Known
from gapless.checkers.happens_before import Knowledge
from gapless.checkers.live import facts
from gapless.checkers.live.reports import RunReport
from gapless.checkers.matching import parsed_filter
from gapless.errors import TraceError
from gapless.events import Attributes
from gapless.trace import CutShortRow, RunRow
from gapless.trace import part_records as records

__all__ = ["HORIZON_MS", "Line", "Replay"]

HORIZON_MS = 30_000.0
"""How long an event is kept for new subscriptions, and how long an ended subscription receives facts."""
KEPT_MAX = 5_000
"""Maximum number of events of one publisher that are kept for new subscriptions."""
PATIENCE = 2
"""The number of times that all parts are read again before a missing event counts as never published."""
LEFT_MAX = 100_000
"""Maximum number of former clients whose last event number is kept."""
MISSING_MAX = 10_000
"""Maximum number of publishers without a part."""

Line: TypeAlias = tuple[str, records.Record]
"""A part, and the next record in it."""

FactFor: TypeAlias = tuple[str, facts.Fact]
"""A subscription, and a fact for it."""


@dataclass
class _Held:
    attributes: Attributes
    due: facts.Due


@dataclass
class _Client:
    name: str
    queue: list[records.Record] = field(default_factory=list)
    stalled: int = 0
    steps: int = 0
    left_out: int = 0
    """The number of omitted deliveries to the client, whose publishers are unknown."""
    last_ms: float | None = None
    published: int = 0
    sent: int = 0
    reported: int = 0
    """The number up to which subscriptions were notified of the client's events."""
    forgotten: int = 0
    is_closed: bool = False
    window: dict[int, _Held] = field(default_factory=dict)
    floor: int = 0
    """The number up to which the client's events have been dropped."""
    known: dict[str, Knowledge[facts.Due]] = field(default_factory=dict)
    """The client's knowledge in each causal order."""


@dataclass
class _Route:
    client: str
    filter: str
    ended_ms: float | None = None
    is_durable: bool = False


class Replay:
    """Replays the records of one run. `feed` passes it the records written since the last call."""

    def __init__(self) -> None:
        self.run: RunRow | None = None
        self.fault = ""
        self._machines: set[str] = set()
        self._parts: dict[str, str] = {}
        """The client that wrote each part."""
        self._clients: dict[str, _Client] = {}
        self._left: dict[str, int] = {}
        self._missing: dict[str, tuple[int, int]] = {}
        """For publishers without a part, the last delivered number and the number of omitted deliveries."""
        self._unknown: dict[str, int] = {}
        """For each publisher without a part so far, the number of times that all parts were read since its first
        delivered event."""
        self._routes: dict[str, _Route] = {}
        self._events = 0
        self._now_ms = 0.0
        self._read = 0

    def feed(self, lines: Iterable[Line]) -> list[FactFor]:
        """Process the next records of each part in order. Return the resulting facts for subscriptions."""
        self._read = 0
        for part, record in lines:
            self._read += 1
            self._take(part, record)
        if self.fault:
            return []
        try:
            reported = list(self._advance())
        except TraceError as error:
            self.fault = str(error)
            return []
        self._forget()
        return reported

    def report(self) -> RunReport:
        """Return the report on the run so far."""
        clients = self._clients.values()
        run = self.run.run if self.run is not None else ""
        return RunReport(
            self.run,
            self.fault,
            sorted(self._machines),
            self._events,
            [
                CutShortRow(run, each.name, each.steps + each.left_out, each.last_ms, each.sent, each.forgotten)
                for each in clients
                if not each.is_closed
            ]
            + [CutShortRow(run, name, 0, None, sent, count) for name, (sent, count) in self._missing.items() if count],
            self._read,
            sum(len(each.queue) for each in clients),
            sum(len(each.window) for each in clients),
            self._now_ms,
        )

    # ---- ordering -------------------------------------------------------------------------------------------

    def _take(self, part: str, record: records.Record) -> None:
        if isinstance(record, records.Opened):
            self._machines.add(record.machine)
            self._parts[part] = record.client
            self._missing.pop(record.client, None)
            self._unknown.pop(record.client, None)
            self._clients[record.client] = _Client(record.client)
            if self.run is None:
                self.run = record.run
            elif record.run != self.run:
                self.fault = f"the parts are of two networks: {self.run.run!r} and {record.run.run!r}; keep them apart"
        elif part in self._parts:
            self._clients[self._parts[part]].queue.append(record)
            if isinstance(record, records.Delivered) and not self._is_known(record.publisher):
                self._unknown.setdefault(record.publisher, 0)
        else:
            self.fault = (
                f"{part} is not a part of a trace that this version of Gapless can read: it does not name its client"
            )

    def _advance(self) -> Iterator[FactFor]:
        waiting: dict[str, set[str]] = {}
        ready = [client for client in self._clients.values() if client.queue]
        is_last = False
        while True:
            while ready:
                yield from self._follow(ready.pop(), ready, waiting)
            if is_last:
                return
            is_last = True
            self._give_up_on_unknown()
            for client in self._clients.values():
                client.stalled = client.stalled + 1 if self._is_alone(client) else 0
                if client.stalled > PATIENCE or self._can_go_on(client):
                    ready.append(client)

    def _give_up_on_unknown(self) -> None:
        """Mark clients without a part as missing, after all parts were read again."""
        for publisher, times in list(self._unknown.items()):
            if times < PATIENCE:
                self._unknown[publisher] = times + 1
            else:
                del self._unknown[publisher]
                self._missing[publisher] = (0, 0)
        for known in (self._unknown, self._missing):
            while len(known) > MISSING_MAX:
                del known[next(iter(known))]

    def _is_known(self, publisher: str) -> bool:
        return publisher in self._clients or publisher in self._left or publisher in self._missing

    def _can_go_on(self, client: _Client) -> bool:
        head = client.queue[0] if client.queue else None
        return isinstance(head, records.Delivered) and self._is_decided(head)

    def _follow(self, client: _Client, ready: list[_Client], waiting: dict[str, set[str]]) -> Iterator[FactFor]:
        done = 0
        for record in client.queue:
            if isinstance(record, records.Delivered):
                if client.stalled <= PATIENCE and not self._is_decided(record):
                    waiting.setdefault(record.publisher, set()).add(client.name)
                    break
                yield from self._delivered(client, record)
            else:
                yield from self._apply_report(client, record)
            done += 1
            client.stalled = 0
            if isinstance(record, records.Published | records.Closed):
                ready += [self._clients[name] for name in waiting.pop(client.name, ()) if name != client.name]
        del client.queue[:done]

    def _is_alone(self, client: _Client) -> bool:
        """Return whether the client waits for a publication and no other waiting client can still provide it."""
        head = client.queue[0] if client.queue else None
        if not isinstance(head, records.Delivered):
            return False
        publisher = self._clients.get(head.publisher)
        return publisher is None or not publisher.queue

    def _is_decided(self, record: records.Delivered) -> bool:
        """Return whether it is known if the delivered event was ever published."""
        publisher = self._clients.get(record.publisher)
        if publisher is None:
            return record.publisher in self._left or record.publisher in self._missing
        return record.seq <= publisher.published or publisher.is_closed

    # ---- processing -----------------------------------------------------------------------------------------

    def _apply_report(self, client: _Client, record: records.Record) -> Iterator[FactFor]:
        match record:
            case records.Published():
                self._pass(client, record.time_us)
                self._published(client, record)
            case records.Confirmed():
                client.sent = max(client.sent, record.seq)
                yield from self._release(client)
            case records.Closed():
                client.is_closed = True
                client.sent = max(client.sent, client.published)
                yield from self._release(client)
            case records.Subscribed():
                yield from self._subscribed(client, record)
            case records.Refused():
                self._routes.pop(record.subscription, None)
                yield record.subscription, facts.Refused()
            case records.Activated():
                yield record.subscription, facts.Activated(self._pass(client, record.time_us))
            case records.NameOpened() | records.GroupJoined():
                if record.subscription in self._routes:
                    self._routes[record.subscription].is_durable = True
                yield record.subscription, facts.Attached()
            case records.CutFixed():
                yield record.subscription, facts.Cut(record.publisher, record.from_seq)
            case records.CutsVoided():
                yield record.subscription, facts.Voided()
            case records.Skipped():
                yield record.subscription, facts.Skipped(record.lost)
            case records.Ended():
                time_ms = self._pass(client, record.time_us)
                if record.subscription in self._routes:
                    self._routes[record.subscription].ended_ms = time_ms
                yield record.subscription, facts.Ended(record.last_seq, time_ms)

    def _pass(self, client: _Client, time_us: int) -> float:
        client.last_ms = time_us / 1000
        self._now_ms = max(self._now_ms, client.last_ms)
        return client.last_ms

    def _subscribed(self, client: _Client, record: records.Subscribed) -> Iterator[FactFor]:
        assert self.run is not None
        time_ms = self._pass(client, record.time_us)
        test = _tested(record.filter)
        self._routes[record.subscription] = _Route(client.name, record.filter)
        yield (
            record.subscription,
            facts.Requested(self.run.run, self.run.guarantee, client.name, record.filter, record.ready, time_ms),
        )
        for publisher in self._clients.values():
            for seq, held in publisher.window.items():
                if seq <= publisher.reported and test(held.attributes):
                    yield record.subscription, held.due

    def _published(self, client: _Client, record: records.Published) -> None:
        self._events += 1
        client.steps += 1
        if record.seq <= client.published:
            raise TraceError(f"client {client.name} publishes {record.seq} out of order")
        client.published = record.seq
        order = self._order_of(record.attributes)
        past: dict[str, int] = {}
        if order is not None:
            known = self._known(client, order)
            known.publish()
            past = dict(known.past)
        due = facts.Due(client.name, record.seq, record.began_us / 1000, order, past)
        client.window[record.seq] = _Held(record.attributes, due)

    def _known(self, client: _Client, order: str) -> Knowledge[facts.Due]:
        return client.known.setdefault(order, Knowledge(client.name))

    def _order_of(self, attributes: Attributes) -> str | None:
        """Return the causal order to which an event with these attributes belongs."""
        guarantee = self.run.guarantee if self.run is not None else ""
        if guarantee == "gcd":
            return ""
        topic = attributes.get("topic") if guarantee == "topic-causal" else None
        return topic if isinstance(topic, str) else None

    def _delivered(self, client: _Client, record: records.Delivered) -> Iterator[FactFor]:
        time_ms = self._pass(client, record.time_us)
        if record.publisher not in self._clients and record.publisher not in self._left:
            self._leave_out(record)
            client.left_out += 1
            return
        step, client.steps = client.steps, client.steps + 1
        publisher, seq = self._clients.get(record.publisher), record.seq
        held, known = self._looked_up(record)
        if publisher is not None:
            publisher.sent = max(publisher.sent, seq)
            yield from self._release(publisher)
        if held is not None and held.due.order is not None and record.publisher != client.name:
            self._known(client, held.due.order).deliver(held.due)
        event_id = f"{record.publisher}:{seq}"
        route = self._routes.get(record.subscription)
        if route is None or route.client != client.name:
            run = self.run.run if self.run is not None else ""
            owner = route.client if route is not None else None
            is_published = known != "unpublished"
            yield (
                record.subscription,
                facts.Stray(run, event_id, is_published, client.name, step, time_ms, owner),
            )
            return
        if held is not None and not _tested(route.filter)(held.attributes):
            known = "no match"
        yield record.subscription, facts.Delivered(event_id, record.publisher, seq, step, time_ms, known)

    def _leave_out(self, record: records.Delivered) -> None:
        sent, count = self._missing.get(record.publisher, (0, 0))
        self._missing[record.publisher] = (max(sent, record.seq), count + 1)

    def _looked_up(self, record: records.Delivered) -> tuple[_Held | None, Known]:
        publisher = self._clients.get(record.publisher)
        if publisher is None:
            return None, "forgotten" if record.seq <= self._left.get(record.publisher, 0) else "unpublished"
        held = publisher.window.get(record.seq)
        if held is not None:
            return held, "match"
        return None, "forgotten" if 0 < record.seq <= publisher.floor else "unpublished"

    def _release(self, client: _Client) -> Iterator[FactFor]:
        """Yield facts about the client's events that are now known to have left it."""
        upto = min(client.sent, client.published)
        for seq in range(client.reported + 1, upto + 1):
            held = client.window.get(seq)
            if held is None:
                continue
            answers: dict[str, bool] = {}
            for name, route in self._routes.items():
                is_over = route.ended_ms is not None and held.due.published_ms > route.ended_ms + HORIZON_MS
                if is_over or route.is_durable:
                    continue
                answer = answers.get(route.filter)
                if answer is None:
                    answer = answers[route.filter] = _tested(route.filter)(held.attributes)
                if answer:
                    yield name, held.due
        client.reported = max(client.reported, upto)

    # ---- forgetting -----------------------------------------------------------------------------------------

    def _forget(self) -> None:
        horizon_ms = self._now_ms - HORIZON_MS
        for client in list(self._clients.values()):
            old: list[int] = []
            for seq, held in client.window.items():
                is_many = len(client.window) - len(old) > KEPT_MAX
                if seq > client.reported or (held.due.published_ms >= horizon_ms and not is_many):
                    break
                old.append(seq)
            for seq in old:
                del client.window[seq]
                client.floor = seq
            if client.is_closed and not client.window and not client.queue:
                del self._clients[client.name]
                self._left[client.name] = client.published
                if len(self._left) > LEFT_MAX:
                    del self._left[next(iter(self._left))]
        for name, route in list(self._routes.items()):
            if route.ended_ms is not None and route.ended_ms < horizon_ms:
                del self._routes[name]


@lru_cache(maxsize=65_536)
def _tested(text: str) -> Callable[[Attributes], bool]:
    return parsed_filter(text).test

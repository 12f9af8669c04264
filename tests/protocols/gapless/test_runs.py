"""What one client published in one message is one thing on its whole way: its length costs no further steps."""

import sys
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeAlias

import pytest

from gapless.events import Event
from gapless.filters import parse
from gapless.overlay import chain
from gapless.protocol import (
    Advertise,
    BrokerPlace,
    ClientPlace,
    Consumed,
    DeliverMany,
    PublishMany,
    Received,
    Send,
    Start,
    Subscribe,
    TimerFired,
)
from gapless.protocols.gapless.client_messages import Attach, ClientUnadvertise
from gapless.protocols.gapless.clients.dispatch import dispatch
from gapless.protocols.gapless.clients.inbox import Inbox
from gapless.protocols.gapless.clients.outbox import Outbox, Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import epoch_of
from gapless.protocols.gapless.retention.spans import Spans
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.wave_course import WAVE
from gapless.protocols.parts.alike import stretches
from gapless.registry import find_protocol

RUN = 256
Counting: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[None]]


class Network:
    """Two brokers, one the other's backup, a publisher and a subscriber; what the nodes do is counted."""

    def __init__(self, counting: Counting, counted: Container[str]) -> None:
        """`counting` counts what these nodes do."""
        spec = find_protocol("gapless")
        overlay, options = chain(2), spec.options()
        self.nodes: dict[str, Any] = {n: spec.broker(BrokerPlace(n, overlay, 1), options) for n in ("b0", "b1")}
        self.nodes["publisher"] = spec.client(ClientPlace("publisher", "b1", ("b1",)), options)
        self.nodes["subscriber"] = spec.client(ClientPlace("subscriber", "b0", ("b0",)), options)
        self.queue: deque[tuple[str, Any]] = deque()
        self.delivered = 0
        self.now = 1_000_000
        self.count = 0
        self._counting = counting
        self._counted = counted
        for name in self.nodes:
            self.give(name, Start())
        self.give("publisher", Advertise("publisher/a", "topic = 'x'"))
        self.give("subscriber", Subscribe("subscriber/s", "topic = 'x'"))

    def give(self, name: str, item: Any) -> None:
        """One input, and all that follows from it."""
        self.queue.append((name, item))
        while self.queue:
            name, item = self.queue.popleft()
            with self._counting(self._note) if name in self._counted else nullcontext():
                effects = self.nodes[name].step(item, self.now)
            for effect in effects:
                if isinstance(effect, Send):
                    self.queue.append((effect.peer, Received(name, effect.message)))
                elif isinstance(effect, DeliverMany):
                    self.delivered += len(effect.events)
                    self.queue.append((name, Consumed(self.delivered)))

    def _note(self) -> None:
        self.count += 1

    def publish(self, size: int) -> int:
        """Publish a run, let it get through and be forgotten; return what was counted."""
        before, delivered = self.count, self.delivered
        self.give("publisher", PublishMany([b"payload"] * size, [({"topic": "x"}, size)]))
        assert self.delivered == delivered + size
        for _ in range(4):
            self.now += 1_000_000
            self.give("b0", TimerFired(WAVE))
        for name in ("b0", "b1"):
            assert self.nodes[name].state_size()["retained"] == 0
        assert self.nodes["publisher"].state_size()["unsafe"] == 0
        return self.count - before


@contextmanager
def counting_calls(count: Callable[[], None]) -> Iterator[None]:
    """Call `count` for each call of a function, ours or the interpreter's."""

    def note(frame: FrameType, kind: str, argument: object) -> None:
        if kind in ("call", "c_call"):
            count()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def counting_instructions(count: Callable[[], None]) -> Iterator[None]:
    """Call `count` for each instruction of the interpreter."""

    def note(frame: FrameType, kind: str, argument: object) -> Any:
        frame.f_trace_opcodes = True
        if kind == "opcode":
            count()
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(before)


INSTRUCTIONS_MAX = 1
"""For each event, on all nodes of its way together: they are looked at as a run."""


def test_a_run_of_256_takes_as_many_calls_as_a_run_of_2() -> None:
    network = Network(counting_calls, ("b0", "b1", "publisher", "subscriber"))
    network.publish(2)
    short = [network.publish(2) for _ in range(3)]
    long = [network.publish(RUN) for _ in range(3)]
    assert max(long) <= max(short) + 8, (short, long)


def test_nobody_does_anything_for_each_event_of_a_run() -> None:
    network = Network(counting_instructions, ("b0", "b1", "publisher", "subscriber"))
    network.publish(2)
    short, long = network.publish(2), network.publish(RUN)
    assert (long - short) / (RUN - 2) <= INSTRUCTIONS_MAX, (short, long)


def event(seq: int, publisher: str = "p", **attributes: Any) -> Event:
    return Event(publisher, seq, attributes)


def test_alike_is_what_no_filter_tells_apart() -> None:
    run = [event(1, x="a"), event(2, x="a"), event(3, x=1), event(4, x=1), event(5, x=True), event(6, x=1.0)]
    assert stretches(run) == [({"x": "a"}, 2), ({"x": 1}, 4), ({"x": True}, 5), ({"x": 1.0}, 6)]
    assert stretches([event(1)]) == [({}, 1)]
    assert stretches([event(1, x="a", y=1), event(2, y=1, x="a")]) == [({"x": "a", "y": 1}, 2)]


def test_spans_are_a_set_of_numbers() -> None:
    known: set[int] = set()
    spans = Spans()
    for first, last, is_added in (
        (5, 9, True),
        (1, 2, True),
        (3, 4, True),
        (12, 15, True),
        (7, 13, False),
        (8, 8, True),
    ):
        numbers = range(first, last + 1)
        if is_added:
            spans.add(first, last)
            known |= {*numbers}
        else:
            spans.remove(first, last)
            known -= {*numbers}
        assert {number for number in range(20) if number in spans} == known
    assert (spans.end_of(1), spans.end_of(7), spans.end_of(8), spans.end_of(14)) == (6, 0, 8, 15)


def test_an_inbox_gives_out_runs_up_to_what_was_taken_back() -> None:
    inbox = Inbox()
    inbox.put([event(seq, x="a") for seq in (1, 2, 3)])
    inbox.take_back(ClientUnadvertise(1, "a"))
    inbox.put([event(4, x="a")])
    test = parse("x = 'a'").test
    assert (len(inbox), inbox.taken_back) == (5, None)
    assert [each.seq for each in inbox.take(2, [test])] == [1, 2]
    assert [each.seq for each in inbox.take(9, [test])] == [3]
    assert inbox.take(9, [test]) == []
    assert inbox.taken_back == ClientUnadvertise(1, "a")
    inbox.pop_taken_back()
    assert [each.seq for each in inbox.take(9, [test])] == [4]
    assert len(inbox) == 0


def test_an_outbox_counts_what_was_sent_and_what_came_out_of_history() -> None:
    outbox = Outbox()
    outbox.put(Outgoing([event(seq) for seq in (1, 2, 3)], ["s"]))
    outbox.put(Outgoing([event(4)], ["t"], True))
    assert [each.seq for each in outbox.send(2)] == [1, 2]
    assert (len(outbox), outbox.sent, outbox.from_history, outbox.next.names) == (4, 2, 1, ["s"])
    assert [outbox.place_after(name) for name in ("s", "t", "u")] == [3, 4, 0]
    outbox.drop(1)
    assert (len(outbox), outbox.sent) == (3, 1)
    assert outbox.drop_unsent() == [0, 1, 1, 2]
    assert [(run.events[0].seq, run.is_history) for run in outbox] == [(2, True), (4, True)]
    assert (len(outbox), outbox.sent, outbox.from_history) == (2, 1, 2)


@pytest.fixture
def table() -> RoutingTable:
    def ignore(*_: object) -> None: ...

    return RoutingTable(
        send=ignore, tell_client=ignore, advertisement_stable=ignore, switched_off=frozenset(), log_end=lambda: 0
    )


def test_a_run_is_split_only_where_a_filter_tells_its_events_apart(table: RoutingTable) -> None:
    link = Link("b1", "b1", 0)
    table.enter_subscription("far", "x > 0", link, {})
    for name, text in (("s", "TRUE"), ("t", "x = 2")):
        table.enter_subscription(name, text, None, {}, "c").cuts["p"] = 1
    session = Session("c", epoch_of(0))
    session.subscriptions = {name: table.subscriptions[name] for name in ("s", "t")}
    run = [event(1, x=1), event(2, x=1), event(3, x=2), event(4, x=0)]
    found = dispatch(run, table, {"c": as_attached(session)}, None)
    assert [each.seq for each in found.onward[link]] == [1, 2, 3]
    shares = [([each.seq for each in part.events], part.names) for part in found.local["c"]]
    assert shares == [([1, 2], ["s"]), ([3], ["s", "t"]), ([4], ["s"])]
    alike = [event(seq, x=2) for seq in (5, 6, 7)]
    found = dispatch(alike, table, {"c": session}, None)
    assert found.onward[link] is alike, "whoever gets all of it gets the run itself"
    assert found.local["c"][0].events is alike


def test_of_a_run_each_subscription_gets_what_comes_from_its_cut_on(table: RoutingTable) -> None:
    for name, cut in (("s", 3), ("t", 2), ("u", 9)):
        table.enter_subscription(name, "TRUE", None, {}, "c").cuts["p"] = cut
    session = Session("c", epoch_of(0))
    session.subscriptions = dict(table.subscriptions)
    found = dispatch([event(seq, x=1) for seq in (1, 2, 3, 4)], table, {"c": as_attached(session)}, None)
    shares = [([each.seq for each in part.events], part.names) for part in found.local["c"]]
    assert shares == [([2], ["t"]), ([3, 4], ["s", "t"])]


def as_attached(session: Session) -> Session:
    """The session, claimed by its client."""
    session.claim(Attach(1, "b0/0", [], {}, [], 1), [])
    return session

"""Journals at brokers: pages for readers, bounds, and earlier entries for a broker that replicates a journal again."""

import pytest

from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import TIMESTAMP_MAX
from gapless.protocol import Advertise, PublishMany, Subscribe
from gapless.protocols.gapless import PROTOCOL, history
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.history import PAGE_EVENTS, holders, look_up, trim
from gapless.protocols.gapless.identities import Incarnation, Status
from gapless.protocols.gapless.journal_messages import Entry, Page, ReadPage
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.topology import Topology, why_too_small
from gapless.registry import find_protocol
from gapless.simulator import Simulation

SECOND = 1_000_000
B0, B1 = Incarnation("b0", 0), Incarnation("b1", 0)


def broker(name: str = "b1", **options: float) -> BrokerState:
    return BrokerState(name, 0, Topology(chain(3), 1), GaplessOptions(**options))  # type: ignore[arg-type]


def fill(s: BrokerState, incarnation: Incarnation, count: int, size: int = 0) -> None:
    journal = s.journal if incarnation == s.incarnation else s.journals.setdefault(incarnation, type(s.journal)())
    for seq in range(1, count + 1):
        journal.append(Entry(EventRun.of([Event("p", seq, {"x": seq}, bytes(size), 10 * seq)])))


def ask(s: BrokerState, incarnation: Incarnation, since: int, until: int, text: str = "TRUE", length: int = -1) -> Page:
    return look_up(s, ReadPage(1, incarnation, length, since, until, text))


def numbers(page: Page) -> list[int]:
    return [event.seq for events in page.events for event in events]


def test_a_broker_answers_for_its_own_journal_up_to_any_final_position() -> None:
    s = broker()
    fill(s, B1, 5)
    s.clock.see(1_000)
    page = ask(s, B1, 10, 1_000, "x <> 4")
    assert (numbers(page), page.upto) == ([2, 3, 5], 1_000)


def test_a_replica_answers_up_to_its_last_entry_and_to_the_end_of_a_sealed_journal() -> None:
    s = broker()
    fill(s, B0, 5)
    assert ask(s, B0, 10, 1_000).upto == 50
    assert ask(s, B0, 50, 1_000).upto == 50, "it cannot say what follows"
    assert ask(s, B0, 10, 1_000, length=4).upto == TIMESTAMP_MAX, "the reader knows that it is sealed"
    assert numbers(ask(s, B0, 10, 1_000, length=4)) == [2, 3, 4]
    assert ask(s, B0, 50, 1_000, length=6).upto == 50, "it does not hold all of it"
    s.statuses["b0"] = Status(0, 1, 1, ((0, 5),))
    assert ask(s, B0, 10, 30).upto == 30
    assert ask(s, B0, 10, 60).upto == TIMESTAMP_MAX
    assert ask(s, Incarnation("b2", 0), 0, 60).upto == 0, "nothing is held here"


def test_a_page_is_bounded_by_what_was_looked_at() -> None:
    s = broker()
    fill(s, B0, 3 * PAGE_EVENTS)
    page = ask(s, B0, 0, TIMESTAMP_MAX, "FALSE")
    assert (page.events, page.upto) == ([], 10 * PAGE_EVENTS)
    fill(s, B1, 100, size=20_000)
    s.clock.see(TIMESTAMP_MAX)
    assert len(numbers(ask(s, B1, 0, 1_000))) == 7


def test_the_matching_part_of_a_run_is_reported() -> None:
    s = broker()
    s.journal.append(Entry(EventRun("p", 1, EventTable.of([{"x": x} for x in (1, 2, 2, 1)], [b""] * 4), 10)))
    s.clock.see(100)
    assert numbers(ask(s, B1, 0, 100, "x = 1")) == [1, 4]
    assert numbers(ask(s, B1, 0, 100, "x = 2")) == [2, 3]


def test_a_broker_reports_what_it_has_dropped() -> None:
    s = broker(history_bytes=400_000)
    fill(s, B0, 100, size=3_000)
    fill(s, B1, 100, size=3_000)
    s.released, s.stable = 100, 300
    s.clock.see(5_000)
    trim(s)
    assert s.journal.size + s.journals[B0].size <= 400_000 or s.journal.dropped == 300
    assert s.journal.dropped == 300, "what not all brokers have processed stays, whatever it takes"
    s.stable = 5_000
    trim(s)
    assert s.journal.size + s.journals[B0].size <= 400_000
    page = ask(s, B1, 20, 1_000)
    assert (page.upto, page.events, page.dropped) == (20, [], s.journal.dropped)
    assert numbers(ask(s, B1, s.journal.dropped, 1_000))[0] == s.journal.start + 1


def test_old_entries_go_by_their_age() -> None:
    s = broker(history_s=1.0)
    fill(s, B1, 50)
    s.released, s.stable = 50, SECOND
    s.clock.see(SECOND + 305)
    trim(s)
    assert (s.journal.start, s.journal.dropped) == (30, 300)


def test_a_window_fits_into_what_every_holder_keeps() -> None:
    topology = Topology(chain(5), 1)
    for name in topology.brokers:
        held = [name, *topology.accepts_for[name]]
        assert sum(topology.window(each, 10_000, 1 << 20) for each in held) * 1024 <= 1 << 20
    reason = why_too_small(chain(5), 1, 100_000)
    assert reason is not None
    assert "set it to 327,680 or more" in reason
    assert PROTOCOL.refuses(chain(5), 1, GaplessOptions(history_bytes=327_680)) is None


def test_a_reader_asks_itself_then_the_journals_own_broker_then_the_nearest() -> None:
    s = BrokerState("b0", 0, Topology(chain(5), 2), GaplessOptions())
    assert holders(s, Incarnation("b2", 0)) == ["b0", "b2", "b1", "b3", "b4"]
    s.statuses["b2"] = Status(0, 1, 1, ())
    assert holders(s, Incarnation("b2", 0)) == ["b0", "b1", "b3", "b4"]


def test_a_broker_that_has_lost_its_memory_gets_the_history_it_should_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """b1 replicated b0's journal. It restarts without memory, and first receives the end of the journal."""
    monkeypatch.setattr(history, "PAGE_BYTES", 2_000)
    simulation = Simulation(chain(3), find_protocol("gapless"), f=1)
    simulation.add_client("alice", "b0")
    simulation.call("alice", Advertise("a", "TRUE"), at=0)
    for n in range(50):
        simulation.call("alice", PublishMany(EventTable.of([{"x": n}] * 2, [bytes(200)] * 2)), at=SECOND + n * 20_000)
    simulation.crash("b1", at=5 * SECOND)
    simulation.restart("b1", at=6 * SECOND)
    simulation.add_client("carol", "b2", at=7 * SECOND)
    simulation.call("carol", Subscribe("s", "TRUE"), at=8 * SECOND)
    simulation.run(settle=20 * SECOND)
    node = simulation.slots["b1"].node
    assert isinstance(node, GaplessBroker)
    held = node.state.journals[B0]
    assert (held.start, len(held), held.lacks_earlier) == (0, 50, False)

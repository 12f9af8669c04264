"""Brokers with disks: a confirmed event is on f + 1 disks, and is delivered once after an outage."""

import msgspec
import pytest

from gapless.disk import Admit, DiskContents
from gapless.errors import StorageError
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Connected, Effect, Input, Keep, Persisted, Received, Send, Start
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.gapless.journal_messages import Entry, Held, Hold, JournalCopy
from gapless.protocols.gapless.membership_messages import Join, JoinReply, Memory, Prepare, Promise
from gapless.protocols.gapless.messages import Body, Frame
from gapless.protocols.gapless.options import GaplessOptions
from gapless.simulator import run_scenario, search, try_scenario
from gapless.simulator.disks import DiskState, replay
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Delay,
    Fault,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
)

BROKERS = ("b0", "b1", "b2")


class Node:
    def __init__(self, disk: DiskContents, incarnation: int = 0) -> None:
        self.node = GaplessBroker(BrokerPlace("b1", chain(3), 1, incarnation, disk), GaplessOptions())
        self.kept: list[Keep] = []
        self.seqs: dict[str, int] = {}
        self.give(Start())
        self.give(Connected("b0"))

    def give(self, item: Input) -> list[Body]:
        effects: list[Effect] = list(self.node.step(item, 1_000))
        self.kept += [effect for effect in effects if isinstance(effect, Keep)]
        messages = [effect.message for effect in effects if isinstance(effect, Send)]
        return [message.body for message in messages if isinstance(message, Frame)]

    def receive(self, peer: str, body: Body) -> list[Body]:
        self.seqs[peer] = self.seqs.get(peer, 0) + 1
        return self.give(Received(peer, Frame(0, self.node.state.number, self.seqs[peer], 0, 0, body)))

    def sync(self) -> list[Body]:
        return self.give(Persisted(self.kept[-1].number))

    def contents(self) -> DiskContents:
        return replay([keep.changes for keep in self.kept])


def hold(start: int, *timestamps: int) -> Hold:
    entries = [
        Entry(EventRun.of([Event("p", start + 1 + place, {"x": 1}, b"", stamp)]))
        for place, stamp in enumerate(timestamps)
    ]
    return Hold(JournalCopy(Incarnation("b0", 0), start, 0, {}, False, entries), False)


def of(kind: type, said: list[Body]) -> list[Body]:
    return [body for body in said if isinstance(body, kind)]


def test_a_holder_answers_when_its_disk_has_the_entries_and_once_for_a_batch() -> None:
    node = Node(DiskContents())
    assert not of(Held, node.receive("b0", hold(0, 10)))
    assert not of(Held, node.receive("b0", hold(1, 20, 30)))
    assert of(Held, node.sync()) == [Held(3)]


def test_an_acceptor_promises_when_its_disk_knows_that() -> None:
    node = Node(DiskContents())
    assert not of(Promise, node.receive("b2", Prepare("b0", 1, Ballot(1, "b2/0"))))
    assert len(of(Promise, node.sync())) == 1


def test_a_restarted_broker_holds_and_has_promised_what_it_had_before() -> None:
    first = Node(DiskContents())
    first.receive("b0", hold(0, 10, 20))
    first.receive("b2", Prepare("b0", 1, Ballot(7, "b2/0")))
    second = Node(first.contents(), incarnation=1).node.state
    assert second.memory is Memory.DISK
    assert [entry.timestamp for entry in second.journals[Incarnation("b0", 0)].entries] == [10, 20]
    assert second.acceptors["b0"].promised == Ballot(7, "b2/0")
    assert second.clock.last >= 20


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_recovering_broker_reports_whether_its_disk_is_intact(is_damaged: bool) -> None:
    first = Node(DiskContents())
    first.receive("b0", hold(0, 10))
    first.receive("b0", hold(1, 20))
    contents = first.contents()
    rows = contents.history["b0/0"]
    assert len(list(rows)) == 2
    if is_damaged:
        contents = msgspec.structs.replace(contents, history={"b0/0": list(rows)[:1]})
    second = Node(contents, incarnation=1)
    second.receive("b0", Join(0, []))
    replies = of(JoinReply, second.sync())
    assert isinstance(replies[0], JoinReply)
    states = {state.broker: state for state in replies[0].acceptors}
    assert states["b0"].memory is (Memory.NONE if is_damaged else Memory.DISK)
    assert states["b0"].copies[0].length == (1 if is_damaged else 2)


def test_entries_dropped_from_memory_leave_the_disk_and_publishers_stay_known() -> None:
    node = Node(DiskContents())
    for place in range(0, 3_000, 100):
        node.receive("b0", hold(place, *(1_000 * (place + 1 + each) for each in range(100))))
    state = node.node.state
    state.journals[Incarnation("b0", 0)].drop(2_000)
    node.receive("b0", hold(3_000, 4_000_000))
    assert sum(row.count for row in node.contents().history["b0/0"]) == 1_001
    again = Node(node.contents(), incarnation=1).node.state.journals[Incarnation("b0", 0)]
    assert (again.start, len(again), again.last_number("p")) == (2_000, 3_001, 3_001)


def test_a_disk_of_another_format_is_refused_with_the_way_out() -> None:
    node = Node(DiskContents())
    contents = node.contents()
    entries = {**contents.entries, "format": msgspec.msgpack.encode(2)}
    with pytest.raises(StorageError, match=r"has format 2.*an empty directory"):
        Node(msgspec.structs.replace(contents, entries=entries), incarnation=1)


def test_an_entry_is_written_once() -> None:
    node = Node(DiskContents())
    node.receive("b0", hold(0, 10))
    node.receive("b0", hold(0, 10, 20))
    written = [change for keep in node.kept for change in keep.changes if isinstance(change, Admit)]
    assert sum(change.count for change in written) == 2


# ---- outages ------------------------------------------------------------------------------------------------


def outage(*states: DiskState, after: tuple[Fault, ...] = (), **options: object) -> Scenario:
    """Return a scenario in which b0 and b1 have confirmed ann's event, bob at b2 has not received it, and all brokers
    stop."""
    return Scenario(
        name="outage",
        network=Network(
            shape="chain", brokers=3, f=1, latency=LatencySpec(ms=2.0), detection=Delay(50.0, 60.0),
            disks=Delay(20.0, 30.0),
        ),
        protocol=ProtocolChoice("gapless", dict(options)),
        clients=(Client("ann", "b0"), Client("bob", "b2")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "TRUE"),
            SubscribeAction(100.0, "bob", "s", "TRUE"),
            PublishAction(1_000.0, "ann", {"x": 1}),
            PublishAction(9_000.0, "ann", {"x": 2}),
        ),
        faults=(
            Cut(990.0, ("b1", "b2")),
            *(Crash(1_040.0, name) for name in BROKERS),
            Heal(1_050.0, ("b1", "b2")),
            *(Restart(1_100.0 + 30 * place, name, disk=state) for place, (name, state) in
              enumerate(zip(BROKERS, states, strict=False))),
            *after,
        ),
        run=Run(settle_ms=20_000.0),
    )  # fmt: skip


def delivered(found: Scenario) -> list[str]:
    trace = run_scenario(found).trace
    assert trace is not None
    return [row.event_id for row in trace.history if row.subscription_id == "s"]


@pytest.mark.parametrize("bad", ["kept", "lost", "old", "damaged"])
@pytest.mark.parametrize("place", range(3))
def test_after_an_outage_all_that_was_confirmed_arrives(bad: DiskState, place: int) -> None:
    states: list[DiskState] = ["kept", "kept", "kept"]
    states[place] = bad
    found = outage(*states)
    assert try_scenario(found).status == "valid"
    assert delivered(found) == ["ann:1", "ann:2"]


@pytest.mark.parametrize("place", range(3))
def test_one_broker_that_does_not_return_is_waited_for_and_then_bypassed(place: int) -> None:
    found = outage("kept", "kept", "kept")
    faults = tuple(fault for fault in found.faults if not isinstance(fault, Restart) or fault.broker != BROKERS[place])
    found = msgspec.structs.replace(found, faults=faults)
    assert try_scenario(found).status == "valid"
    assert delivered(found) == ["ann:1", "ann:2"]


def test_a_second_outage_soon_after_the_first_loses_nothing() -> None:
    again = tuple(Crash(3_000.0, name) for name in BROKERS) + tuple(Restart(3_100.0, name) for name in BROKERS)
    found = outage("kept", "kept", "kept", after=again)
    assert try_scenario(found).status == "valid"
    assert delivered(found) == ["ann:1", "ann:2"]


def test_where_brokers_do_not_wait_for_their_disks_a_confirmed_event_is_lost() -> None:
    early = outage("kept", "kept", "kept", switched_off=["synced"])
    faults = tuple(
        msgspec.structs.replace(fault, at_ms=1_010.0) if isinstance(fault, Crash) else fault for fault in early.faults
    )
    runs = [Run(seed=seed, settle_ms=20_000.0) for seed in range(8)]  # a random prefix of unsynced batches survives
    assert any(try_scenario(msgspec.structs.replace(early, faults=faults, run=run)).failed for run in runs)


@pytest.mark.parametrize("faults", ["disk", "disk,blackout"])
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_no_violation(faults: str, times: int) -> None:
    report = search("gapless", 3 * times, first_seed=7100, faults=faults, processes=1, scale="small")
    assert report.finding is None, report.finding.repeat

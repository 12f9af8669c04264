"""The register of durable subscriptions: promises and records of replicas, successive changes, recovery."""

import random
from typing import Any

import msgspec
import pytest

from gapless.overlay import star
from gapless.protocol import Owners, Send
from gapless.protocols.gapless.disk import take_due
from gapless.protocols.gapless.durable import pages, proposals, register
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientAttach, ClientMove
from gapless.protocols.gapless.durable.messages import (
    AcceptRecord,
    DurableRecord,
    ListRecords,
    Outstanding,
    PrepareRecord,
    Progress,
    Version,
)
from gapless.protocols.gapless.durable.rules import DELIVERED_AHEAD_US, Asker, Refusal, apply
from gapless.protocols.gapless.durable.state import Change, Command, NoteAbsence, WriteGroup
from gapless.protocols.gapless.durable.steps import DURABLE_AT_ONCE
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.gapless.link_messages import FinalPosition
from gapless.protocols.gapless.messages import Frame
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.topology import Topology


def broker(name: str, brokers: int = 5, f: int = 1, number: int = 0) -> BrokerState:
    s = BrokerState(name, number, Topology(star(brokers), f), GaplessOptions())
    s.final = FinalPosition(1)
    return s


def record(generation: int = 1, **fields: Any) -> DurableRecord:
    return DurableRecord("n", "x > 0", Progress(5), generation, **fields)


def prepared(s: BrokerState, round_: int, name: str = "n", user: str = "") -> Any:
    vote = register.receive_prepare(s, PrepareRecord(1, name, Ballot(round_, "b"), user))
    assert vote is not None
    return vote


def accepted(s: BrokerState, round_: int, value: DurableRecord, serial: int = 1) -> Any:
    vote = register.receive_accept(s, AcceptRecord(1, Version(Ballot(round_, "b"), serial), value))
    assert vote is not None
    return vote


# ---- a replica -----------------------------------------------------------------------------------------------


def test_the_replicas_are_the_electorate_of_the_first_broker() -> None:
    assert register.replicas(broker("b4")) == ("b0", "b1", "b2")
    assert register.majority(broker("b4")) == 2
    assert not register.is_replica(broker("b4"))


def test_a_replica_takes_part_in_no_smaller_ballot_than_it_promised() -> None:
    s = broker("b0")
    assert prepared(s, 5).held.promised == (5, "b")
    assert prepared(s, 4).held.promised == (5, "b")
    assert accepted(s, 4, record()).held.record is None
    assert accepted(s, 5, record()).held.record == record()
    assert prepared(s, 6).held.version == Version(Ballot(5, "b"), 1)


def test_a_proposer_that_keeps_its_ballot_replaces_its_own_record_in_order() -> None:
    s = broker("b0")
    accepted(s, 5, record(1), 2)
    assert accepted(s, 5, record(9), 1).held.record == record(1), "an earlier write of the same ballot came late"
    assert accepted(s, 5, record(2), 3).held.record == record(2)


def test_to_read_promises_nothing() -> None:
    s = broker("b0")
    prepared(s, 5)
    vote = register.receive_prepare(s, PrepareRecord(1, "n", Ballot(0, ""), ""))
    assert vote is not None
    assert vote.held.promised == (5, "b")


def test_there_is_room_for_so_many_and_those_that_have_ended_take_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "NAMES_MAX", 3)
    s = broker("b0")
    for name in "klm":
        prepared(s, 1, name)
    assert "limit of the network" in prepared(s, 1).refusal
    assert not prepared(s, 2, "k").refusal
    accepted(s, 3, msgspec.structs.replace(record(), name="k", is_over=True))
    assert not prepared(s, 1).refusal


def test_a_user_has_no_more_than_its_limit_and_one_that_has_ended_would_count_again() -> None:
    s = broker("b0")
    s.owners = Owners(names_max={"eve": 1, "bob": 0}.__getitem__)
    accepted(s, 1, record(user="eve"))
    assert "user 'eve' has 1 durable" in prepared(s, 2, "m", "eve").refusal
    assert not prepared(s, 2, "m", "bob").refusal
    accepted(s, 3, record(2, user="eve", is_over=True))
    assert not prepared(s, 4, "o", "eve").refusal
    assert prepared(s, 4, "n", "eve").refusal


def test_the_oldest_finished_run_of_the_user_with_the_most_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register, "ENDED_MAX", 3)
    s = broker("b0")
    for name, user in (("a", "bob"), ("k", "eve"), ("l", "eve")):
        accepted(s, 1, msgspec.structs.replace(record(), name=name, user=user, is_over=True))
    prepared(s, 9, "k")  # a client is about to attach to it
    accepted(s, 1, msgspec.structs.replace(record(), name="m", user="eve", is_over=True))
    assert sorted(s.durable.records) == ["a", "k", "m"]


def test_only_what_counts_of_the_latest_incarnations_decides() -> None:
    s = broker("b4")
    assert register.counted(s, {"b0": [0, 0, 0], "b1": [0, 0, 0]}) == ["b0", "b1"]
    assert register.counted(s, {"b0": [0, 0, 0], "b1": [1000, 0, 0]}) == ["b1"], "b0 has lost its memory since"


# ---- several brokers ----------------------------------------------------------------------------------------


class Table:
    """Brokers whose messages arrive in any order, except that each pair keeps its own. A crash loses messages."""

    def __init__(self, seed: int = 0) -> None:
        self.dice = random.Random(seed)
        self.brokers = {f"b{number}": broker(f"b{number}") for number in range(5)}
        self.mail: dict[tuple[str, str], list[tuple[int, Any]]] = {}

    def collect(self) -> None:
        for name, s in self.brokers.items():
            for due in take_due(s):
                if due.peer == name:
                    DURABLE_AT_ONCE[type(due.body)](s, name, due.body)
                else:
                    s.send(due.peer, due.body)
            for effect in s.effects:
                if isinstance(effect, Send) and isinstance(effect.message, Frame):
                    self.mail.setdefault((name, effect.peer), []).append((s.number, effect.message.body))
            s.effects.clear()

    def run(self, steps: int = 1_000, *, ticks: bool = True) -> None:
        for step in range(steps):
            self.collect()
            pairs = [pair for pair, waiting in self.mail.items() if waiting]
            if ticks and step % 20 == 0:
                s = self.dice.choice(list(self.brokers.values()))
                pages.tick(s)
                proposals.tick(s)
            if not pairs:
                continue
            sender, receiver = self.dice.choice(pairs)
            number, body = self.mail[sender, receiver].pop(0)
            if self.brokers[sender].number == number:
                DURABLE_AT_ONCE[type(body)](self.brokers[receiver], sender, body)

    def restart(self, name: str) -> None:
        number = self.brokers[name].number + 1_000
        self.mail = {pair: [] if name in pair else waiting for pair, waiting in self.mail.items()}
        self.brokers[name] = broker(name, number=number)
        for s in self.brokers.values():
            s.statuses[name] = s.status(name)._replace(number=number)


def attach(client: str, *, line: str = "", name: str = "n") -> Change:
    return Change(ClientAttach(1, "s", name, "x > 0", line=line or client), client)


@pytest.mark.parametrize("seed", range(20))
def test_changes_are_ordered_across_users(seed: int) -> None:
    table = Table(seed)
    for number in range(9):
        proposals.propose(table.brokers[f"b{number % 5}"], attach(f"c{number}"))
    table.run(6_000)
    done = [change for s in table.brokers.values() for change in s.durable.finished]
    generations = [change.after.generation for change in done if change.after is not None]
    assert len(done) == 9
    assert len(set(generations)) == 9, "two changes were made of the same record"


@pytest.mark.parametrize("seed", range(20))
def test_decisions_survive_successive_failures_of_replicas(seed: int) -> None:
    table = Table(seed)
    for number, name in enumerate(("b0", "b1", "b2", "b0")):
        proposals.propose(table.brokers["b4"], attach(f"c{number}"))
        table.run()
        table.restart(name)
        assert not table.brokers[name].durable.has_recovered
        table.run()
        assert table.brokers[name].durable.has_recovered
    generations = [change.after.generation for change in table.brokers["b4"].durable.finished if change.after]
    assert generations == [1, 2, 3, 4]


def test_a_replica_without_memory_does_not_answer() -> None:
    s = broker("b0", number=1_000)
    assert register.receive_prepare(s, PrepareRecord(1, "n", Ballot(1, "b"), "")) is None
    assert register.receive_accept(s, AcceptRecord(1, Version(Ballot(1, "b"), 1), record())) is None


def test_the_owner_writes_again_without_a_prepare() -> None:
    table = Table()
    s = table.brokers["b4"]
    proposals.propose(s, attach("ann"))
    table.run()
    round_ = s.durable.round
    command = ClientAck(1, "s", "n", 1, 1, Progress(80, {"p": 3}, 85, 85))
    proposals.propose(s, Change(command, "ann"))
    table.run()
    after = s.durable.finished[-1].after
    assert after is not None
    assert (after.progress, after.serial) == (command.progress, 1)
    assert s.durable.round == round_


def test_an_owner_that_another_has_replaced_is_refused() -> None:
    table = Table()
    proposals.propose(table.brokers["b4"], attach("ann"))
    table.run()
    proposals.propose(table.brokers["b3"], attach("bob"))
    table.run()
    proposals.propose(table.brokers["b4"], Change(ClientAck(1, "s", "n", 1, 1, Progress(80)), "ann"))
    table.run(2_000)
    change = table.brokers["b4"].durable.finished[-1]
    assert change.refusal.startswith("'bob' has attached to the durable subscription 'n'")


def test_a_page_of_an_earlier_question_changes_nothing() -> None:
    s = broker("b0", number=1_000)
    other = broker("b1")
    accepted(other, 1, record())
    page = pages.answer_list(other, ListRecords(0, ""))
    assert page is not None
    pages.take_page(s, "b1", page)
    assert "n" not in s.durable.records, "b1 did not know that b0 has lost its memory"


# ---- the changes ----------------------------------------------------------------------------------------------


def change(command: Command, value: DurableRecord | None, client: str = "ann", **fields: Any) -> DurableRecord:
    asker = Asker(Incarnation("b1", 0), client, 77, 80, fields.pop("owners", Owners()), **fields)
    return apply(Change(command, client), value, asker)


CALL = ClientAttach(1, "s", "n", "x > 0", line="1")
ACK = ClientAck(1, "s", "n", 1, 1, Progress(80, {"p": 3}, 85, 85, {"p": [(7, 8)]}))
SHARE = ClientAttach(1, "s", "n", "x > 0", is_shared=True, line="1")


def test_to_attach_keeps_what_is_acknowledged_and_fences_the_last_owner() -> None:
    begun = change(CALL, None)
    assert (begun.progress.position, begun.generation, begun.client, begun.owner) == (
        77,
        1,
        "ann",
        Incarnation("b1", 0),
    )
    kept = change(ACK, begun)
    assert (kept.progress, kept.serial) == (ACK.progress, 1)
    taken = change(CALL, kept, "bob")
    progress = msgspec.structs.replace(taken.progress, delivered=85)
    assert (progress, taken.generation, taken.serial) == (kept.progress, 2, 0)
    with pytest.raises(Refusal, match="'bob' has attached to the durable subscription 'n'"):
        change(ACK, taken)


def test_a_call_to_attach_that_is_repeated_attaches_once() -> None:
    begun = change(CALL, None)
    assert change(CALL, begun).generation == 1
    assert change(msgspec.structs.replace(CALL, line="2"), begun).generation == 2


def test_an_acknowledgement_that_comes_late_changes_nothing() -> None:
    later = record(serial=2, client="ann")
    assert change(ACK, later) is later
    with pytest.raises(Refusal, match="'eve' is not attached"):
        change(ACK, record(client="ann"), "eve")


def test_possible_deliveries_are_exact_after_a_leave_and_bounded_after_a_crash() -> None:
    begun = change(CALL, None)
    left = change(msgspec.structs.replace(ACK, is_leaving=True), begun)
    assert (left.client, left.owner) == ("", None)
    assert change(CALL, left, "bob").progress.delivered == 85
    assert change(CALL, change(ACK, begun), "bob").progress.delivered == 80 + DELIVERED_AHEAD_US


def test_another_filter_is_refused_unless_it_is_replaced() -> None:
    other = msgspec.structs.replace(CALL, filter="x > 1", line="2")
    with pytest.raises(Refusal, match="'n' has another filter, 'x > 0'"):
        change(other, record())
    assert change(msgspec.structs.replace(other, replace=True), record()).filter == "x > 1"


def test_one_that_was_ended_begins_anew() -> None:
    over = change(ClientMove(1, "r", "n", "x > 0", -1), record())
    assert over.is_over
    with pytest.raises(Refusal, match="there is no durable subscription 'n'"):
        change(ClientMove(1, "r", "n", "x > 0", 3), over)
    with pytest.raises(Refusal, match="was ended"):
        change(ACK, over)
    with pytest.raises(Refusal, match="was ended"):
        change(msgspec.structs.replace(SHARE, was_attached=True), over)
    again = change(CALL, over)
    assert (again.progress.position, again.generation, again.is_over) == (77, 3, False)


def test_one_is_moved_if_it_is_the_one_that_was_meant() -> None:
    moved = change(ClientMove(1, "r", "n", "x > 0", 3, (4, "p", 9)), record(client="ann"))
    assert (moved.progress.position, moved.progress.got, moved.after) == (3, {"p": 9}, (4, "p", 9))
    assert (moved.generation, moved.client) == (2, "")
    with pytest.raises(Refusal, match="now has another filter"):
        change(ClientMove(1, "r", "n", "x > 7", 3), record())


def test_an_expired_session_leaves_the_subscription_to_its_client() -> None:
    begun = change(CALL, None)
    absent = change(NoteAbsence("n", 1, "ann"), begun)
    assert (absent.owner, absent.client) == (None, "ann")
    assert change(ACK, absent).owner == Incarnation("b1", 0)
    with pytest.raises(Refusal):
        change(NoteAbsence("n", 1, "ann"), change(CALL, begun, "bob"))


def test_members_join_the_coordinator_unless_it_left() -> None:
    begun = change(SHARE, None)
    live = frozenset({Incarnation("b1", 0)})
    assert change(SHARE, begun, "bob", live=live) is begun
    assert change(SHARE, begun, "bob").generation == 2


def test_the_next_coordinator_knows_what_members_have() -> None:
    begun = change(SHARE, None)
    write = WriteGroup(
        "n", 1, Progress(90, {"p": 4}, 95, 95, {"p": [(6, 7)]}, [Outstanding("p", 5, 96, "ann", 2)]), False
    )
    written = change(write, begun)
    taken = change(SHARE, written, "bob")
    assert msgspec.structs.replace(taken.progress, delivered=95) == write.progress
    with pytest.raises(Refusal):
        change(write, taken)


def test_a_shared_subscription_belongs_to_the_user_whose_client_attached_first() -> None:
    owners = Owners(user_of=lambda client: client.partition(":")[0])
    begun = change(SHARE, None, "eve:a", owners=owners)
    again = msgspec.structs.replace(SHARE, replace=True, line="2")
    for call in (SHARE, again, msgspec.structs.replace(again, is_shared=False)):
        with pytest.raises(Refusal, match=r"^the group 'n' belongs to user 'eve'$"):
            change(call, begun, "bob:c", owners=owners)
    assert change(SHARE, begun, "eve:b", owners=owners).generation == 2
    with pytest.raises(Refusal, match="'n' is shared; attach with group=True"):
        change(CALL, begun, "eve:b", owners=owners)

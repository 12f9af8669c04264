"""Durable subscriptions: who agrees on their records, what survives, and what is confirmed."""

import random
from typing import Any

import msgspec
import pytest

from gapless.checkers import check
from gapless.disk import Delete
from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.client.named import STEP_US, Named
from gapless.protocols.gapless.client_messages import (
    DELIVERED_AHEAD_US,
    LEASE_MAX_US,
    ClientConfirm,
    ClientMove,
    ClientOpen,
)
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.name_messages import AskName, AskNames, KeepName, NameEntry, NameRecord, NamesAnswer
from gapless.protocols.gapless.names.proposals import Proposal, Proposals
from gapless.protocols.gapless.names.register import (
    ENDED_MAX,
    FULL,
    NAMES_MAX,
    NO_MORE,
    PAGE,
    Register,
    keepers_of,
)
from gapless.protocols.gapless.names.rules import Refusal, confirm, move, open_name
from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Delay,
    Fault,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    Scenario,
    SubscribeAction,
    UnsubscribeAction,
)
from gapless.trace import Trace

RECORD = NameRecord("n", "x > 0", 5, {}, 1, 0, "ann", "b0")


def record(generation: int, position: int = 5) -> NameRecord:
    return NameRecord("n", "x > 0", position, {}, generation)


def register(name: str = "b0", keepers: int = 3, *, f: int = 1, is_first: bool = True, found: Any = None) -> Register:
    names = [f"b{number}" for number in range(keepers)]
    return Register(name, names, f, Disk(False, 0), found, is_first=is_first)


# ---- keepers ------------------------------------------------------------------------------------------------


def test_the_keepers_are_the_middle_of_the_tree() -> None:
    assert keepers_of("b0", ["b1", "b2", "b3"], 1) == ["b0", "b1", "b2"]
    assert keepers_of("b0", ["b1"], 3) == ["b0", "b1"]
    assert keepers_of("b0", ["b1"], 0) == ["b0"]


def test_a_keeper_listens_to_no_smaller_ballot_than_it_promised() -> None:
    keeper = register()
    assert keeper.promise("n", (5, "b1")).promised == (5, "b1")
    assert keeper.promise("n", (4, "b2")).promised == (5, "b1")
    assert keeper.accept((4, "b2"), RECORD).record is None
    assert keeper.accept((5, "b1"), RECORD).record == RECORD
    assert keeper.promise("n", (6, "b2")) == NameEntry("n", (6, "b2"), (5, "b1"), RECORD)


def test_a_keeper_has_room_for_so_many_names() -> None:
    keeper = register()
    for number in range(NAMES_MAX):
        keeper.promise(f"n{number}", (1, "b0"))
    assert keeper.promise("one more", (1, "b0")).promised == FULL
    assert keeper.promise("n7", (2, "b0")).promised == (2, "b0")


def over(name: str, user: str = "") -> NameRecord:
    return NameRecord(name, "x > 0", 0, {}, 2, is_over=True, user=user)


def test_names_that_were_ended_take_no_room_from_others() -> None:
    keeper = register()
    for number in range(NAMES_MAX):
        keeper.accept((1, "b0"), over(f"n{number}"))
    assert keeper.promise("one more", (1, "b0")).promised == (1, "b0")
    assert keeper.entries["n7"].record == over("n7"), "so nobody brings it back who missed its end"


def test_beyond_their_room_the_first_that_ended_is_forgotten_of_the_user_who_ended_most() -> None:
    disk = Disk(True, 0)
    keeper = Register("b0", ["b0"], 0, disk, {}, is_first=True)
    keeper.accept((1, "b0"), over("bob's", "bob"))
    for number in range(ENDED_MAX - 1):
        keeper.accept((2 + number, "b0"), over(f"n{number}", "eve"))
    keeper.promise("n0", (ENDED_MAX, "b0"))  # somebody is about to open it again
    disk.take()
    keeper.accept((ENDED_MAX + 1, "b0"), over("the last", "eve"))
    assert "bob's" in keeper.entries
    assert "n0" in keeper.entries
    assert "n1" not in keeper.entries
    assert len(keeper.entries) == ENDED_MAX
    batch = disk.take()
    assert batch is not None
    assert Delete("name/n1") in batch.changes


def test_a_user_has_as_many_names_as_its_limit_says_with_those_that_it_only_began() -> None:
    limits = {"eve": 2, "bob": 0}
    keeper = Register("b0", ["b0"], 0, Disk(False, 0), None, is_first=True, names_max=limits.__getitem__)
    keeper.accept((1, "b0"), NameRecord("n0", "x > 0", 5, {}, 1, user="eve"))
    assert keeper.promise("n1", (2, "b0"), "eve").promised == (2, "b0")  # and its client goes away
    assert keeper.promise("n2", (3, "b0"), "eve").promised == NO_MORE
    assert keeper.promise("n1", (4, "b0"), "eve").promised == (4, "b0")
    assert keeper.promise("n0", (4, "b0"), "eve").promised == (4, "b0")
    assert keeper.promise("n3", (5, "b0"), "bob").promised == (5, "b0")
    keeper.accept((6, "b0"), over("n0", "eve"))
    assert keeper.promise("n2", (7, "b0"), "eve").promised == (7, "b0")
    assert keeper.promise("n0", (8, "b0"), "eve").promised == NO_MORE, "it would count again"


def test_what_a_user_has_is_counted_again_after_a_restart() -> None:
    records = [NameRecord("n0", "x > 0", 5, {}, 1, user="eve"), over("n1", "eve")]
    found = {
        f"name/{each.name}": msgspec.msgpack.encode(NameEntry(each.name, (1, "b0"), (1, "b0"), each))
        for each in records
    }
    keeper = Register("b0", ["b0"], 0, Disk(False, 0), found, is_first=False, names_max=lambda _: 1)
    assert keeper.promise("n2", (7, "b0"), "eve").promised == NO_MORE
    assert keeper.promise("n2", (7, "b0"), "bob").promised == (7, "b0")


def recovering(found: Any = None) -> tuple[Register, list[tuple[str, AskNames]]]:
    keeper = register("b0", 5, f=2, is_first=False, found=found)
    asked: list[tuple[str, AskNames]] = []
    keeper.recover(lambda peer, message: asked.append((peer, message)))
    return keeper, asked


def tell(keeper: Register, peer: str, *entries: NameEntry, is_sure: bool = True) -> None:
    sent: list[AskNames] = []
    for page in ([*entries], []) if entries else ([],):
        after = sent[-1].after if sent else ""
        keeper.hear(peer, NamesAnswer(0, after, is_sure, page), lambda _, message: sent.append(message))


def test_who_came_back_agrees_to_nothing_before_it_knows_what_it_may_have_forgotten() -> None:
    keeper, asked = recovering()
    assert [peer for peer, _ in asked] == ["b1", "b2", "b3", "b4"]
    assert not keeper.is_sure
    tell(keeper, "b1")
    tell(keeper, "b2", NameEntry("n", (9, "b1"), (7, "b1"), RECORD))
    assert not keeper.is_sure
    tell(keeper, "b3", NameEntry("n", (8, "b2"), (8, "b2"), record(2)))
    assert keeper.is_sure
    assert keeper.entries["n"] == NameEntry("n", (9, "b1"), (8, "b2"), record(2))


def test_those_who_are_not_sure_themselves_count_only_if_all_have_told() -> None:
    keeper, _ = recovering()
    for peer in ("b1", "b2", "b3"):
        tell(keeper, peer, is_sure=False)
        assert not keeper.is_sure
    tell(keeper, "b4", is_sure=False)
    assert keeper.is_sure


@pytest.mark.parametrize(("found", "heard"), [({"other": b""}, 2), (None, 3)])
def test_after_a_while_it_does_without_those_who_do_not_come_back(found: Any, heard: int) -> None:
    keeper, _ = recovering(found)
    for number in range(1, heard):
        tell(keeper, f"b{number}", is_sure=False)
    keeper.lose_patience()
    assert not keeper.is_sure
    tell(keeper, f"b{heard}", is_sure=False)
    keeper.lose_patience()
    assert keeper.is_sure


def test_names_are_told_page_by_page() -> None:
    keeper = register()
    for number in range(PAGE + 1):
        keeper.promise(f"n{number:03}", (1, "b0"))
    first = keeper.page(1, "")
    assert len(first.entries) == PAGE
    assert [entry.name for entry in keeper.page(1, first.entries[-1].name).entries] == [f"n{PAGE:03}"]


# ---- agreement ----------------------------------------------------------------------------------------------


class Table:
    """Brokers that propose, and keepers, with messages that get lost and come in any order."""

    def __init__(self, seed: int, loss: float) -> None:
        self.dice = random.Random(seed)
        self.loss = loss
        self.keepers = {f"b{number}": register(f"b{number}") for number in range(3)}
        self.mail: list[tuple[str, str, Any]] = []
        self.now = 0
        self.brokers = {name: self._proposals(name) for name in self.keepers}

    def _proposals(self, name: str) -> Proposals:
        return Proposals(
            name_life(name, 0), list(self.keepers), lambda: self.now,
            lambda peer, message: self.mail.append((name, peer, message)), lambda _: None,
        )  # fmt: skip

    def run(self, steps: int, *, ticks: bool = True) -> None:
        for step in range(steps):
            self.now += 1
            if ticks and step % 20 == 0:
                self.brokers[self.dice.choice(list(self.brokers))].tick()
            if self.mail:
                sender, receiver, message = self.mail.pop(self.dice.randrange(len(self.mail)))
                if self.dice.random() >= self.loss:
                    self._deliver(sender, receiver, message)

    def _deliver(self, sender: str, receiver: str, message: Any) -> None:
        keeper = self.keepers[receiver]
        if isinstance(message, AskName | KeepName):
            self.mail += [(receiver, asker, answer) for asker, answer in keeper.answer(sender, message)]
        else:
            self.brokers[receiver].hear(sender, message)


@pytest.mark.parametrize("seed", range(30))
def test_changes_follow_on_each_other_whoever_makes_them(seed: int) -> None:
    table = Table(seed, loss=0.1)
    made: list[int] = []

    def grow(known: NameRecord | None) -> NameRecord:
        return record(1 if known is None else known.generation + 1)

    def done(known: NameRecord | None, refusal: str) -> None:
        assert known is not None
        assert not refusal
        made.append(known.generation)

    for number in range(9):
        table.brokers[f"b{number % 3}"].propose(Proposal("n", grow, done, lambda: True))
    table.run(40_000)
    assert len(made) == 9
    assert len(set(made)) == 9, "two changes were made of the same record"
    assert (
        max(keeper.entries["n"].record.generation for keeper in table.keepers.values() if keeper.entries["n"].record)
        >= 9
    )


@pytest.mark.parametrize("seed", range(10))
def test_who_gives_way_goes_on_when_the_other_is_done_and_not_after_a_while(seed: int) -> None:
    table = Table(seed, loss=0.0)
    made: list[str] = []
    for name, broker in table.brokers.items():
        broker.propose(Proposal("n", lambda _: record(1), lambda *_, name=name: made.append(name), lambda: True))
    table.run(1_000, ticks=False)
    assert sorted(made) == list(table.brokers)


def test_who_gives_up_waiting_leaves_room_for_the_next() -> None:
    table = Table(0, loss=1.0)
    made: list[str] = []
    broker = table.brokers["b0"]
    broker.propose(Proposal("n", lambda _: record(1), lambda *_: made.append("first"), lambda: False))
    broker.propose(Proposal("n", lambda _: record(1), lambda *_: made.append("second"), lambda: True))
    broker.tick()
    table.loss = 0.0
    table.run(200)
    assert made == ["second"]


# ---- rules --------------------------------------------------------------------------------------------------


def test_what_may_have_been_delivered_is_known_exactly_after_a_leave_and_from_above_after_a_crash() -> None:
    call = ClientOpen(1, "bob/s1", "n", "x > 0")
    begun = open_name(call, "bob", "b1", 77, newest=80)(None)
    assert begun.delivered == 0, "it is new"
    told = ClientConfirm(1, "bob/s1", "n", 1, 1, 80, {}, 0, is_leaving=True, delivered=85)
    left = confirm(told, "bob")(begun)
    assert open_name(call, "cat", "b2", 99, newest=500)(left).delivered == 85
    crashed = confirm(msgspec.structs.replace(told, is_leaving=False), "bob")(begun)
    assert open_name(call, "cat", "b2", 99, newest=500)(crashed).delivered == 500 + DELIVERED_AHEAD_US
    moved = move(ClientMove(1, "r", "n", "x > 0", 3), newest=500)(crashed)
    assert open_name(call, "cat", "b2", 99, newest=900)(moved).delivered == 500 + DELIVERED_AHEAD_US
    shared = msgspec.structs.replace(crashed, is_shared=True)
    again = open_name(msgspec.structs.replace(call, share=True, beyond=1), "cat", "b2", 99, newest=500)(shared)
    assert again.delivered == 85, "a group says so before it delivers"


def test_opening_restores_what_was_confirmed_and_fences_who_had_it() -> None:
    call = ClientOpen(1, "bob/s1", "n", "x > 0")
    begun = open_name(call, "bob", "b1", 77)(None)
    assert (begun.position, begun.generation, begun.client, begun.broker) == (77, 1, "bob", "b1")
    told = ClientConfirm(1, "bob/s1", "n", 1, 1, 80, {"p": 3}, 85)
    kept = confirm(told, "bob")(begun)
    assert (kept.position, kept.got, kept.latest, kept.serial) == (80, {"p": 3}, 85, 1)
    taken = open_name(call, "cat", "b2", 99)(kept)
    assert (taken.position, taken.got, taken.generation, taken.client, taken.serial) == (80, {"p": 3}, 2, "cat", 0)
    with pytest.raises(Refusal, match="'cat' has opened the durable subscription 'n'"):
        confirm(told, "bob")(taken)


def test_what_was_confirmed_earlier_does_not_count_when_it_comes_late() -> None:
    later = NameRecord("n", "x > 0", 90, {}, 1, 2, "bob")
    assert confirm(ClientConfirm(1, "s", "n", 1, 1, 80, {}, 0), "bob")(later) is later


def test_nobody_confirms_for_somebody_else() -> None:
    with pytest.raises(Refusal, match="'n' is not open for 'eve'"):
        confirm(ClientConfirm(1, "s", "n", 1, 1, 80, {}, 0), "eve")(RECORD)


def user_of(client: str) -> str:
    return client.partition(":")[0]


def test_a_group_belongs_to_the_user_who_opened_it_first() -> None:
    call = ClientOpen(1, "s", "n", "x > 0", share=True)
    begun = open_name(call, "eve:a", "b1", 7, user_of)(None)
    assert (begun.user, begun.client) == ("eve", "eve:a")
    assert open_name(call, "eve:b", "b1", 7, user_of)(begun) is begun, "it joins"
    again = msgspec.structs.replace(call, replace=True)
    alone = msgspec.structs.replace(again, share=False)
    left = msgspec.structs.replace(begun, client="")
    moved = move(ClientMove(1, "r", "n", "x > 0", 70))(left)
    nameless = msgspec.structs.replace(begun, user="")  # of a broker that knew of no users: the one who deals tells
    for known in (begun, left, moved, nameless):
        for other in (call, again, alone):
            with pytest.raises(Refusal, match=r"^the group 'n' belongs to user 'eve'$"):
                open_name(other, "bob:c", "b1", 7, user_of)(known)
    ended = move(ClientMove(1, "r", "n", "x > 0", -1))(moved)
    assert open_name(call, "bob:c", "b1", 7, user_of)(ended).user == "bob"
    assert open_name(call, "bob:c", "b1", 7)(left).client == "bob:c", "without users nothing is asked"


def test_who_makes_a_group_of_a_name_has_it_from_then_on() -> None:
    begun = open_name(ClientOpen(1, "s", "n", "x > 0"), "eve:a", "b1", 7, user_of)(None)
    taken = open_name(ClientOpen(1, "s", "n", "x > 0"), "bob:c", "b1", 7, user_of)(begun)
    assert (taken.user, taken.client) == ("eve", "bob:c"), "it still counts as hers"
    shared = open_name(ClientOpen(1, "s", "n", "x > 0", True, True), "bob:c", "b1", 7, user_of)(taken)
    assert shared.user == "bob"


def test_nobody_waits_for_long_for_who_dealt_before() -> None:
    record = NameRecord("n", "x > 0", 5, {}, 1, 0, "ann", "b0", is_shared=True, lease_us=1 << 50)
    taken = open_name(ClientOpen(1, "s", "n", "x > 0", share=True, beyond=1), "bob", "b1", 7)(record)
    assert taken.lease_us == LEASE_MAX_US


def test_who_leaves_listens_no_more() -> None:
    assert confirm(ClientConfirm(1, "s", "n", 1, 1, 80, {}, 0, True), "ann")(RECORD).client == ""


def test_another_filter_is_refused_unless_it_is_to_be_replaced() -> None:
    with pytest.raises(Refusal, match="'n' has another filter, 'x > 0'"):
        open_name(ClientOpen(1, "s", "n", "x > 1"), "bob", "b1", 7)(RECORD)
    assert open_name(ClientOpen(1, "s", "n", "x > 1", True), "bob", "b1", 7)(RECORD).filter == "x > 1"


def test_what_was_ended_begins_anew() -> None:
    over = move(ClientMove(1, "r", "n", "x > 0", -1))(RECORD)
    assert over.is_over
    with pytest.raises(Refusal, match="there is no durable subscription 'n'"):
        move(ClientMove(1, "r", "n", "x > 0", 3))(over)
    with pytest.raises(Refusal, match="was ended"):
        confirm(ClientConfirm(1, "s", "n", 1, 1, 80, {}, 0), "ann")(over)
    again = open_name(ClientOpen(1, "s", "n", "x > 9"), "bob", "b1", 70)(over)
    assert (again.filter, again.position, again.generation, again.is_over) == ("x > 9", 70, 3, False)


def test_only_what_it_is_known_as_is_moved() -> None:
    with pytest.raises(Refusal, match="has got another filter meanwhile"):
        move(ClientMove(1, "r", "n", "x > 7", 3))(RECORD)
    with pytest.raises(Refusal, match="not known any more"):
        confirm(ClientConfirm(1, "s", "n", 1, 1, 80, {}, 0), "ann")(None)


# ---- what a client confirms -----------------------------------------------------------------------------------


def opened(position: int = 10, got: dict[str, int] | None = None, latest: int = 0) -> Named:
    named = Named(Subscribe("s", "x > 0", name="n"))
    named.opened(NameRecord("n", "x > 0", position, got or {}, 3, latest=latest))
    return named


def test_a_position_counts_when_all_that_stands_before_it_is_confirmed() -> None:
    named = opened()
    named.delivered(1, Event("p", 1, {}, b"", 20))
    named.delivered(2, Event("q", 1, {}, b"", 40))
    named.reached(2, 30)
    assert not named.is_due
    named.confirm(1)
    message = named.confirming(1)
    assert (message.generation, message.position, message.got, message.latest) == (3, 10, {"p": 1}, 20)
    assert named.kept(message.serial) == 1
    named.confirm(2)
    message = named.confirming(1)
    assert (message.position, message.got) == (30, {"q": 1}), "what lies up to the position need not be told"


def test_one_confirmation_is_under_way_at_a_time_and_an_old_answer_counts_no_more() -> None:
    named = opened()
    named.delivered(1, Event("p", 1, {}, b"", 20))
    named.delivered(2, Event("p", 2, {}, b"", 21))
    named.confirm(1)
    first = named.confirming(1)
    named.confirm(2)
    assert not named.is_due
    again = named.confirming(2)
    assert named.kept(first.serial) is None
    assert named.kept(again.serial) == 2


def test_a_position_alone_is_told_only_when_it_has_moved_far() -> None:
    named = opened()
    named.reached(0, 11)
    assert not named.is_due
    named.reached(0, 10 + STEP_US)
    assert named.is_due


def test_what_the_one_before_had_got_is_told_until_the_position_has_passed_it() -> None:
    named = opened(10, {"p": 7}, latest=50)
    named.reached(0, 40)
    assert named.confirming(1).got == {"p": 7}
    named.reached(0, 50)
    assert named.confirming(1).got == {}


# ---- whole runs -----------------------------------------------------------------------------------------------

SETTLE_MS = 12_000.0


def story(*actions: Action, faults: tuple[Fault, ...] = (), disks: bool = False, **options: Any) -> Trace:
    """Ann publishes 60 events; whoever listens, and whatever fails, is to be told."""
    scenario = Scenario(
        Network("chain", brokers=4, disks=Delay(1.0, 1.0) if disks else None),
        ProtocolChoice("gapless", options),
        run=Run(settle_ms=SETTLE_MS),
        clients=tuple(Client(name, broker) for name, broker in (("ann", "b0"), ("bob", "b3"), ("cat", "b1"))),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            PublishAction(600.0, "ann", {"x": 1}, 60, 20.0),
            *actions,
        ),
        faults=faults,
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    return trace


def got(trace: Trace, subscription: str) -> list[int]:
    return [int(row.event_id.split(":")[1]) for row in trace.history if row.subscription_id == subscription]


BOB = SubscribeAction(300.0, "bob", "s1", "x > 0", name="n")
CAT = SubscribeAction(2_500.0, "cat", "s2", "x > 0", name="n")


def test_without_the_position_the_checkers_name_what_is_missing() -> None:
    trace = story(BOB, UnsubscribeAction(1_000.0, "bob", "s1"), CAT, switched_off=["named-position"])
    verdict = check(trace)
    assert verdict.counts.keys() & {"gap", "unobserved"}
    assert {anomaly.subscription for anomaly in verdict.anomalies} == {"name:n"}

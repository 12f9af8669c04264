"""Brokers with disks, in the simulator: what is confirmed is synced, and comes back, once, whatever happens to them."""

import msgspec
import pytest

from gapless.disk import Append, DiskContents, Put
from gapless.errors import StorageError
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Connected, Keep, Persisted, Received, Send, Start
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.lives import LIFE_STEP
from gapless.protocols.gapless.members.status import alive_status, next_phase
from gapless.protocols.gapless.messages import (
    PUT_TOGETHER,
    Backup,
    BackupAll,
    BackupHeld,
    Estate,
    Frame,
    Membership,
)
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.found import without_outdated
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.parts.clock import Clock
from gapless.simulator import check_scenario, generate, parse_scenario, run_scenario, try_scenario
from gapless.simulator.disks import replay
from gapless.simulator.result import Result
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    Delay,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
)
from tests.protocols.gapless.recovery.bench import contribution, event, record, region_at

REGION = region_at(chain(3), {"b1": alive_status(3)}, "b0")
BROKERS = ("b0", "b1", "b2")


class Node:
    """A broker in the middle of three, and what it says."""

    def __init__(self, disk: DiskContents | None, incarnation: int = 0, **options: int) -> None:
        place = BrokerPlace("b1", chain(3), 1, incarnation, disk)
        self.node = GaplessBroker(place, GaplessOptions(**options))  # type: ignore[arg-type]
        self.kept: list[Keep] = []
        self.seq = 0
        self.give(Start())

    def give(self, item: object) -> list[object]:
        effects = list(self.node.step(item, 1000))  # type: ignore[arg-type]
        self.kept += [effect for effect in effects if isinstance(effect, Keep)]
        return [
            effect.message.body if isinstance(effect.message, Frame) else effect.message
            for effect in effects
            if isinstance(effect, Send)
        ]

    def hear(self, peer: str, body: object) -> list[object]:
        self.seq += 1
        return self.give(Received(peer, Frame(0, 0, self.seq, 0, 0, body)))  # type: ignore[arg-type]

    def contents(self) -> DiskContents:
        return replay([keep.changes for keep in self.kept])


def backup(number: int, *seqs: int) -> Backup:
    return Backup(number, 0, {}, [], [event("p", seq) for seq in seqs], None)


def test_a_backup_answers_when_its_disk_has_it() -> None:
    node = Node(DiskContents())
    assert BackupHeld(0) not in node.hear("b0", BackupAll(0, [record("p")], [], {}))
    assert BackupHeld(1) not in node.hear("b0", backup(1, 1))
    assert BackupHeld(2) not in node.hear("b0", backup(2, 2))
    numbers = [keep.number for keep in node.kept]
    assert numbers == list(range(1, len(numbers) + 1)), "one batch a step"
    assert node.give(Persisted(numbers[-2])) == [BackupHeld(1)]
    assert node.give(Persisted(numbers[-1])) == [BackupHeld(2)]


def test_without_a_disk_it_answers_at_once_and_keeps_nothing() -> None:
    node = Node(None)
    assert BackupHeld(0) in node.hear("b0", BackupAll(0, [], [], {}))
    assert node.kept == []


def test_what_was_held_for_others_is_found_again_and_the_next_life_is_a_later_one() -> None:
    node = Node(DiskContents())
    node.hear("b0", BackupAll(0, [record("p")], [], {}))
    node.hear("b0", backup(2, 1, 2))
    again = Node(node.contents())
    assert again.node.overview()["life"] == LIFE_STEP
    assert again.node.state_size()["held for others"] == 2


def test_journals_are_written_anew_when_much_has_gathered() -> None:
    node = Node(DiskContents(), journal_bytes=200)
    node.hear("b0", BackupAll(0, [], [], {}))
    for number in range(1, 200):
        node.hear("b0", Backup(number, number - 1, {}, [], [event("p", number)], None))
    assert len(node.contents().journals["b0/0"]) < 100
    assert Node(node.contents()).node.state_size()["held for others"] == 1


def test_who_hears_of_a_later_life_of_its_own_has_an_old_disk_and_begins_a_later_one() -> None:
    node = Node(DiskContents(), incarnation=2)
    life = 7 * LIFE_STEP
    node.seq += 1
    heard = Frame(0, 2 * LIFE_STEP, node.seq, 0, 0, Membership({"b1": next_phase(alive_status(life))}))
    node.give(Received("b0", heard))
    assert node.node.overview()["life"] == life + 1


def test_what_a_broker_admits_is_held_when_its_own_disk_has_it_too() -> None:
    journal = Journal(lambda name, message: None, Clock())
    journal.persisted = 0
    journal.choose_backups({"b0": 0})
    number = journal.admit([event("p", 1)])
    journal.answered("b0", 0, number)
    assert journal.held == 0
    journal.persisted = number
    assert journal.held == number


def test_a_disk_of_another_format_is_refused_with_a_sentence() -> None:
    blob = msgspec.msgpack.encode(99)
    with pytest.raises(StorageError, match="has format 99, this version of gapless reads 1 to 2"):
        Node(replay([[Put("format", blob)]]))


def test_a_disk_of_the_first_format_is_read_and_has_the_latest_from_then_on() -> None:
    first = Put("format", msgspec.msgpack.encode(1))
    node = Node(replay([[first, Append("b2/0", 2, msgspec.msgpack.encode(backup(2, 1, 2)))]]))
    assert Put("format", msgspec.msgpack.encode(2)) in node.kept[0].changes
    assert node.node.state_size()["held for others"] == 2


def found(number: int, is_found: bool = True) -> Estate:
    return Estate("b1", 0, {"p": record("p")}, {}, [], number, is_found)


def kept(contributions: dict[str, list[Estate]], **heirs: str) -> dict[str, list[int]]:
    given = {
        member: msgspec.structs.replace(
            contribution(REGION), estates=estates, heirs={"b1/0": heirs[member]} if member in heirs else {}
        )
        for member, estates in contributions.items()
    }
    return {member: [estate.number for estate in sync.estates] for member, sync in without_outdated(given).items()}


def test_of_several_copies_that_were_found_the_latest_counts() -> None:
    assert kept({"b0": [found(3)], "b2": [found(5)]}) == {"b0": [], "b2": [5]}
    assert kept({"b0": [found(3)], "b2": [found(5, is_found=False)]}) == {"b0": [], "b2": [5]}
    assert kept({"b0": [found(3, is_found=False)], "b2": [found(5)]}) == {"b0": [3], "b2": [5]}


def test_what_a_hand_over_has_put_together_is_later_than_all() -> None:
    assert kept({"b0": [found(9)], "b2": [found(PUT_TOGETHER)]}) == {"b0": [], "b2": [PUT_TOGETHER]}
    assert kept({"b0": [found(0)], "b2": [found(2)]}) == {"b0": [], "b2": [2]}, "an empty journal is early"


def test_an_old_disk_does_not_bring_back_what_was_taken_over() -> None:
    assert kept({"b0": [found(3)], "b2": []}, b2="b2/0") == {"b0": [], "b2": []}


# ---- whole networks ----------------------------------------------------------------------------------------------


def scenario(*faults: Crash | Restart, switched_off: tuple[str, ...] = (), sync_ms: float = 5.0) -> Scenario:
    """ann at b0 publishes for bob at b2, before and after, with f = 1."""
    return Scenario(
        network=Network("chain", brokers=3, f=1, disks=Delay(sync_ms, sync_ms)),
        protocol=ProtocolChoice("gapless", {"switched_off": list(switched_off)} if switched_off else {}),
        clients=(Client("ann", "b0"), Client("bob", "b2")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "TRUE"),
            SubscribeAction(0.0, "bob", "s", "TRUE"),
            PublishAction(300.0, "ann", {"n": 1}, count=40, every_ms=20.0),
            SubscribeAction(8000.0, "bob", "all", "TRUE", since_ms=0.0),
        ),
        faults=faults,
        run=Run(settle_ms=12_000.0),
    )


def delivered(result: Result, subscription: str) -> list[int]:
    """The numbers of what the subscription was delivered."""
    assert result.trace is not None
    rows = [row for row in result.trace.history if row.subscription_id == subscription and row.kind == "deliver"]
    return [int(row.event_id.rpartition(":")[2]) for row in rows]


def blackout(*back: tuple[float, str, str]) -> list[Crash | Restart]:
    return [
        *(Crash(600.0, name) for name in BROKERS),
        *(Restart(at, name, disk=disk) for at, name, disk in back),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    "back",
    [
        [(601.0, "b0", "kept"), (601.0, "b1", "kept"), (601.0, "b2", "kept")],
        [(2500.0, "b0", "kept"), (1500.0, "b1", "kept"), (700.0, "b2", "kept")],
        [(700.0, "b0", "kept"), (800.0, "b1", "kept")],
        [(700.0, "b0", "lost"), (2800.0, "b1", "kept"), (800.0, "b2", "kept")],
        [(700.0, "b0", "kept"), (800.0, "b1", "old"), (2000.0, "b2", "kept")],
        [(700.0, "b0", "damaged"), (800.0, "b1", "kept"), (2000.0, "b2", "kept")],
    ],
)
def test_after_a_blackout_everything_is_delivered_once_and_can_be_read(back: list[tuple[float, str, str]]) -> None:
    outcome = try_scenario(scenario(*blackout(*back)))
    assert outcome.status == "valid", outcome.verdict
    result = run_scenario(scenario(*blackout(*back)))
    assert result.quiesced
    assert delivered(result, "s") == list(range(1, 41))
    assert delivered(result, "all") == list(range(1, 41))


def test_who_is_alone_after_a_blackout_waits_for_the_others() -> None:
    result = run_scenario(scenario(*blackout((700.0, "b0", "kept"))))
    assert len(delivered(result, "s")) < 40, "nothing is delivered that f + 1 do not hold"


def test_a_broker_that_dies_alone_returns_with_its_disk() -> None:
    for disk in ("kept", "old", "lost", "damaged"):
        faults = (Crash(600.0, "b1"), Restart(1500.0, "b1", disk=disk))
        assert try_scenario(scenario(*faults)).status == "valid"


def test_without_waiting_for_the_disk_something_confirmed_is_lost() -> None:
    faults = blackout((700.0, "b0", "kept"), (700.0, "b1", "kept"), (700.0, "b2", "kept"))
    assert try_scenario(scenario(*faults, sync_ms=200.0)).status == "valid"
    assert try_scenario(scenario(*faults, sync_ms=200.0, switched_off=("synced",))).failed


def test_a_scenario_with_disks_is_written_and_read() -> None:
    drawn = generate(3, "gapless", "disk,blackout")
    assert drawn.network.disks is not None
    check_scenario(drawn)
    assert parse_scenario(drawn.to_toml()) == drawn


def test_connected_peers_are_no_reason_to_write() -> None:
    node = Node(DiskContents())
    before = len(node.kept)
    node.give(Connected("b0"))
    assert len(node.kept) == before

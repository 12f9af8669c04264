"""History that waits for durable subscriptions: what they have not confirmed is kept beyond its bounds, up to a
limit."""

from typing import Any

import pytest

from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import Advertise, PublishMany, Subscribe, Unsubscribe
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.history.mirror import NAMED_FACTOR, Mirror
from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.messages import NOBODY, Echo, Wave
from gapless.protocols.gapless.name_messages import NameEntry, NameRecord
from gapless.protocols.gapless.names.floor import Floor
from gapless.protocols.gapless.names.register import Register
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.parts.clock import Clock
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder, Trace

SECOND = 1_000_000
BYTES = 10_000


# ---- what is kept -------------------------------------------------------------------------------------------


def fill(history: History, stamps: range) -> None:
    for stamp in stamps:
        history.keep("b0", [Event("p", stamp, {}, bytes(800), stamp)])
        history.forget(0)


@pytest.mark.parametrize("has_disk", [False, True])
def test_what_names_have_not_confirmed_is_kept_up_to_so_many_times_as_much(has_disk: bool) -> None:
    history = History(BYTES)
    if has_disk:
        history.mirror = Mirror(Disk(True, 1_000_000), BYTES)

    def fill_on(stamps: range) -> None:
        for stamp in stamps:
            fill(history, range(stamp, stamp + 1))
            if history.mirror is not None:
                history.mirror.end_step()
                history.persisted = history.mirror.batch
                history.forget(0)

    history.floor = 5
    fill_on(range(1, 31))
    assert 2 <= history.dropped <= 5, "what all have confirmed goes first"
    assert history.beyond > BYTES
    fill_on(range(31, 101))
    assert 50 < history.dropped < 90
    assert history.beyond <= NAMED_FACTOR * BYTES
    history.floor = 98
    fill_on(range(101, 102))
    assert 85 < history.dropped <= 98
    assert history.beyond == 0


def test_age_waits_for_names_too() -> None:
    history = History(1_000_000)
    history.floor = 5
    fill(history, range(1, 11))
    history.forget(9)
    assert history.dropped == 5
    history.floor = NOBODY
    history.forget(9)
    assert history.dropped == 9


# ---- who tells ----------------------------------------------------------------------------------------------


def keeper(*positions: int, name: str = "b0", is_first: bool = True) -> Floor:
    register = Register(name, ["b0", "b1", "b2"], 1, Disk(False, 0), None, is_first=is_first)
    for number, position in enumerate(positions):
        record = NameRecord(f"n{number}", "TRUE", position, {}, 1)
        register.entries[record.name] = NameEntry(record.name, (1, "b0"), (1, "b0"), record)
    return Floor(register, History(BYTES))


def test_each_keeper_tells_the_lowest_position_that_it_knows_of() -> None:
    assert keeper(70, 50, 90).lowest() == (50, 1)
    assert keeper().lowest() == (NOBODY, 1)
    assert keeper(70, name="b7").lowest() == (NOBODY, 0)
    assert keeper(70, is_first=False).lowest() == (0, 1), "it may have forgotten some"
    last = keeper(70, 50).last()
    assert last is not None
    assert last.name == "n1"


class Shelf:
    def admitted(self, since: int, until: int) -> dict[str, Any]:
        return {}

    def last_admitted(self, since: int, until: int) -> dict[str, int]:
        return {}

    def dropped(self) -> int:
        return 0

    def note(self, interval: Any) -> None:
        pass

    def reach(self, position: int) -> None:
        pass


@pytest.mark.parametrize(("keepers", "told"), [(1, 40), (0, 0)])
def test_the_root_tells_the_lowest_if_a_majority_of_the_keepers_has_told(keepers: int, told: int) -> None:
    waves = Waves(lambda _: None, lambda _: None, lambda: False, lambda: False, Clock(), Shelf(), names=keeper(70))
    waves.begin(Wave(1, 0, 0, 0), ["u"], {})
    waves.echoed("u", Echo(1, False, False, named=40, keepers=keepers))
    echo = waves.due_echo(lambda _: 0)
    assert echo is not None
    assert (echo.named, echo.keepers) == (40, 1 + keepers)
    waves.completed(echo)
    wave = next(wave for wave in iter(waves.tick, False) if isinstance(wave, Wave))
    assert wave.named == told


# ---- whole runs ---------------------------------------------------------------------------------------------


def away(**options: Any) -> tuple[Trace, dict[str, Any]]:
    """Bob leaves a name at once; far more is published than brokers keep; and then cat opens it."""
    recorder = Recorder(run="r", protocol="gapless", guarantee="gcd", scenario="floor", seed=0, brokers=3, f=1)
    options = {"history_bytes": 20_000, **options}
    simulation = Simulation(chain(3), find_protocol("gapless"), recorder=recorder, f=1, options=options)
    for name, broker in (("alice", "b0"), ("bob", "b2"), ("cat", "b1")):
        simulation.add_client(name, broker)
    simulation.call("alice", Advertise("a", "TRUE"), at=0)
    simulation.call("bob", Subscribe("s1", "TRUE", name="n"), at=SECOND)
    simulation.call("bob", Unsubscribe("s1"), at=3 * SECOND)
    for number in range(100):
        run = PublishMany([bytes(300)], [({"x": number}, 1)])
        simulation.call("alice", run, at=4 * SECOND + number * SECOND // 10)
    told: dict[str, Any] = {}

    def look() -> None:
        histories = [node.overview()["history"] for node in simulation.broker_nodes()]
        told.update(zip(("b0", "b1", "b2"), histories, strict=True))

    simulation.event_queue.call(16 * SECOND, look)
    simulation.call("cat", Subscribe("s2", "TRUE", name="n"), at=17 * SECOND)
    result = simulation.run(settle=20 * SECOND)
    assert result.trace is not None
    return result.trace, told


def count(trace: Trace, subscription: str) -> int:
    return sum(row.subscription_id == subscription for row in trace.history)


def test_who_was_away_gets_all_that_it_has_not_confirmed_though_it_is_more_than_is_kept() -> None:
    trace, told = away(history_keeps_names=True)
    assert (count(trace, "s2"), trace.skipped) == (100, [])
    assert told["b0"]["kept_for_names"] > 0
    assert told["b0"]["last_name"][0] == "n"


def test_without_the_option_it_is_told_what_is_gone() -> None:
    trace, told = away()
    assert 0 < count(trace, "s2") < 100
    assert trace.skipped
    assert "kept_for_names" not in told["b0"]


def test_beyond_the_limit_it_is_told_what_is_gone_all_the_same() -> None:
    trace, _ = away(history_keeps_names=True, history_bytes=4_000)
    assert 0 < count(trace, "s2") < 100
    assert trace.skipped

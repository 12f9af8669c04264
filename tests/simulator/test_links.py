"""Links with loss, duplication and queues, and recorded messages."""

import msgspec
import pytest

from gapless.events import Event
from gapless.overlay import chain, star
from gapless.protocol import Publish, Subscribe
from gapless.simulator import Latency, NodeModel, Result, Settings, Simulation
from gapless.trace import Recorder

from .flooding import FLOODING, Flood
from .probe import Probe

MS = 1000


def numbers(probe: Probe, name: str) -> list[int]:
    return [number for _, _, number in probe.logs.notes(name)]


def test_messages_are_lost_between_brokers_at_about_the_rate_and_never_from_clients() -> None:
    probe = Probe(chain(2), settings=Settings(loss=0.3))
    probe.send("b0", "b1", at=0, count=1000)
    probe.send("b0", "b0.c", at=0, count=100)
    result = probe.simulation.run(settle=100 * MS)
    arrived = numbers(probe, "b1")
    assert 600 < len(arrived) < 800
    assert arrived == sorted(arrived)
    assert result.messages_lost == 1000 - len(arrived)
    assert len(numbers(probe, "b0.c")) == 100


def test_duplicates_come_after_the_original_and_never_before_an_earlier_message() -> None:
    probe = Probe(chain(2), settings=Settings(duplication=0.5, latency=Latency(1 * MS, 9 * MS)))
    probe.send("b0", "b1", at=0, count=400)
    probe.simulation.run(settle=100 * MS)
    arrived = numbers(probe, "b1")
    assert arrived == sorted(arrived)
    assert set(arrived) == set(range(400))
    assert 500 < len(arrived) < 700


NODE_MODEL = Settings(latency=Latency(100 * MS, 100 * MS), node_model=NodeModel(1 * MS, 2 * MS))


def test_a_message_takes_transmission_propagation_and_processing() -> None:
    probe = Probe(chain(3), settings=NODE_MODEL)
    probe.send("b0", "b1", at=0)
    result = probe.simulation.run(settle=1000 * MS)
    assert probe.logs.notes("b1") == [(103 * MS, "b0", 0)]
    assert result.queues["b0"].peak == result.queues["b1"].peak == 1
    assert result.queues["b2"].messages == 0


def test_copies_wait_for_the_transmitter() -> None:
    probe = Probe(chain(2), settings=NODE_MODEL)
    probe.send("b0", "b1", at=0, count=4)
    result = probe.simulation.run(settle=1000 * MS)
    assert [now for now, _, _ in probe.logs.notes("b1")] == [103 * MS, 105 * MS, 107 * MS, 109 * MS]
    assert result.queues["b0"].peak == 4
    assert result.queues["b0"].mean == pytest.approx(2.5)
    assert result.queues["b1"].peak == 1


def test_arrivals_wait_for_the_processor() -> None:
    probe = Probe(star(5), settings=NODE_MODEL)
    for name in ("b1", "b2", "b3", "b4"):
        probe.send(name, "b0", at=0)
    result = probe.simulation.run(settle=1000 * MS)
    assert [now for now, _, _ in probe.logs.notes("b0")] == [103 * MS, 104 * MS, 105 * MS, 106 * MS]
    assert result.queues["b0"].peak == 4


def test_free_messages_cost_nothing_and_keep_their_order() -> None:
    free = msgspec.structs.replace(NODE_MODEL, node_model=NodeModel(1 * MS, 2 * MS, frozenset({"Note"})))
    probe = Probe(star(3), settings=free)
    probe.send("b1", "b0", at=0, count=4)
    result = probe.simulation.run(settle=1000 * MS)
    assert probe.logs.notes("b0") == [(100 * MS, "b1", number) for number in range(4)]
    assert result.queues["b1"].sent == result.queues["b0"].messages == 0


def test_copies_that_are_sent_are_counted() -> None:
    probe = Probe(chain(2), settings=NODE_MODEL)
    probe.send("b0", "b1", at=0, count=4)
    result = probe.simulation.run(settle=1000 * MS)
    assert (result.queues["b0"].sent, result.queues["b1"].sent) == (4, 0)
    assert result.queues["b1"].messages == 4


def test_no_message_queues_for_instant_processing() -> None:
    quick = msgspec.structs.replace(NODE_MODEL, node_model=NodeModel(0, 2 * MS))
    probe = Probe(chain(2), settings=quick)
    probe.send("b0", "b1", at=0, count=4)
    probe.send("b1", "b0", at=50 * MS, count=3)
    result = probe.simulation.run(settle=1000 * MS)
    assert [(result.queues[name].messages, result.queues[name].mean) for name in ("b0", "b1")] == [(4, 2.5), (3, 2.0)]


def test_any_two_brokers_are_linked_where_the_network_is_direct() -> None:
    settings = Settings(latency=Latency(10 * MS, 10 * MS, table={("b0", "b3"): 7 * MS}, direct=True))
    probe = Probe(chain(4), settings=settings)
    probe.send("b0", "b2", at=0)
    probe.send("b3", "b0", at=0)
    probe.simulation.run(settle=1000 * MS)
    assert probe.logs.notes("b2") == [(10 * MS, "b0", 0)]
    assert probe.logs.notes("b0") == [(7 * MS, "b3", 0)]


def test_a_crash_empties_the_queues() -> None:
    probe = Probe(star(5), settings=NODE_MODEL)
    for name in ("b1", "b2", "b3", "b4"):
        probe.send(name, "b0", at=0)
    probe.simulation.crash("b0", at=104 * MS + 1)
    probe.simulation.restart("b0", at=105 * MS)
    probe.simulation.run(settle=1000 * MS)
    assert len(probe.logs.notes("b0")) == 2


def flood_with_crash(with_messages: bool) -> Result:
    recorder = Recorder(
        run="r", protocol="flooding", guarantee="best-effort", scenario="s", seed=3, brokers=4, f=1,
        with_messages=with_messages,
    )  # fmt: skip
    simulation = Simulation(chain(4), FLOODING, seed=3, recorder=recorder, with_messages=with_messages)
    simulation.add_client("c0", "b0")
    simulation.add_client("c1", "b3")
    simulation.call("c1", Subscribe("s", "TRUE"), at=0)
    for number in range(30):
        simulation.call("c0", Publish({"topic": "t"}), at=number * 3 * MS)
    simulation.crash("b2", at=40 * MS)
    simulation.restart("b2", at=55 * MS)
    return simulation.run(settle=200 * MS)


def test_recording_messages_changes_no_results() -> None:
    without, recorded = flood_with_crash(False), flood_with_crash(True)
    assert without.trace is not None
    assert recorded.trace is not None
    assert without.trace.messages == []
    assert msgspec.structs.replace(recorded.trace, messages=[]) == without.trace
    assert recorded.steps == without.steps
    assert recorded.message_counts == without.message_counts


def test_messages_have_their_times_and_sizes_and_the_lost_have_no_arrival() -> None:
    result = flood_with_crash(True)
    assert result.trace is not None
    rows = result.trace.messages
    assert len(rows) == result.messages
    assert sum(row.received_ms is None for row in rows) == result.messages_lost > 0
    for row in rows:
        if row.received_ms is not None:
            between_brokers = row.sender.startswith("b") and row.receiver.startswith("b")
            assert row.received_ms - row.sent_ms == (10 if between_brokers else 0)
    sizes = {row.bytes for row in rows if row.kind == "Flood"}
    assert sizes == {len(msgspec.msgpack.encode(Flood(Event("c0", 1, {"topic": "t"}))))}

"""Time, order, latency, timers, and how a run ends or fails."""

from collections.abc import Sequence

import msgspec
import pytest

from gapless.errors import ProtocolError
from gapless.overlay import Overlay, binary, chain, star
from gapless.protocol import Effect, Input, ProtocolSpec, Publish, Received, Send, Start, Subscribe, Unsubscribe
from gapless.simulator import Latency, NodeError, RunawayError, Settings, Simulation

from .flooding import FLOODING, FloodingBroker
from .probe import Probe, ProbeNode

MS = 1000


def test_brokers_start_first_then_clients_all_at_time_zero() -> None:
    probe = Probe(chain(3))
    probe.send("b0", "b1", at=0)
    probe.simulation.run(settle=100 * MS)
    starts = [(now, name) for now, name, item in probe.logs.all if isinstance(item, Start)]
    assert starts == [(0, name) for name in ("b0", "b1", "b2", "b0.c", "b1.c", "b2.c")]
    assert [type(item) for _, _, item in probe.logs.all[:6]] == [Start] * 6


def test_distant_brokers_talk_directly_in_the_time_of_the_tree_path() -> None:
    table = {("b0", "b1"): 5 * MS, ("b2", "b1"): 7 * MS}
    probe = Probe(chain(4), settings=Settings(latency=Latency(table=table)))
    for receiver in ("b1", "b2", "b3"):
        probe.send("b0", receiver, at=MS)
    result = probe.simulation.run(settle=100 * MS)
    assert [probe.logs.notes(name) for name in ("b1", "b2", "b3")] == [
        [(6 * MS, "b0", 0)],
        [(13 * MS, "b0", 0)],
        [(23 * MS, "b0", 0)],
    ]
    assert result.message_counts == {"Note": 3, "Order": 3}


def test_jitter_keeps_the_order_of_each_link() -> None:
    probe = Probe(chain(3), settings=Settings(latency=Latency(1 * MS, 50 * MS)))
    for at in range(0, 200, 4):
        probe.send("b0", "b1", at=at * MS, count=2)
    probe.simulation.run(settle=1000 * MS)
    notes = probe.logs.notes("b1")
    assert len(notes) == 100
    assert [number for _, _, number in notes] == [0, 1] * 50
    arrivals = [now for now, _, _ in notes]
    assert arrivals == sorted(arrivals)
    delays = [now - sent * MS for (now, _, _), sent in zip(notes[::2], range(0, 200, 4), strict=True)]
    assert min(delays) >= 1 * MS
    assert max(delays) <= 50 * MS
    assert len(set(delays)) > 20


def test_a_latency_drawn_per_link_is_steady_and_differs_between_links() -> None:
    overlay = star(12)
    probe = Probe(overlay, settings=Settings(latency=Latency(1 * MS, 100 * MS, per_link=True)))
    for name in overlay.brokers[1:]:
        probe.send("b0", name, at=0)
        probe.send("b0", name, at=300 * MS)
    probe.simulation.run(settle=500 * MS)
    drawn = set()
    for name in overlay.brokers[1:]:
        first, second = (now for now, _, _ in probe.logs.notes(name))
        assert second - 300 * MS == first
        drawn.add(first)
    assert len(drawn) == 11
    assert max(drawn) > 4 * min(drawn)


def test_clients_have_a_latency_of_their_own() -> None:
    probe = Probe(chain(2), settings=Settings(latency=Latency(client_us=3 * MS)))
    probe.simulation.add_client("far", "b0", latency_us=20 * MS)
    probe.simulation.call("far", Publish({"direct": "b1", "text": "hello"}), at=0)
    probe.send("b0", "b0.c", at=0)
    probe.simulation.run(settle=100 * MS)
    assert probe.logs.notes("b1") == [(20 * MS, "far", 0)]
    assert probe.logs.notes("b0.c") == [(6 * MS, "b0", 0)]


def test_simultaneous_actions_happen_in_script_order() -> None:
    probe = Probe(star(5))
    for name in ("b3", "b1", "b4", "b2"):
        probe.send(name, "b0", at=5 * MS)
    probe.simulation.run(settle=100 * MS)
    assert [peer for _, peer, _ in probe.logs.notes("b0")] == ["b3", "b1", "b4", "b2"]


def test_a_timer_replaces_the_one_of_the_same_key() -> None:
    probe = Probe(chain(1))
    probe.command("b0", 0, timer="a", ms=10)
    probe.command("b0", 0, timer="b", ms=12)
    probe.command("b0", 5 * MS, timer="a", ms=10)
    probe.command("b0", 30 * MS, timer="a", ms=1)
    probe.simulation.run(settle=100 * MS)
    assert probe.logs.news("b0")[1:] == [(12 * MS, "timer", "b"), (15 * MS, "timer", "a"), (31 * MS, "timer", "a")]


def test_a_client_that_leaves_ends_what_it_has_open() -> None:
    probe = Probe(chain(1))
    for name in ("s1", "s2", "s3"):
        probe.simulation.call("b0.c", Subscribe(name, "TRUE"), at=0)
    probe.simulation.call("b0.c", Unsubscribe("s2"), at=1 * MS)
    probe.simulation.leave("b0.c", at=2 * MS)
    probe.simulation.run(settle=10 * MS)
    ends = [(now, item.subscription) for now, item in probe.logs.of("b0.c") if isinstance(item, Unsubscribe)]
    assert ends == [(1 * MS, "s2"), (2 * MS, "s1"), (2 * MS, "s3")]


def test_a_run_ends_when_it_has_settled_or_at_its_time() -> None:
    def run(until: int | None, settle: int) -> tuple[int, bool]:
        probe = Probe(chain(2))
        probe.send("b0", "b1", at=40 * MS)
        result = probe.simulation.run(until=until, settle=settle)
        return result.time_us, result.quiesced

    assert run(None, 100 * MS) == (140 * MS, True)
    assert run(200 * MS, 100 * MS) == (200 * MS, True)
    assert run(100 * MS, 100 * MS) == (100 * MS, False)


def test_periodic_timers_do_not_keep_a_run_alive() -> None:
    simulation = Simulation(binary(2), FLOODING, options={"tick_ms": 5})
    result = simulation.run(settle=100 * MS)
    assert result.time_us == 100 * MS
    assert 7 * 20 <= result.steps <= 7 * 20 + 10


def broken_at(number: int) -> ProtocolSpec:
    class Broken(FloodingBroker):
        def step(self, item: Input, now: int) -> Sequence[Effect]:
            if isinstance(item, Received) and getattr(getattr(item.message, "event", None), "seq", 0) == number:
                raise ValueError("cannot go on")
            return super().step(item, now)

    return msgspec.structs.replace(FLOODING, broker=Broken)


def flood(spec: ProtocolSpec, overlay: Overlay, events: int) -> Simulation:
    simulation = Simulation(overlay, spec, settings=Settings(max_steps=500))
    simulation.add_client("c", "b0")
    for number in range(events):
        simulation.call("c", Publish({"topic": "t"}), at=number * MS)
    return simulation


def test_an_exception_in_a_node_is_reported_with_node_time_and_traceback() -> None:
    with pytest.raises(NodeError) as caught:
        flood(broken_at(3), chain(2), 5).run(settle=100 * MS)
    assert str(caught.value) == "b0 failed at 2 ms on Received: ValueError: cannot go on"
    assert caught.value.cause == "ValueError"
    assert 'raise ValueError("cannot go on")' in caught.value.traceback_text


def test_a_run_that_never_ends_is_stopped() -> None:
    class PingPong(ProbeNode):
        def step(self, item: Input, now: int) -> Sequence[Effect]:
            if isinstance(item, Received):
                return [Send(item.peer, item.message)]
            return super().step(item, now)

    probe = Probe(chain(1), settings=Settings(max_steps=1000))
    endless = msgspec.structs.replace(probe.spec, broker=lambda place, _: PingPong(place, probe.logs),
                                      client=lambda place, _: PingPong(place, probe.logs))  # fmt: skip
    simulation = Simulation(chain(1), endless, settings=Settings(max_steps=1000))
    simulation.add_client("c", "b0")
    simulation.call("c", Publish({"direct": "b0", "text": "ping"}), at=7 * MS)
    with pytest.raises(RunawayError, match="still busy after 1000 steps, at 7 ms"):
        simulation.run(settle=100 * MS)


def test_a_message_to_an_unknown_receiver_is_the_senders_bug() -> None:
    probe = Probe(chain(2))
    probe.send("b0", "b7", at=0)
    with pytest.raises(NodeError, match="b0 sends to 'b7', but there is no such node"):
        probe.simulation.run(settle=10 * MS)


def test_options_are_checked() -> None:
    with pytest.raises(ProtocolError, match="'flooding' has no option 'tik_ms'; did you mean 'tick_ms'"):
        Simulation(chain(1), FLOODING, options={"tik_ms": 1})
    with pytest.raises(ProtocolError, match="options of protocol 'flooding': Expected `int`"):
        Simulation(chain(1), FLOODING, options={"tick_ms": "often"})


def test_state_sizes_are_sampled() -> None:
    simulation = Simulation(chain(3), FLOODING, settings=Settings(sample_us=10 * MS))
    for name in ("c0", "c1"):
        simulation.add_client(name, "b0")
    simulation.call("c0", Publish({"topic": "t"}), at=0)
    result = simulation.run(settle=100 * MS)
    assert result.state_sizes_by_broker == {
        "b0": {"clients": 2, "publishers": 1},
        "b1": {"clients": 0, "publishers": 1},
        "b2": {"clients": 0, "publishers": 1},
    }
    assert result.state_sizes["clients"].max == 2
    assert 0.6 < result.state_sizes["clients"].mean < 0.7
    assert result.state_sizes["publishers"].mean < 1

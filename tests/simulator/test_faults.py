"""Losses, failure detection, and recovery."""

import pytest

from gapless.errors import ScenarioError
from gapless.overlay import chain, star
from gapless.simulator import Latency, Settings

from .probe import Probe

MS = 1000
SETTINGS = Settings(detect_least_us=50 * MS, detect_most_us=150 * MS)
LATE = 1000 * MS


def received(probe: Probe, name: str, *words: str) -> list[tuple[str, str]]:
    return [(word, peer) for _, word, peer in probe.logs.news(name) if not words or word in words]


# ---- crashes


def test_messages_in_flight_to_a_crashed_broker_are_lost_even_if_it_returns_in_time() -> None:
    probe = Probe(chain(2))
    probe.send("b0", "b1", at=0, count=3)
    probe.simulation.crash("b1", at=5 * MS)
    probe.simulation.restart("b1", at=6 * MS)
    result = probe.simulation.run(settle=LATE)
    assert probe.logs.notes("b1") == []
    assert result.messages_lost == 3


def test_a_prefix_of_the_messages_in_flight_from_a_crashed_broker_survives_on_each_link() -> None:
    lengths = set()
    for seed in range(40):
        probe = Probe(star(3), seed=seed)
        probe.send("b0", "b1", at=0, count=3)
        probe.send("b0", "b2", at=0, count=3)
        probe.send("b0", "b1", at=1 * MS, count=3)
        probe.simulation.crash("b0", at=5 * MS)
        probe.simulation.run(settle=LATE)
        one, other = ([number for _, _, number in probe.logs.notes(name)] for name in ("b1", "b2"))
        assert one == [0, 1, 2, 0, 1, 2][: len(one)]
        assert other == [0, 1, 2][: len(other)]
        lengths.add((len(one), len(other)))
    assert {one for one, _ in lengths} == set(range(7))
    assert {other for _, other in lengths} == set(range(4))


def test_a_dead_broker_receives_nothing_and_messages_to_it_are_lost() -> None:
    probe = Probe(chain(2))
    probe.simulation.crash("b1", at=5 * MS)
    probe.send("b0", "b1", at=10 * MS)
    probe.simulation.restart("b1", at=15 * MS)
    probe.send("b0", "b1", at=20 * MS)
    probe.simulation.run(settle=LATE)
    assert probe.logs.notes("b1") == [(30 * MS, "b0", 0)]


def test_each_observer_notices_a_crash_in_its_own_time() -> None:
    probe = Probe(chain(6), f=1, settings=SETTINGS)
    probe.simulation.crash("b1", at=10 * MS)
    result = probe.simulation.run(settle=LATE)
    times = set()
    for name in ("b0", "b2", "b3", "b0.c", "b1.c", "b2.c", "b3.c"):
        ((now, word, peer),) = probe.logs.news(name)[1:]
        assert (word, peer) == ("suspected", "b1")
        assert 60 * MS <= now <= 160 * MS
        times.add(now)
    assert len(times) == 7
    for name in ("b4", "b5", "b4.c", "b5.c"):
        assert len(probe.logs.news(name)) == 1
    assert result.quiesced


def test_a_quick_restart_is_never_suspected() -> None:
    probe = Probe(chain(3), settings=SETTINGS)
    probe.simulation.crash("b1", at=10 * MS)
    probe.simulation.restart("b1", at=30 * MS)
    probe.simulation.run(settle=LATE)
    assert probe.logs.news("b0")[1:] == [(30 * MS, "connected", "b1")]
    assert probe.logs.news("b1.c")[1:] == [(30 * MS, "connected", "b1")]
    expected = [("start", ""), ("start", ""), *(("connected", name) for name in ("b0", "b2"))]
    assert received(probe, "b1")[:4] == expected
    assert received(probe, "b1")[4:] == [("connected", f"b{number}.c") for number in (0, 1, 2)]


def test_a_restart_without_memory_is_a_new_node_of_a_higher_incarnation() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    for at in (10, 400):
        probe.simulation.crash("b1", at=at * MS)
        probe.simulation.restart("b1", at=(at + 200) * MS)
    probe.simulation.run(settle=LATE)
    lives = [node.place for node in probe.logs.nodes if node.place.name == "b1"]
    assert [getattr(place, "incarnation", None) for place in lives] == [0, 1, 2]
    assert received(probe, "b0")[1:] == [("suspected", "b1"), ("connected", "b1"), ("trusted", "b1")] * 2


def test_a_fresh_broker_suspects_brokers_that_crashed_before() -> None:
    probe = Probe(chain(3), settings=SETTINGS)
    probe.simulation.crash("b0", at=10 * MS)
    probe.simulation.crash("b1", at=20 * MS)
    probe.simulation.restart("b1", at=300 * MS)
    probe.simulation.run(settle=LATE)
    news = [entry for entry in probe.logs.news("b1") if entry[2] == "b0"]
    assert [word for _, word, _ in news] == ["suspected"]
    assert 350 * MS <= news[0][0] <= 450 * MS


def test_a_restart_with_memory_continues_where_it_was() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.command("b1", 0, timer="soon", ms=100)
    probe.command("b1", 0, timer="sooner", ms=90)
    probe.command("b1", 0, timer="later", ms=500)
    probe.simulation.crash("b1", at=10 * MS)
    probe.send("b0", "b1", at=20 * MS)
    probe.simulation.restart("b1", at=300 * MS, memory=True)
    probe.simulation.run(settle=LATE)
    assert [entry for entry in probe.logs.news("b1") if entry[1] in ("start", "timer")] == [
        (0, "start", ""),
        (300 * MS, "timer", "sooner"),
        (300 * MS, "timer", "soon"),
        (500 * MS, "timer", "later"),
    ]
    assert probe.logs.notes("b1") == []
    assert sum(node.place.name == "b1" for node in probe.logs.nodes) == 1
    assert received(probe, "b0")[1:] == [("suspected", "b1"), ("connected", "b1"), ("trusted", "b1")]
    assert ("connected", "b0") in received(probe, "b1")


def test_timers_die_with_the_memory() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.command("b1", 0, timer="soon", ms=100)
    probe.command("b1", 0, timer="later", ms=500)
    probe.simulation.crash("b1", at=10 * MS)
    probe.simulation.restart("b1", at=300 * MS)
    probe.simulation.run(settle=LATE)
    assert received(probe, "b1", "timer") == []


def test_a_client_that_joins_late_comes_to_suspect_its_dead_broker() -> None:
    probe = Probe(chain(3), settings=SETTINGS)
    probe.simulation.crash("b1", at=10 * MS)
    probe.simulation.add_client("late", "b1", at=400 * MS)
    probe.simulation.run(settle=LATE)
    (start, (now, word, peer)) = probe.logs.news("late")
    assert start == (400 * MS, "start", "")
    assert (word, peer) == ("suspected", "b1")
    assert 450 * MS <= now <= 550 * MS


def test_connections_come_back_after_a_while_if_so_set() -> None:
    settings = Settings(reconnect_least_us=10 * MS, reconnect_most_us=30 * MS)
    probe = Probe(chain(3), settings=settings)
    probe.simulation.crash("b1", at=5 * MS)
    probe.simulation.restart("b1", at=10 * MS)
    probe.send("b0", "b1", at=15 * MS)
    probe.send("b0", "b1", at=60 * MS)
    probe.simulation.run(settle=LATE)
    ((now, word, _),) = probe.logs.news("b0")[1:]
    assert word == "connected"
    assert 20 * MS <= now <= 40 * MS
    assert probe.logs.notes("b1") == [(70 * MS, "b0", 0)]


def test_a_broker_that_is_still_reconnecting_can_be_suspected() -> None:
    settings = Settings(detect_least_us=50 * MS, detect_most_us=50 * MS, reconnect_least_us=100 * MS,
                        reconnect_most_us=100 * MS)  # fmt: skip
    probe = Probe(chain(2), settings=settings)
    probe.simulation.crash("b1", at=0)
    probe.simulation.restart("b1", at=10 * MS)
    probe.simulation.run(settle=LATE)
    assert probe.logs.news("b0")[1:] == [
        (50 * MS, "suspected", "b1"),
        (110 * MS, "connected", "b1"),
        (110 * MS, "trusted", "b1"),
    ]


def test_no_message_of_the_old_connection_arrives_after_connected() -> None:
    for seed in range(20):
        probe = Probe(chain(2), seed=seed, settings=Settings(latency=Latency(100 * MS, 100 * MS)))
        probe.send("b1", "b0", at=0, count=5)
        probe.simulation.crash("b1", at=10 * MS)
        probe.simulation.restart("b1", at=20 * MS)
        probe.simulation.run(settle=LATE)
        assert probe.logs.notes("b0") == []


# ---- cuts


def test_a_cut_parts_one_pair_only_and_sends_are_lost() -> None:
    probe = Probe(chain(3), settings=SETTINGS)
    probe.simulation.cut("b0", "b1", at=10 * MS)
    probe.send("b0", "b1", at=20 * MS)
    probe.send("b1", "b0", at=20 * MS)
    probe.send("b0", "b2", at=20 * MS)
    probe.simulation.heal("b1", "b0", at=40 * MS)
    probe.simulation.run(settle=LATE)
    assert probe.logs.notes("b0") == probe.logs.notes("b1") == []
    assert probe.logs.notes("b2") == [(40 * MS, "b0", 0)]
    assert received(probe, "b0")[1:] == [("connected", "b1")]
    assert received(probe, "b1")[1:] == [("connected", "b0")]
    assert len(received(probe, "b2")) == 1


def test_a_long_cut_makes_both_ends_suspect() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.cut("b0", "b1", at=10 * MS)
    probe.simulation.heal("b0", "b1", at=500 * MS)
    probe.simulation.run(settle=LATE)
    for name, other in (("b0", "b1"), ("b1", "b0")):
        assert received(probe, name)[1:] == [("suspected", other), ("connected", other), ("trusted", other)]
        assert 60 * MS <= probe.logs.news(name)[1][0] <= 160 * MS


def test_a_one_way_cut_loses_messages_in_one_direction_and_only_the_receiver_suspects() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.cut("b0", "b1", at=10 * MS, one_way=True)
    probe.send("b0", "b1", at=20 * MS)
    probe.send("b1", "b0", at=20 * MS)
    probe.simulation.heal("b0", "b1", at=500 * MS)
    probe.send("b0", "b1", at=600 * MS)
    probe.simulation.run(settle=LATE)
    assert [now for now, _, _ in probe.logs.notes("b0")] == [30 * MS]
    assert [now for now, _, _ in probe.logs.notes("b1")] == [610 * MS]
    assert received(probe, "b0")[1:] == [("connected", "b1")]
    assert received(probe, "b1")[1:] == [("suspected", "b0"), ("connected", "b0"), ("trusted", "b0")]


def test_when_an_end_of_a_one_way_cut_dies_the_connection_is_removed() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.cut("b0", "b1", at=10 * MS, one_way=True)
    probe.simulation.crash("b0", at=20 * MS)
    probe.simulation.restart("b0", at=300 * MS)
    probe.send("b1", "b0", at=400 * MS)
    probe.simulation.heal("b0", "b1", at=600 * MS)
    probe.simulation.run(settle=LATE)
    assert probe.logs.notes("b0") == []
    assert received(probe, "b1")[1:] == [("suspected", "b0"), ("connected", "b0"), ("trusted", "b0")]


def test_a_prefix_of_the_messages_in_flight_survives_a_cut_in_each_direction() -> None:
    lengths = set()
    for seed in range(30):
        probe = Probe(chain(2), seed=seed)
        probe.send("b0", "b1", at=0, count=4)
        probe.send("b1", "b0", at=0, count=4)
        probe.simulation.cut("b0", "b1", at=5 * MS)
        probe.simulation.heal("b0", "b1", at=LATE)
        probe.simulation.run(settle=LATE)
        for name in ("b0", "b1"):
            numbers = [number for _, _, number in probe.logs.notes(name)]
            assert numbers == [0, 1, 2, 3][: len(numbers)]
            lengths.add(len(numbers))
    assert lengths == set(range(5))


def test_a_client_can_be_cut_from_its_broker() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.cut("b0.c", "b0", at=10 * MS)
    probe.simulation.heal("b0.c", "b0", at=500 * MS)
    probe.simulation.run(settle=LATE)
    assert received(probe, "b0.c")[1:] == [("suspected", "b0"), ("connected", "b0"), ("trusted", "b0")]
    assert received(probe, "b0")[1:] == [("suspected", "b0.c"), ("connected", "b0.c"), ("trusted", "b0.c")]


def test_a_restart_across_a_cut_connects_at_the_heal() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.cut("b0", "b1", at=10 * MS)
    probe.simulation.crash("b1", at=20 * MS)
    probe.simulation.restart("b1", at=300 * MS)
    probe.simulation.heal("b0", "b1", at=600 * MS)
    probe.simulation.run(settle=LATE)
    assert received(probe, "b0")[1:] == [("suspected", "b1"), ("connected", "b1"), ("trusted", "b1")]
    assert [entry for entry in probe.logs.news("b0") if entry[1] == "connected"] == [(600 * MS, "connected", "b1")]
    assert [word for word, peer in received(probe, "b1") if peer == "b0"] == ["suspected", "connected", "trusted"]


def test_a_cut_that_never_heals_is_no_quiet_end() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.cut("b0", "b1", at=10 * MS)
    assert not probe.simulation.run(settle=LATE).quiesced


# ---- suspicions


def test_a_false_suspicion_loses_nothing() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.suspect("b0", "b1", at=10 * MS)
    probe.send("b0", "b1", at=20 * MS)
    probe.simulation.trust("b0", "b1", at=50 * MS)
    assert probe.simulation.run(settle=LATE).quiesced
    assert probe.logs.news("b0")[1:] == [(10 * MS, "suspected", "b1"), (50 * MS, "trusted", "b1")]
    assert probe.logs.notes("b1") == [(30 * MS, "b0", 0)]
    assert len(probe.logs.news("b1")) == 1


def test_a_suspicion_that_came_true_is_not_taken_back() -> None:
    probe = Probe(chain(2), settings=SETTINGS)
    probe.simulation.suspect("b0", "b1", at=10 * MS)
    probe.simulation.crash("b1", at=20 * MS)
    probe.simulation.trust("b0", "b1", at=300 * MS)
    probe.simulation.restart("b1", at=500 * MS)
    probe.simulation.run(settle=LATE)
    assert probe.logs.news("b0")[1:] == [
        (10 * MS, "suspected", "b1"),
        (500 * MS, "connected", "b1"),
        (500 * MS, "trusted", "b1"),
    ]


def test_a_suspicion_that_never_ends_is_no_quiet_end() -> None:
    probe = Probe(chain(2))
    probe.simulation.suspect("b0", "b1", at=10 * MS)
    assert not probe.simulation.run(settle=LATE).quiesced


# ---- mistakes in the script


def test_faults_that_do_not_fit_the_moment_are_refused() -> None:
    for plan, message in (
        (("crash", "crash"), "'b1' cannot crash at 20 ms: it has already crashed"),
        (("restart",), "'b1' cannot restart at 10 ms: it is running"),
        (("cut", "cut"), "'b0' and 'b1' cannot be cut at 20 ms: they are already cut"),
        (("heal",), "'b0' and 'b1' cannot be healed at 10 ms: they are not cut"),
    ):
        probe = Probe(chain(2))
        for number, fault in enumerate(plan, start=1):
            names = ("b1",) if fault in ("crash", "restart") else ("b0", "b1")
            getattr(probe.simulation, fault)(*names, at=number * 10 * MS)
        with pytest.raises(ScenarioError, match=message):
            probe.simulation.run(settle=LATE)

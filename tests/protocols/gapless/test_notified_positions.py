"""Brokers notify clients of final positions: few clients of each position, many in turns, and idle ones every second or
two."""

from itertools import pairwise

import pytest

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocols.gapless import positions
from gapless.protocols.gapless.client_messages import (
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    Position,
)

from .bench import Bench

WAVES_PER_S = 5


def with_clients(count: int) -> tuple[Bench, list[str]]:
    bench = Bench(1)
    clients = [f"c{number}" for number in range(count)]
    bench.attach("p", "b0")
    bench.say("p", "b0", ClientAdvertise(1, "p/a1", "topic = 'x'"))
    for client in clients:
        bench.attach(client, "b0")
        bench.say(client, "b0", ClientSubscribe(1, f"{client}/s1", "topic = 'x'"))
    bench.pass_time(2.0)
    bench.inboxes.clear()
    return bench, clients


def publish_for(bench: Bench, seconds: float, first: int = 1) -> int:
    following = first + int(10 * seconds)
    for number in range(first, following):
        bench.say("p", "b0", ClientPublish(1, EventRun.of([Event("p", number, {"topic": "x"})])))
        bench.pass_time(0.1)
    return following


def test_few_clients_receive_each_final_position() -> None:
    bench, clients = with_clients(3)
    publish_for(bench, 2.0)
    for client in clients:
        assert len(bench.received_by(client, Position)) == 2 * WAVES_PER_S


def test_idle_clients_receive_a_position_every_one_to_two_seconds() -> None:
    bench, clients = with_clients(20)
    bench.pass_time(10.0)
    received_by = {client: [each.position for each in bench.received_by(client, Position)] for client in clients}
    wave_us = 1_000_000 // WAVES_PER_S
    for times in received_by.values():
        assert 4 <= len(times) <= 10
        pauses = [later - one for one, later in pairwise(times)]
        assert positions.IDLE_US <= min(pauses) <= max(pauses) <= 2 * positions.IDLE_US + wave_us
    assert len({times[-1] for times in received_by.values()}) > 1, "they are not all told in the same step"
    bench.inboxes.clear()
    publish_for(bench, 0.3)
    for client in clients:
        assert bench.received_by(client, Position), "a client that gets events hears of the next position"


def test_many_clients_receive_them_in_turns_and_none_is_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "NOTIFIED_PER_S", 100)
    bench, clients = with_clients(59)  # and one for the publisher
    number = publish_for(bench, 1.0)
    bench.inboxes.clear()
    for _ in range(6):
        number = publish_for(bench, 1.0, number)
        received_by = {client: bench.received_by(client, Position) for client in clients}
        assert 95 <= sum(map(len, received_by.values())) <= 105
        assert all(1 <= len(each) <= 3 for each in received_by.values())
        for client, messages in received_by.items():
            assert messages[-1].position > bench.nodes["b0"].state.final.timestamp - 1_500_000
            bench.say(client, "b0", ClientGot(1, messages[-1].number))
        bench.inboxes.clear()

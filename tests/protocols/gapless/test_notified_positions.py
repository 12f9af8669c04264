"""Brokers notify clients of final positions: all of them each time if they are few, in turns if they are many."""

import pytest

from gapless.protocols.gapless import positions
from gapless.protocols.gapless.client_messages import ClientGot, ClientSubscribe, Position

from .bench import Bench

WAVES_PER_S = 5


def with_clients(count: int) -> tuple[Bench, list[str]]:
    bench = Bench(1)
    clients = [f"c{number}" for number in range(count)]
    for client in clients:
        bench.attach(client, "b0")
        bench.say(client, "b0", ClientSubscribe(1, f"{client}/s1", "topic = 'x'"))
    bench.pass_time(2.0)
    bench.heard.clear()
    return bench, clients


def test_few_clients_hear_of_each_final_position() -> None:
    bench, clients = with_clients(3)
    bench.pass_time(2.0)
    for client in clients:
        assert len(bench.told(client, Position)) == 2 * WAVES_PER_S


def test_many_clients_hear_of_them_in_turns_and_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "TOLD_PER_S", 100)
    bench, clients = with_clients(60)
    for _ in range(6):
        bench.pass_time(1.0)
        told = {client: bench.told(client, Position) for client in clients}
        assert 95 <= sum(map(len, told.values())) <= 105
        assert all(1 <= len(each) <= 3 for each in told.values())
        for client, messages in told.items():
            assert messages[-1].position > bench.nodes["b0"].state.final.timestamp - 1_500_000
            bench.say(client, "b0", ClientGot(1, messages[-1].number))
        bench.heard.clear()

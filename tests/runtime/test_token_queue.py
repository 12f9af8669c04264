"""Who sends many tokens does not keep others out: neither from one host, nor of one user, nor of many."""

import pytest

from gapless.runtime.token_queue import TokenQueue


def _served(queue: TokenQueue[str]) -> list[str]:
    found = []
    while (item := queue.next()) is not None:
        found.append(item)
    return found


def test_alone_they_come_in_their_order() -> None:
    queue: TokenQueue[str] = TokenQueue(4)
    assert [queue.add(f"{n}", f"10.0.0.{n}", f"user{n}") for n in range(4)] == [None] * 4
    assert len(queue) == 4
    assert _served(queue) == ["0", "1", "2", "3"]
    assert queue.next() is None


@pytest.mark.parametrize(
    ("hosts", "users"),
    [
        (["6.6.6.6"] * 100, ["ann"] * 100),
        (["6.6.6.6"] * 100, [f"guess{n}" for n in range(100)]),
        ([f"6.6.6.{n}" for n in range(100)], ["boss"] * 100),
    ],
)
def test_who_comes_from_elsewhere_or_as_another_gets_a_place_and_a_turn(hosts: list[str], users: list[str]) -> None:
    queue: TokenQueue[str] = TokenQueue(8)
    for host, user in zip(hosts[:50], users, strict=False):
        queue.add("bad", host, user)
    assert queue.add("ann", "10.0.0.1", "ann") == "bad"
    for host, user in zip(hosts[50:], users[50:], strict=True):
        assert queue.add("bad", host, user) == "bad"
    assert len(queue) == 8
    assert "ann" in [queue.next(), queue.next()]


def test_who_shares_its_host_with_many_is_served_late_and_served() -> None:
    queue: TokenQueue[str] = TokenQueue(8)
    for number in range(4):
        queue.add(f"office {number}", "10.0.0.1", f"user{number}")
    served = []
    for number in range(16):
        queue.add("other", f"10.0.1.{number}", f"other{number}")
        served.append(queue.next())
    assert [each for each in served if each != "other"] == [f"office {n}" for n in range(4)]

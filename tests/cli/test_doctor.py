"""What `gapless doctor` makes of what brokers say of themselves; `test_network_commands` asks real ones."""

from typing import Any

import pytest

from gapless.cli.doctor import ADVICE, diagnose
from gapless.runtime.waiting import KINDS

ADDRESSES = {name: f"10.0.0.{number}:7400" for number, name in enumerate(("b0", "b1", "b2"), 1)}


def link(**told: Any) -> dict[str, Any]:
    return {"up": True, "suspected": False, "left": False, "queue": 0} | told


def report(**told: Any) -> dict[str, Any]:
    return {"f": 1, "links": {}, "waits": [], "paused": False} | told


def sentences(reports: dict[str, dict[str, Any] | None]) -> list[str]:
    return [item.what for item in diagnose(reports, ADDRESSES)]


def test_nothing_is_wrong_with_a_healthy_network() -> None:
    assert sentences({"b0": report(links={"b1": link()}), "b1": report(links={"b0": link()})}) == []


def test_who_does_not_answer_is_dead_has_left_or_is_only_out_of_reach_from_here() -> None:
    down = link(up=False, suspected=True)
    assert sentences({"b0": report(links={"b1": down}), "b1": None}) == ["b1 does not answer, and nobody hears it"]
    assert sentences({"b0": report(links={"b1": link()}), "b1": None}) == [
        "b1 does not answer from here, but other brokers hear it"
    ]
    gone = link(up=False, left=True)
    assert sentences({"b0": report(links={"b1": gone}), "b1": None}) == ["b1 has left in good order"]


def test_more_silent_brokers_than_the_network_is_made_for_are_said_so() -> None:
    found = diagnose({"b0": report(), "b1": None, "b2": None}, ADDRESSES)
    assert found[-1].what == "2 brokers do not answer, and the network is made for 1 failures in a neighbourhood"
    assert "before any of them starts with an empty disk" in found[-1].todo


def test_a_connection_that_one_end_misses_carries_in_one_direction() -> None:
    deaf = link(suspected=True)
    both: dict[str, dict[str, Any] | None] = {
        "b0": report(links={"b1": deaf}),
        "b1": report(links={"b0": deaf}),
    }
    assert sentences(both) == ["b0 and b1 do not hear each other, and both are up"]
    [item] = diagnose({"b0": report(links={"b1": deaf}), "b1": report(links={"b0": link()})}, ADDRESSES)
    assert item.what == "b0 does not hear b1, but b1 hears b0"
    assert "from b1 to b0" in item.todo


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_wait_has_an_advice_and_short_waits_are_nothing_unusual(kind: str) -> None:
    wait = {"kind": kind, "text": "waits for ann, for 7 s", "names": ("ann",), "seconds": 7.0, "is_long": True}
    [item] = diagnose({"b0": report(waits=[wait])}, ADDRESSES)
    assert item.what == "b0 waits for ann, for 7 s"
    assert item.todo == ADVICE[kind].replace("NAME", "ann")
    assert sentences({"b0": report(waits=[wait | {"is_long": False}])}) == []


def test_who_holds_its_clients_back_names_the_slowest_peer() -> None:
    links = {"b1": link(queue=3), "b2": link(queue=9_000)}
    assert sentences({"b0": report(links=links, paused=True)}) == [
        "b0 holds its clients back: too much waits to be sent to b2"
    ]

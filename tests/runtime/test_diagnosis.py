"""The diagnosis of `gapless doctor` from brokers' reports; `test_network_commands` uses real brokers."""

from typing import Any

import pytest

from gapless.runtime.diagnosis import ADVICE, Finding, diagnose
from gapless.runtime.report_query import Answer, Silence
from gapless.runtime.waiting import KINDS

ADDRESSES = {name: f"10.0.0.{number}:7400" for number, name in enumerate(("b0", "b1", "b2"), 1)}


def link(**fields: Any) -> dict[str, Any]:
    usual = {"up": True, "suspected": False, "left": False, "left_because": "", "silent_s": 0.0, "queue": 0}
    return usual | fields


DOWN = link(up=False, suspected=True, silent_s=60.0)


def report(*, ahead_s: float = 0.0, doubt_s: float = 0.001, **fields: Any) -> Answer:
    usual = {
        "f": 1, "links": {}, "waits": [], "paused": False, "ready": True, "uptime_s": 60.0,
        "turns": {"late_ms": 1.0, "longest_ms": 20.0, "what": "a Publish from ann"},
        "clock": {"ahead_s": 0.0, "bound_s": 0.5, "is_wrong": False, "compared_with": [], "jump_s": 0.0},
        "data": {"directory": "/var/lib/gapless", "damaged": []},
        "overview": {},
    }  # fmt: skip
    return Answer(usual | fields, ahead_s=ahead_s, doubt_s=doubt_s)


def silent(silence: Silence, why: str = "") -> Answer:
    return Answer(silence=silence, why=why)


def wait(kind: str, *names: str) -> dict[str, Any]:
    return {"kind": kind, "text": "waits for ann, for 7 s", "names": names, "seconds": 7.0, "is_long": True}


def findings(**answers: Answer) -> list[Finding]:
    return diagnose(answers, ADDRESSES)


def sentences(**answers: Answer) -> list[str]:
    return [item.what for item in findings(**answers)]


def test_a_healthy_network_has_no_findings() -> None:
    assert sentences(b0=report(links={"b1": link()}), b1=report(links={"b0": link()})) == []


# ---- brokers that do not answer ---------------------------------------------------------------------------


def test_the_advice_for_a_crashed_broker_is_to_start_it() -> None:
    [item] = findings(b0=report(links={"b1": DOWN}), b1=silent("nobody"))
    assert item.what == "b1 is not running: nothing listens on 10.0.0.2:7400, and no broker hears it"
    assert item.todo.startswith("start it")


@pytest.mark.parametrize("seen", [link(), DOWN])
def test_a_frozen_broker_is_not_to_be_started_but_to_continue(seen: dict[str, Any]) -> None:
    [item] = findings(b0=report(links={"b1": seen}), b1=silent("frozen"))
    assert item.what == "b1 accepts connections and does not answer: its process is paused, or overloaded"
    assert "resume it if it is stopped (kill -CONT)" in item.todo
    assert "start it;" not in item.todo


def test_a_broker_that_left_because_its_disk_is_full_reports_it() -> None:
    gone = link(up=False, left=True, left_because="/var/lib/b1: the disk is full; make room on it and start it again")
    [item] = findings(b0=report(links={"b1": gone}), b1=silent("nobody"))
    assert item.what == "b1 has left: /var/lib/b1: the disk is full; make room on it and start it again"
    assert item.todo == "follow that advice, then start b1 again"


def test_a_broker_that_left_in_good_order_is_started_when_it_is_wanted() -> None:
    gone = link(up=False, left=True)
    assert sentences(b0=report(links={"b1": gone}), b1=silent("nobody")) == ["b1 has shut down gracefully"]


def test_an_unreachable_host_is_no_crashed_process() -> None:
    [item] = findings(b0=report(links={"b1": DOWN}), b1=silent("unreachable", "No route to host"))
    assert item.what == "b1 cannot be reached (No route to host), and no broker hears it"
    assert item.todo == "start its host, or repair the network to 10.0.0.2:7400"


def test_a_broker_that_others_reach_is_reported_as_unreachable_from_here() -> None:
    for silence in ("nobody", "unreachable"):
        assert sentences(b0=report(links={"b1": link()}), b1=silent(silence)) == [
            "b1 does not answer from here, but other brokers hear it"
        ]


def test_a_broker_that_refuses_the_query_gives_the_reason() -> None:
    assert sentences(b0=report(), b1=silent("turned-down", "its certificate has expired")) == [
        "b1 refuses to report its status: its certificate has expired"
    ]


def test_a_broker_that_has_just_started_is_only_named() -> None:
    [item] = findings(b0=report(ready=False, uptime_s=2.4))
    assert item.what == "b0 has run for 2 s and has not joined yet"


def test_forgotten_brokers_are_replaced_and_not_restarted() -> None:
    fields = report(overview={"forgotten": ["b1", "b2"]})
    gone = findings(b0=fields, b1=silent("nobody"), b2=silent("nobody"))
    assert [item.what.split(":")[0] for item in gone] == [
        "b1 does not answer, and no broker waits for it", "b2 does not answer, and no broker waits for it"
    ]  # fmt: skip
    assert gone[0].todo == "start a replacement at 10.0.0.2:7400 with an empty data directory"
    assert findings(b0=fields, b1=report(), b2=report()) == []


def test_more_silent_brokers_than_the_network_tolerates_are_reported() -> None:
    found = findings(b0=report(), b1=silent("nobody"), b2=silent("nobody"))
    assert found[-1].what == "2 brokers do not answer, but the network is configured for 1 failures of adjacent brokers"
    assert "before any of them starts with an empty disk" in found[-1].todo


# ---- connections ------------------------------------------------------------------------------------------


def test_a_connection_that_one_end_misses_carries_in_one_direction() -> None:
    deaf = link(suspected=True, silent_s=9.0)
    assert sentences(b0=report(links={"b1": deaf}), b1=report(links={"b0": deaf})) == [
        "b0 and b1 do not hear each other, although both are up"
    ]
    [item] = findings(b0=report(links={"b1": deaf}), b1=report(links={"b0": link()}))
    assert item.what == "b0 does not hear b1, but b1 hears b0"
    assert "b1 from reaching b0" in item.todo


def test_a_momentary_suspicion_is_no_broken_connection() -> None:
    doubted = link(suspected=True, silent_s=2.1)
    assert sentences(b0=report(links={"b1": doubted}), b1=report(links={"b0": link()})) == []


# ---- waits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_wait_has_an_advice_and_short_waits_are_normal(kind: str) -> None:
    [item] = findings(b0=report(waits=[wait(kind, "ann")]))
    assert item.what == "b0 waits for ann, for 7 s"
    assert item.todo.startswith(ADVICE[kind])
    assert sentences(b0=report(waits=[wait(kind, "ann") | {"is_long": False}])) == []


def test_lost_brokers_are_forgotten_with_the_commands_as_printed() -> None:
    answers = {"b0": report(waits=[wait("return", "b1", "b2")]), "b1": silent("nobody"), "b2": silent("nobody")}
    todo = diagnose(answers, ADDRESSES, " --config my\\ net.toml")[-1].todo
    assert todo.endswith(
        "if b1 and b2 will never return: "
        "gapless network forget b1 --config my\\ net.toml && gapless network forget b2 --config my\\ net.toml"
    )


def test_forgetting_a_broker_that_answers_is_refused() -> None:
    [item] = findings(b0=report(waits=[wait("suspected", "b1")]), b1=report())
    assert "forget" not in item.todo


def test_forgetting_a_frozen_broker_is_refused_too() -> None:
    todo = diagnose({"b0": report(waits=[wait("suspected", "b1")]), "b1": silent("frozen")}, ADDRESSES)[-1].todo
    assert "forget" not in todo


# ---- running brokers with problems ------------------------------------------------------------------------


def test_a_clock_that_differs_from_those_of_most_is_named() -> None:
    [item] = findings(b0=report(ahead_s=3.0), b1=report(ahead_s=3.1), b2=report(ahead_s=-0.4))
    assert item.what == "the clock of b2 is 3.4 s behind those of most other brokers", "ours may be wrong, too"
    assert sentences(b0=report(), b1=report(ahead_s=0.1), b2=report(ahead_s=0.45)) == []


def test_a_slow_answer_has_little_weight_for_a_clock() -> None:
    assert sentences(b0=report(), b1=report(), b2=report(ahead_s=0.9, doubt_s=0.6)) == []


def test_a_clock_that_was_set_while_its_broker_ran_is_named() -> None:
    clock = {"ahead_s": 3_600.0, "bound_s": 0.5, "is_wrong": True, "compared_with": ["b1"], "jump_s": 3_600.0}
    [item] = findings(b0=report(), b1=report(clock=clock))
    assert (
        item.what
        == "the clock of b1's host was set forward by 3,600.0 s while b1 ran, and its timestamps do not follow"
    )
    assert "restart b1" in item.todo


def test_of_two_clocks_neither_is_known_to_be_right() -> None:
    [what] = sentences(b0=report(), b1=report(ahead_s=3600.0))
    assert what == "the clocks of the brokers differ, and no majority agrees (b0 -1800.0 s, b1 +1800.0 s)"


def test_an_overloaded_broker_is_named_with_what_keeps_it() -> None:
    turns = {"late_ms": 1_200.0, "longest_ms": 1_800.0, "what": "an Attach from ann"}
    [what] = sentences(b0=report(turns=turns))
    assert what == (
        "b0 is overloaded: its event loop ran 1,200 ms late within the last ten seconds; the longest turn took "
        "1,800 ms (an Attach from ann)"
    )


def test_a_broker_that_was_paused_is_not_only_called_overloaded() -> None:
    turns = {"late_ms": 20_000.0, "longest_ms": 3.0, "what": "a Frame from b2"}
    [item] = findings(b0=report(turns=turns))
    assert item.what.startswith("b0 is overloaded or was paused: its event loop ran 20,000 ms late")
    assert item.todo.startswith("if it was not paused (kill -STOP, a suspended machine): give b0 its own processor")


def test_damaged_data_is_named_with_the_way_out() -> None:
    data = {"directory": "/srv/my data", "damaged": ["history of b1 is damaged", "journal 'own' is damaged"]}
    [item] = findings(b0=report(data=data))
    assert item.what == "b0 has found damage in its data: history of b1 is damaged, and 1 more"
    assert "gapless data check '/srv/my data'" in item.todo


def test_a_broker_that_delays_its_clients_names_the_slowest_peer() -> None:
    links = {"b1": link(queue=3), "b2": link(queue=9_000)}
    assert sentences(b0=report(links=links, paused=True)) == [
        "b0 pauses its clients, because its send queue to b2 is too long"
    ]

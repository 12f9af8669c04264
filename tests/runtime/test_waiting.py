"""A broker reports for whom it waits and since when: in its status, its log, over HTTP and in `gapless status`."""

import asyncio
from typing import Any

import pytest

from gapless.cli.status import remarks
from gapless.overlay import chain
from gapless.protocols.gapless.membership_messages import Contribution
from gapless.protocols.gapless.overview import LAGGING_SHOWN
from gapless.runtime import waiting
from gapless.runtime.event_loop import run
from gapless.runtime.logs import logger_of
from gapless.runtime.membership_log import LAGGING_MAX, MembershipLog
from gapless.runtime.waiting import KINDS, LONG_S, Waiting
from tests.conftest import Cli

from .local import Local, local
from .logged import logged
from .test_links import connected
from .test_log_backoff import Clock
from .test_operator_messages import fetch, until_said, with_http

HANDOVER = {"joined": True, "handovers": [{"around": ["b1"], "waits_for": ["b2", "b3"]}]}


def test_a_wait_is_reported_with_its_duration_when_it_is_long_and_when_it_is_over() -> None:
    clock = Clock()
    found = Waiting(logger_of("b0"), clock)
    with logged() as log:
        found.look(HANDOVER, {})
        assert [(wait.kind, wait.names, wait.stops_broker) for wait in found.waits] == [
            ("handover", ("b2", "b3"), False)
        ]
        assert log.records == []
        clock.now = LONG_S
        found.look(HANDOVER, {})
        assert [wait.text for wait in found.waits] == ["waits for b2, b3, in a handover around b1, for 5 s"]
        assert found.waits[0].stops_broker
        for tenth in range(20):
            clock.now = LONG_S + tenth / 10
            found.look(HANDOVER, {})
        assert len(log.of("b0", "waits for b2, b3")) == 2, "not each time that it is looked at"
        found.look({"joined": True, "handovers": []}, {})
        assert found.waits == []
        assert log.of("b0")[-1] == "no longer waiting"


def test_an_undecided_name_and_unavailable_history_are_named_unless_they_make_progress() -> None:
    clock = Clock()
    found = Waiting(logger_of("b0"), clock)
    reading = {"client": "ann", "subscription": "s", "position": 7, "waits_for": ["b3"]}
    slow = {**reading, "client": "bob", "waits_for": ["bob"]}

    def look(change: int) -> None:
        names = {"billing": {"change": change, "waits_for": ["b1", "b2"]}}
        found.look({"durable_changes": names, "history": {"waiting": [reading, slow]}}, {})

    look(1)
    clock.now = LONG_S
    look(1)
    assert [wait.text for wait in found.waits] == [
        "waits for a majority of the registry replicas, to change 'billing' (not b1, b2), for 5 s",
        "waits for b3: client ann reads history that is kept there, for 5 s",
    ]
    assert not any(wait.stops_broker for wait in found.waits)
    look(2)
    assert [wait.is_long for wait in found.waits] == [False, True]


def test_a_client_that_is_deferred_is_named() -> None:
    clock = Clock()
    found = Waiting(logger_of("b0"), clock)
    for clock.now in (0, LONG_S):
        found.look({"deferred": {"ann": "its last session is not closed"}}, {})
    [wait] = found.waits
    assert wait.text == "waits before it accepts client ann: its last session is not closed, for 5 s"
    assert (wait.kind, wait.names, wait.is_long, wait.stops_broker) == ("attach", ("ann",), True, False)


def test_blocked_publishers_are_named_and_logged_less_often_if_that_happens_again_and_again() -> None:
    clock = Clock()
    found = Waiting(logger_of("b0"), clock)
    with logged() as log:
        for turn in range(40):
            found.look(blocked(turn), {})
            clock.now += LONG_S
            assert [wait.is_long for wait in found.waits] == [True], "it is as long as it is now"
            found.look(blocked(turn), {})
        assert 3 <= len(log.of("b0", "waits for b3")) <= 8
        found.look({}, {})
        assert len(log.of("b0", "no longer waiting")) == len(log.of("b0", "waits for b3"))


def test_lagging_clients_and_those_that_caught_up_are_logged() -> None:
    news = MembershipLog(logger_of("b0"), Clock())
    with logged() as log:
        news.log_changes({"lagging": ["ann", "bob"]})
        news.log_changes({"lagging": ["ann", "bob"]})
        news.log_changes({"lagging": []}, lambda client: client == "ann")
        assert log.of("b0") == [
            "client ann lags: brokers serve it from history from now on",
            "client bob lags: brokers serve it from history from now on",
            "client ann has caught up",
            "client bob lagged and no longer has a session here",
        ]
        news.log_changes({"lagging": ["ann"]})
        news.log_changes({"lagging": []})
        assert len(log.of("b0")) == 4, "not each time"


def test_if_more_clients_lag_than_are_reported_none_is_known_to_have_caught_up() -> None:
    assert LAGGING_MAX == LAGGING_SHOWN
    news = MembershipLog(logger_of("b0"), Clock())
    with logged() as log:
        news.log_changes({"lagging": [f"c{number}" for number in range(LAGGING_MAX)]})
        news.log_changes({"lagging": [f"c{number}" for number in range(1, LAGGING_MAX + 1)]})
        assert not log.of("b0", "has caught up")
        news.log_changes({"lagging": [f"c{number}" for number in range(2, LAGGING_MAX + 1)]})
        assert log.of("b0", "has caught up") == ["client c1 has caught up"]


def test_readers_of_history_are_listed_with_lag_and_waits() -> None:
    def reading(client: str, *waits_for: str) -> dict[str, Any]:
        return {"client": client, "subscription": "s1", "position": 3_000_000, "waits_for": list(waits_for)}

    waiting = [reading("ann", "ann"), reading("bob", "b1", "b2"), *(reading(f"c{number}") for number in range(5))]
    history = {"final": 7_000_000, "waiting": waiting, "reads": 9}
    report = {"links": {}, "overview": {"history": history}, "waits": [], "paused": False}
    assert remarks({"b0": report}) == [
        "client ann reads history at b0, 4 s behind (s1), and waits for the client to take events",
        "client bob reads history at b0, 4 s behind (s1), and waits for b1 or b2",
        *(f"client c{number} reads history at b0, 4 s behind (s1), and makes progress" for number in range(3)),
        "4 more read history at b0",
    ]


def test_publishers_that_a_cut_waits_for_are_named() -> None:
    found = Waiting(logger_of("b0"), Clock())
    found.look(
        {"suspected": ["b3"], "handovers": [{"around": ["b1", "b2"], "waits_for": [], "needs_back": ["b2"]}]}, {}
    )
    assert [(wait.kind, wait.names) for wait in found.waits] == [("suspected", ("b3",)), ("return", ("b2",))]
    assert [wait.what for wait in found.waits] == [
        "for b3: no heartbeat, but its neighbours have not excluded it",
        "for b2 to return: no other broker has everything that was confirmed there",
    ]
    assert {wait.kind for wait in found.waits} <= set(KINDS)


def blocked(processed: int) -> dict[str, Any]:
    return {"blocked_publishers": {"clients": ["ann"], "processed_by_all": processed, "waits_for": ["b3"]}}


def test_a_handover_continued_with_others_is_the_same_wait_and_progress_begins_another() -> None:
    clock = Clock()
    found = Waiting(logger_of("b0"), clock)
    found.look(HANDOVER, {})
    clock.now = 3.0
    found.look({"handovers": [{"around": ["b1", "b4"], "waits_for": ["b3"]}]}, {})
    assert found.waits[0].seconds == 3.0
    found.look(blocked(5), {})
    clock.now = 10.0
    found.look(blocked(5), {})
    [wait] = found.waits
    assert (wait.kind, wait.seconds, wait.stops_broker) == ("publish", 7.0, False)
    assert wait.text == "waits for b3: until then ann cannot publish, as the window is full, for 7 s"
    found.look(blocked(6), {})
    assert found.waits[0].seconds == 0.0, "all brokers have processed more"


def test_an_incarnation_that_was_not_accepted_waits() -> None:
    clock = Clock()
    found = Waiting(logger_of("b0"), clock)
    found.look({"incarnation": 5, "joined": False, "handovers": []}, {})
    clock.now = 6.0
    found.look({"incarnation": 5, "joined": False, "handovers": []}, {})
    assert found.waits[0].text == "waits to rejoin: its neighbours have not accepted it yet, for 6 s"
    assert found.waits[0].stops_broker


async def stuck(network: Local) -> None:
    await connected(network, pairs=5)
    node: Any = network.brokers["b2"].links.host.node
    send = node.state.send
    node.state.send = lambda peer, body: None if isinstance(body, Contribution) else send(peer, body)
    await network.crash("b1")


def test_a_network_with_a_handover_that_does_not_end_is_not_up(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONG_S", 0.5)

    async def main() -> None:
        async with local(chain(4), f=1) as network:
            endpoint, url = await with_http(network, "b0")
            assert (await asyncio.to_thread(fetch, f"{url}/healthz"))[:2] == (200, b"ok\n")
            shown = await asyncio.to_thread(cli, "status", "--url", network.at("b0"))
            assert (shown.code, "4 of 4 up" in shown.out) == (0, True)
            with logged() as log:
                await stuck(network)
                await until_said(log, "b0", "waits for b2, in a handover around b1")
            status, body, _ = await asyncio.to_thread(fetch, f"{url}/healthz")
            assert status == 503
            assert body.startswith(b"waits for b2, in a handover around b1, for ")
            metrics = (await asyncio.to_thread(fetch, f"{url}/metrics"))[1].decode()
            assert "gapless_up 0.0" in metrics
            assert "gapless_handovers 1.0" in metrics
            shown = await asyncio.to_thread(cli, "status", "--url", network.at("b0"))
            assert shown.code == 1
            assert "b0 waits for b2, in a handover around b1" in " ".join(shown.out.split())
            assert "4 of 4 up" not in shown.out
            endpoint.stop()

    run(main())

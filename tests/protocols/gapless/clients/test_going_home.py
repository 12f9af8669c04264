"""Sessions go back to the broker at which their clients began them, when it has returned."""

from pathlib import Path
from typing import Any

from gapless.protocol import Received, Send
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Gone,
    NotYet,
    Safe,
)
from gapless.simulator.scenario_file import load_scenario
from gapless.simulator.scenario_run import prepare, run_prepared
from tests.protocols.gapless.clients.test_attaching import Desk, event, publishing_desk

SCENARIO = Path(__file__).parents[1] / "scenarios" / "given_back.toml"


def test_busy_and_idle_clients_are_back_at_their_broker() -> None:
    scenario = load_scenario(SCENARIO)
    simulation = prepare(scenario, None)
    run_prepared(scenario, simulation)
    brokers = {name: simulation.slots[name].node.broker for name in ("p0", "c0", "c1")}  # type: ignore[union-attr]
    assert brokers == {"p0": "b1", "c0": "b1", "c1": "b3"}


def leaving(desk: Desk) -> Any:
    """The clients' side of the desk's broker, with all sessions about to leave for where they began."""
    clients = desk.node.life.clients
    for session in clients.sessions.values():
        session.place = "elsewhere"
    assert set(clients.home.give_back("elsewhere")) == {"p", "c"}
    return clients


def test_what_is_given_back_outranks_what_is_here() -> None:
    desk = publishing_desk()
    clients = desk.node.life.clients
    clients.sessions["c"].place = "elsewhere"
    records = clients.home.give_back("elsewhere")
    assert list(records) == ["c"]
    assert records["c"].epoch == clients.sessions["c"].epoch + 1
    assert records["c"].place == "elsewhere"


def test_who_is_busy_stays() -> None:
    desk = publishing_desk()
    clients = desk.node.life.clients
    session = clients.sessions["p"]
    session.place = "elsewhere"
    session.in_flight = 1
    assert clients.home.give_back("elsewhere") == {}
    assert not clients.home.hold_still("elsewhere")
    session.in_flight = 0
    assert clients.home.hold_still("elsewhere")
    del session.stable["a"]
    assert not clients.home.hold_still("elsewhere"), "an advertisement that is not stable is still under way"


def test_who_leaves_is_told_to_ask_again_and_may_still_confirm() -> None:
    desk = publishing_desk()
    desk.hear("c", ClientSubscribe(2, "s", "TRUE"))
    desk.hear("p", ClientPublish(2, [event(1)]))
    clients = leaving(desk)
    assert desk.hear("c", Attach(3, "b0/0", [], {}, [], 1)) == [NotYet(3)]
    assert clients.sessions["c"].outbox
    desk.hear("c", ClientGot(2, 1))
    assert not clients.sessions["c"].outbox
    assert desk.hear("p", ClientPublish(2, [event(2)])) == [], "it says so again where it goes"


def test_a_hand_over_that_comes_to_nothing_lets_them_go_on() -> None:
    desk = publishing_desk()
    desk.hear("c", ClientSubscribe(2, "s", "TRUE"))
    clients = leaving(desk)
    desk.hear("p", ClientPublish(2, [event(1)]))
    desk.node._effects = []
    clients.home.go_on_here()
    told: list[Any] = [effect.message for effect in desk.node._effects if isinstance(effect, Send)]
    assert told == [Gone(2)], "p was ignored, and has to say all again; c was not"
    told = [
        message for _, message in desk.give(Received("p", Attach(3, "b0/0", [], {"a": ("TRUE", 1)}, [event(1)], 1)))
    ]
    assert any(isinstance(message, Attached) for message in told)
    assert Safe(3, 1) in told
    assert any(isinstance(message, Delivery) for message in told)

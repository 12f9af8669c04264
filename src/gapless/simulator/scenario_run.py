"""Runs scenarios: translates them into calls of the engine.

Actions and faults are scheduled in the order of the file; those of the same time happen in that
order, actions before faults.
"""

from functools import singledispatch
from typing import Any

import msgspec

from gapless.event_runs import EventTable
from gapless.names import MoveDurable
from gapless.positions import Position
from gapless.protocol import (
    NEWEST,
    Advertise,
    ProtocolSpec,
    Publish,
    PublishMany,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless.registry import find_protocol
from gapless.simulator import scenario as parts
from gapless.simulator.engine import Simulation
from gapless.simulator.networks import microseconds, overlay_of, settings_of
from gapless.simulator.options import convert_options
from gapless.simulator.replies import ReplyRule
from gapless.simulator.result import Result
from gapless.simulator.scenario import Scenario
from gapless.trace import Recorder

__all__ = ["prepare", "run_prepared", "run_scenario"]


def run_scenario(
    scenario: Scenario,
    seed: int | None = None,
    with_messages: bool = False,
    *,
    protocol: ProtocolSpec | None = None,
    check_invariants: bool = False,
) -> Result:
    """Run the scenario once. A given seed or protocol replaces the scenario's own."""
    spec = protocol or find_protocol(scenario.protocol.name)
    seed = scenario.run.seed if seed is None else seed
    options = msgspec.json.encode(convert_options(spec, scenario.protocol.options)).decode()
    recorder = Recorder(
        run=f"{scenario.name}/{spec.name}/{seed}", protocol=spec.name, guarantee=spec.guarantee,
        scenario=scenario.name, seed=seed, brokers=len(overlay_of(scenario.network).brokers), f=scenario.network.f,
        options=options, with_messages=with_messages,
    )  # fmt: skip
    simulation = prepare(scenario, recorder, seed, with_messages, protocol=spec, check_invariants=check_invariants)
    return run_prepared(scenario, simulation)


def prepare(
    scenario: Scenario, recorder: Recorder | None, seed: int | None = None, with_messages: bool = False, *,
    protocol: ProtocolSpec | None = None, check_invariants: bool = False,
) -> Simulation:  # fmt: skip
    """Return the simulation with everything scheduled, for callers that inspect the nodes afterwards."""
    simulation = Simulation(
        overlay_of(scenario.network), protocol or find_protocol(scenario.protocol.name), f=scenario.network.f,
        options=scenario.protocol.options, settings=settings_of(scenario.network, scenario.run),
        seed=scenario.run.seed if seed is None else seed, recorder=recorder, with_messages=with_messages,
        check_invariants=check_invariants,
    )  # fmt: skip
    _put_script(scenario, simulation)
    return simulation


def run_prepared(scenario: Scenario, simulation: Simulation) -> Result:
    """Run the simulation until the end that the scenario defines."""
    until = None if scenario.run.until_ms is None else microseconds(scenario.run.until_ms)
    return simulation.run(until=until, settle=microseconds(scenario.run.settle_ms))


def _put_script(scenario: Scenario, simulation: Simulation) -> None:
    for client in scenario.clients:
        latency_us = None if client.latency_ms is None else microseconds(client.latency_ms)
        simulation.add_client(
            client.name, client.broker, at=microseconds(client.join_ms), latency_us=latency_us,
            consume_us=microseconds(client.consume_ms),
        )  # fmt: skip
    for reply in scenario.replies:
        delay_us, at_most, after = microseconds(reply.delay_ms), reply.at_most, reply.after
        simulation.reply(
            ReplyRule(reply.client, reply.attributes, reply.subscription, reply.probability, at_most, delay_us, after)
        )
    for row in (*scenario.actions, *scenario.faults):
        _put(row, simulation, microseconds(row.at_ms))


@singledispatch
def _put(row: Any, simulation: Simulation, at: int) -> None:
    raise AssertionError(f"cannot schedule {row!r}")


@_put.register
def _(row: parts.SubscribeAction, simulation: Simulation, at: int) -> None:
    since = None if row.since_ms < 0 else Position.at(microseconds(row.since_ms))
    until = None if row.until_ms == 0 else NEWEST if row.until_ms < 0 else Position.at(microseconds(row.until_ms))
    call = Subscribe(
        row.subscription, row.filter, row.ready, since, until, row.name, row.ack, row.replace, row.group,
        row.redeliver_s, row.max_deliveries,
    )  # fmt: skip
    simulation.call(row.client, call, at=at)


@_put.register
def _(row: parts.AckAction, simulation: Simulation, at: int) -> None:
    simulation.acknowledge(row.client, row.subscription, at=at)


@_put.register
def _(row: parts.AckEachAction, simulation: Simulation, at: int) -> None:
    simulation.acknowledge_last(row.client, row.subscription, at=at)


@_put.register
def _(row: parts.NackAction, simulation: Simulation, at: int) -> None:
    simulation.give_back(row.client, row.subscription, microseconds(row.delay_ms), at=at)


@_put.register
def _(row: parts.InProgressAction, simulation: Simulation, at: int) -> None:
    simulation.extend(row.client, row.subscription, at=at)


@_put.register
def _(row: parts.MoveAction, simulation: Simulation, at: int) -> None:
    position = Position.at(0) if row.to == "earliest" else None
    simulation.call(row.client, MoveDurable(f"{row.client}/move/{at}", row.name, row.filter, position), at=at)


@_put.register
def _(row: parts.UnsubscribeAction, simulation: Simulation, at: int) -> None:
    simulation.call(row.client, Unsubscribe(row.subscription), at=at)


@_put.register
def _(row: parts.AdvertiseAction, simulation: Simulation, at: int) -> None:
    simulation.call(row.client, Advertise(row.advertisement, row.filter), at=at)


@_put.register
def _(row: parts.UnadvertiseAction, simulation: Simulation, at: int) -> None:
    simulation.call(row.client, Unadvertise(row.advertisement), at=at)


@_put.register
def _(row: parts.PublishAction, simulation: Simulation, at: int) -> None:
    if row.count > 1 and not row.every_ms and simulation.spec.takes_many:
        simulation.call(row.client, PublishMany(EventTable.of([row.attributes] * row.count, [b""] * row.count)), at=at)
        return
    for number in range(row.count):
        simulation.call(row.client, Publish(row.attributes), at=at + number * microseconds(row.every_ms))


@_put.register
def _(row: parts.LeaveAction, simulation: Simulation, at: int) -> None:
    simulation.leave(row.client, at=at)


@_put.register
def _(row: parts.Crash, simulation: Simulation, at: int) -> None:
    simulation.crash(row.broker, at=at)


@_put.register
def _(row: parts.Restart, simulation: Simulation, at: int) -> None:
    simulation.restart(row.broker, at=at, memory=row.memory, disk=row.disk)


@_put.register
def _(row: parts.Cut, simulation: Simulation, at: int) -> None:
    simulation.cut(*row.between, at=at, one_way=row.one_way)


@_put.register
def _(row: parts.Heal, simulation: Simulation, at: int) -> None:
    simulation.heal(*row.between, at=at)


@_put.register
def _(row: parts.Suspect, simulation: Simulation, at: int) -> None:
    simulation.suspect(row.observer, row.target, at=at)


@_put.register
def _(row: parts.Trust, simulation: Simulation, at: int) -> None:
    simulation.trust(row.observer, row.target, at=at)


@_put.register
def _(row: parts.Forget, simulation: Simulation, at: int) -> None:
    simulation.forget(row.broker, row.via, at=at)


@_put.register
def _(row: parts.DeleteEvents, simulation: Simulation, at: int) -> None:
    simulation.delete_events(row.publisher, row.via, at=at)


@_put.register
def _(row: parts.SetClock, simulation: Simulation, at: int) -> None:
    simulation.set_clock(row.broker, at=at, ahead=microseconds(row.ahead_ms), drift=row.drift)


@_put.register
def _(row: parts.Relink, simulation: Simulation, at: int) -> None:
    simulation.relink(row.old, row.new, at=at, gap=microseconds(row.gap_ms))

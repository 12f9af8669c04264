"""Runs, checks and saves one schedule of a scenario.

A schedule is a list of transitions. After its last one, the run continues in the default order, until `settle_ms` have
passed after the network has settled. In a file each transition is a word list: `deliver b0 b1`, `do 2 keep`, `tick`.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from gapless.checkers import Verdict, check
from gapless.protocol import DeliverMany, InvariantError, PublishedMany, Subscribe
from gapless.registry import find_protocol
from gapless.simulator.explorer.places import LivePlaces
from gapless.simulator.explorer.threads import Threads, threads_of
from gapless.simulator.explorer.world import Acts, State, Transition, World
from gapless.simulator.networks import microseconds, overlay_of
from gapless.simulator.options import convert_options
from gapless.simulator.recording import Recording
from gapless.simulator.replies import ReplyRule
from gapless.simulator.scenario import Reply, Scenario
from gapless.trace import Recorder, Trace

__all__ = [
    "Setting",
    "finish",
    "judge",
    "load_schedule",
    "run_schedule",
    "save_schedule",
    "setting_of",
    "settle",
    "trace_of",
]


class Setting:
    """The settings that all schedules of a scenario share."""

    def __init__(self, scenario: Scenario, from_ms: float) -> None:
        self.scenario = scenario
        self.spec = find_protocol(scenario.protocol.name)
        self.overlay = overlay_of(scenario.network)
        self.options = convert_options(self.spec, scenario.protocol.options)
        self.threads: Threads = threads_of(scenario, from_ms)
        self.from_us = microseconds(from_ms)
        self.settle_us = microseconds(scenario.run.settle_ms)
        self.replies = tuple(_rule(reply) for reply in scenario.replies)
        recording = Recording(self.recorder(), self.spec)
        self.recorded = frozenset((*recording.handlers(), PublishedMany, DeliverMany))

    def recorder(self) -> Recorder:
        return Recorder(
            run=self.scenario.name, protocol=self.spec.name, guarantee=self.spec.guarantee, scenario=self.scenario.name,
            seed=0, brokers=len(self.overlay.brokers), f=self.scenario.network.f,
        )  # fmt: skip

    def suspects_wrongly(self, state: State) -> bool:
        """Return whether any node suspects a running one."""
        names = (*self.overlay.brokers, *(client.name for client in self.threads.clients))
        live = {name for name, place in zip(names, state.places, strict=True) if place is not None}
        return any(target in live and observer in live for observer, target in state.suspects)

    def live(self) -> tuple[World, LivePlaces]:
        """Return a world with real nodes."""
        places = LivePlaces(self.replies, self.recorded, paces=self.spec.paces)
        return self.world(places), places

    def world(self, backend: Any) -> World:
        """Return a world with nodes of this backend."""
        return World(self.spec, self.overlay, self.scenario.network.f, self.options, self.threads, backend)


def setting_of(scenario: Scenario, from_ms: float) -> Setting:
    """Return the settings that all schedules of the scenario share."""
    return Setting(scenario, from_ms)


def _rule(reply: Reply) -> ReplyRule:
    return ReplyRule(reply.client, reply.attributes, reply.subscription, 1.0, reply.at_most)


def begin(setting: Setting, world: World, acts: Acts) -> State:
    """Carry out the actions before the exploration, each at its time. The network settles in between."""
    state = settle(world, world.begin(acts), acts, 0)
    for act in setting.threads.before:
        state = settle(world, state, acts, act.at_us)
        state = world.perform(state._replace(now=max(state.now, act.at_us)), act, acts)
    return settle(world, state, acts, setting.from_us)


def settle(world: World, state: State, acts: Acts, until: int) -> State:
    """Deliver all messages in the order in which they were sent, and fire the timers that are due by then."""
    while True:
        heads = world.heads(state)
        if heads:
            state = world.apply(state, heads[0], acts)
            continue
        due = world.next_due(state)
        if due is None or due > until:
            return state
        state = world.apply(state, ("tick",), acts)


def finish(setting: Setting, world: World, state: State, acts: Acts) -> State:
    """Let the network settle after a schedule."""
    state = settle(world, state, acts, state.now)
    return settle(world, state, acts, state.now + setting.settle_us)


def trace_of(setting: Setting, acts: Acts, end: State) -> Trace:
    """Return the trace of these actions, with their indices as times. The run does not count as quiesced after a cut or
    a false suspicion."""
    recorder = setting.recorder()
    recording = Recording(recorder, setting.spec)
    handlers = recording.handlers()
    for number, (name, act) in enumerate(acts, start=1):
        if isinstance(act, Subscribe):
            recording.subscribed(name, act, number)
        elif isinstance(act, PublishedMany):
            for event in act.events:
                recorder.publish(name, event, number)
        elif isinstance(act, DeliverMany):
            for event in act.events:
                recorder.deliver(name, event, act.subscription, number)
        else:
            handlers[type(act)](SimpleNamespace(name=name), act, number)  # type: ignore[arg-type]
    return recorder.finish(quiesced=not end.cut and not setting.suspects_wrongly(end))


def judge(setting: Setting, acts: Acts, end: State) -> Verdict:
    """Return the verdict of the checker on the clients' histories."""
    return check(trace_of(setting, acts, end))


def run_schedule(
    scenario: Scenario, from_ms: float, schedule: Sequence[Transition], *, invariants: bool = True
) -> tuple[str, Verdict | None]:
    """Run one schedule on real nodes. Return the symptom, or an empty string, and the verdict."""
    setting = setting_of(scenario, from_ms)
    world, places = setting.live()
    acts: Acts = []
    if invariants and setting.spec.invariants is not None:
        watch = setting.spec.invariants(setting.overlay, scenario.network.f, setting.options)
        world.observe(watch.begin)
        places.watch = partial(_watch, world, watch)
    try:
        state = begin(setting, world, acts)
        for transition in schedule:
            state = world.apply(state, transition, acts)
        verdict = judge(setting, acts, finish(setting, world, state, acts))
    except InvariantError as error:
        return f"{error.symptom}: {error}", None
    except Exception as error:
        return f"exception {type(error).__name__}: {error}", None
    return next(iter(verdict.counts), ""), verdict


def _watch(world: World, watch: Any, name: str, node: Any, item: Any, effects: Any) -> None:
    watch.after_step(name, node, item, effects, world.live_brokers)


# ---- files -------------------------------------------------------------------------------------------------


def save_schedule(file: Path, scenario: Scenario, from_ms: float, schedule: Sequence[Transition]) -> None:
    """Write the scenario with the schedule to a file, so that `gapless sim explore FILE` repeats it."""
    explore = msgspec.structs.replace(
        scenario.explore, from_ms=from_ms, schedule=tuple(" ".join(word or "-" for word in each) for each in schedule)
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(msgspec.structs.replace(scenario, explore=explore).to_toml(), encoding="utf-8")


def load_schedule(scenario: Scenario) -> list[Transition]:
    """Return the schedule in a scenario file."""
    return [tuple("" if word == "-" else word for word in each.split(" ")) for each in scenario.explore.schedule]

"""Searches all schedules of a scenario within bounds.

Without a bound on delays, every possible transition is tried in every state. *Sleep sets* omit schedules that differ
only in the order of transitions that commute: a transition that was tried before in a state, and commutes with the one
tried now, sleeps until a transition occurs that it does not commute with. A state is skipped if it was visited before
with a smaller sleep set (Godefroid, *Partial-Order Methods*, 1996).

With a bound of k delays, messages are delivered in the order in which they were sent, and acts happen at any time. At
most k times, the connection that is next is delayed until nothing else can be delivered (Emmi, Qadeer and Rakamarić,
*Delay-Bounded Scheduling*, POPL 2011). The bound grows from 0, so the first violation has the fewest delays.

When nothing can be delivered, timers fire, one after the other, `ticks` times in all. At the end the network settles in
the default order, and the checker checks the clients' histories.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from gapless.simulator.explorer.places import Places
from gapless.simulator.explorer.schedules import Setting, begin, finish, judge, run_schedule, setting_of
from gapless.simulator.explorer.world import Acts, State, Transition, World
from gapless.simulator.garbage_collection import without_cycle_collection
from gapless.simulator.scenario import Scenario

__all__ = ["Bounds", "Report", "explore"]

Asleep = frozenset[Transition]


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of an exploration."""

    delays: int = 1
    """The maximum number of delays in one schedule. Below 0, every order is tried."""
    ticks: int = 2
    seconds: float = 60.0
    states: int = 1_000_000
    replays: int = 20
    """The number of schedules that are run again from the beginning, with the invariants checked after every step."""


class Report(msgspec.Struct, frozen=True):
    """The result of an exploration."""

    scenario: str
    delays: int
    """The bound on delays that was reached. If the exploration is complete, all its schedules were tried."""
    is_complete: bool
    states: int
    transitions: int
    schedules: int
    """The number of final states that were checked."""
    node_states: int
    node_steps: int
    """How many times the protocol's code ran. The results of all other transitions were cached."""
    seconds: float
    kinds: tuple[str, ...]
    """The types of the delivered messages."""
    symptom: str
    schedule: tuple[Transition, ...]
    """The schedule of the first violation."""


class _OutOfBoundsError(Exception):
    """Raised when the time is used up, or there are too many states."""


def explore(
    scenario: Scenario, from_ms: float, bounds: Bounds, on_progress: Callable[[int, int], None] | None = None
) -> Report:  # fmt: skip
    """Explore the scenario until a violation is found, all schedules are tried, or a bound is reached."""
    search = _Search(scenario, from_ms, bounds, on_progress or (lambda states, transitions: None))
    levels = [-1] if bounds.delays < 0 else range(bounds.delays + 1)
    is_complete, reached = True, -1
    for level in levels:
        reached = level
        try:
            with without_cycle_collection():
                search.run(level)
        except _OutOfBoundsError:
            is_complete = False
        if not is_complete or search.symptom:
            break
    return search.report(reached, is_complete=is_complete and not search.symptom)


class _Search:
    def __init__(
        self, scenario: Scenario, from_ms: float, bounds: Bounds, on_progress: Callable[[int, int], None]
    ) -> None:  # fmt: skip
        self._scenario, self._from_ms, self._bounds, self._report_progress = scenario, from_ms, bounds, on_progress
        self._setting: Setting = setting_of(scenario, from_ms)
        self._places = Places(self._setting.replies, self._setting.recorded, paces=self._setting.spec.paces)
        self._world: World = self._setting.world(self._places)
        self._before: Acts = []
        live, _ = self._setting.live()
        state = begin(self._setting, live, self._before)
        self._start = state._replace(
            places=tuple(None if each is None else self._places.number(each) for each in state.places),
            flight=tuple((channel, self._places.keep(item)) for channel, item in state.flight),
        )
        self._met: dict[Any, Any] = {}
        self._ended: set[Any] = set()
        self._judged: dict[Any, str] = {}
        self._begun = time.monotonic()
        self._transitions = self._schedules = self._states = self._replayed = 0
        self.symptom = ""
        self.schedule: tuple[Transition, ...] = ()

    def run(self, delays: int) -> None:
        """Explore all schedules with at most `delays` delays."""
        self._met.clear()
        self._path: list[Transition] = []
        self._acts: Acts = list(self._before)
        stack = [self._choices(self._start, frozenset(), frozenset(), delays, self._bounds.ticks)]
        marks = [(0, len(self._acts))]
        while stack and not self.symptom:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                path, acts = marks.pop()
                del self._path[path:], self._acts[acts:]
                continue
            transition, state, asleep, held, left, ticks, fresh = step
            marks.append((len(self._path), len(self._acts)))
            if transition is not None:
                self._path.append(transition)
            self._acts += fresh
            stack.append(self._choices(state, asleep, held, left, ticks))

    def _choices(self, state: State, asleep: Asleep, held: frozenset[Any], delays: int, ticks: int) -> Any:
        """Return the transitions to try in a state, with the resulting states."""
        if self._was_met(state, asleep, held, delays, ticks):
            return
        world = self._world
        heads = world.heads(state)
        acts = world.possible(state)
        if delays < 0:
            turn = [each for each in heads if each not in asleep]
        else:
            turn = [each for each in heads if each[1:] not in held][:1]
        awake = [each for each in acts if each not in asleep]
        tried: list[Transition] = []
        for transition in (*awake, *turn):
            asleep_then = frozenset(each for each in (*asleep, *tried) if world.commute(each, transition, state))
            after, fresh = self._apply(state, transition)
            still = frozenset(each for each in held if any(channel == each for channel, _ in after.flight))
            yield transition, after, asleep_then, still, delays, ticks, fresh
            tried.append(transition)
        if delays > 0 and turn:
            yield None, state, asleep | frozenset(awake), held | {turn[0][1:]}, delays - 1, ticks, []
        elif delays >= 0 and not turn and held:
            yield None, state, asleep | frozenset(awake), frozenset(), delays, ticks, []
        elif not heads:
            if ticks and world.next_due(state) is not None:
                after, fresh = self._apply(state, ("tick",))
                yield ("tick",), after, frozenset(), held, delays, ticks - 1, fresh
            elif not acts:
                self._end(state)

    def _apply(self, state: State, transition: Transition) -> tuple[State, Acts]:
        self._transitions += 1
        if not self._transitions & 1023:
            self._report_progress(self._states, self._transitions)
            if time.monotonic() - self._begun > self._bounds.seconds:
                raise _OutOfBoundsError
        fresh: Acts = []
        try:
            return self._world.apply(state, transition, fresh), fresh
        except Exception:
            self.symptom, _ = run_schedule(self._scenario, self._from_ms, [*self._path, transition], invariants=False)
            self.schedule = (*self._path, transition)
            return state, fresh

    def _was_met(self, state: State, asleep: Asleep, held: frozenset[Any], delays: int, ticks: int) -> bool:
        """Return whether everything that can be tried in this state was tried, or will be."""
        if delays < 0:
            key: Any = state._replace(flight=_by_channel(state)), ticks
            known = self._met.setdefault(key, [])
            if any(smaller <= asleep for smaller in known):
                return True
            self._states += not known
            known[:] = [each for each in known if not asleep <= each]
            known.append(asleep)
        else:
            key = state, asleep, held, ticks
            if self._met.get(key, -1) >= delays:
                return True
            self._states += key not in self._met
            self._met[key] = delays
        if len(self._met) > self._bounds.states:
            raise _OutOfBoundsError
        return False

    # ---- the end of a schedule ----------------------------------------------------------------------------

    def _end(self, state: State) -> None:
        key = state._replace(flight=())
        if key in self._ended:
            return
        self._ended.add(key)
        self._schedules += 1
        world, _ = self._setting.live()
        live = state._replace(places=tuple(None if each is None else self._places.place(each) for each in state.places))
        acts = list(self._acts)
        try:
            end = finish(self._setting, world, live, acts)
            symptom = next(iter(judge(self._setting, acts, end).counts), "")
        except Exception as error:
            symptom = f"exception {type(error).__name__}: {error}"
        if not symptom and self._replayed < self._bounds.replays:
            self._replayed += 1
            symptom, _ = run_schedule(self._scenario, self._from_ms, self._path)
        if symptom:
            self.symptom, self.schedule = symptom, tuple(self._path)

    def report(self, delays: int, *, is_complete: bool) -> Report:
        """Return the report on the exploration."""
        kinds = tuple(sorted(self._world.kinds))
        return Report(
            self._scenario.name, delays, is_complete, self._states, self._transitions, self._schedules,
            len(self._places), self._places.steps, time.monotonic() - self._begun, kinds, self.symptom, self.schedule,
        )  # fmt: skip


def _by_channel(state: State) -> tuple[Any, ...]:
    channels: dict[Any, list[Any]] = {}
    for channel, item in state.flight:
        channels.setdefault(channel, []).append(item)
    return tuple((channel, tuple(items)) for channel, items in sorted(channels.items()))

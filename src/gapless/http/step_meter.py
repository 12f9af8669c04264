"""Measures how long each step of a request holds the broker's event loop.

A request runs in the loop that also delivers events, so each of its steps counts like all other work of the broker
(`gapless.runtime.turn_meter`). The same holds for the tasks that a request starts, all of them with `StepMeter.start`.
No step may take more than `STEP_MAX_MS` of processor time: longer work yields to other tasks in between.

Many requests can arrive at the same time. The steps of all of them together take about `TURN_MS` in each turn of the
event loop, by the wall clock; further steps wait for the next turn, in order.
"""

import asyncio
import time
from collections.abc import Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from types import coroutine
from typing import Any, TypeVar

from gapless.runtime.turn_meter import TurnMeter

__all__ = ["STEP_MAX_MS", "StepMeter"]

STEP_MAX_MS = 20.0
TURN_MS = 10.0
RELEASED = 16
"""The number of waiting steps that one turn of the event loop resumes."""

T = TypeVar("T")


class StepMeter:
    """The meter of one broker's HTTP interface."""

    def __init__(self, turns: TurnMeter) -> None:
        self.longest_ms = 0.0
        """The longest step: its wall-clock time, or the processor time of its turn if that is less."""
        self.what = ""
        """The path of the request with the longest step."""
        self._turns = turns
        self._spent_ns = 0
        """The wall-clock time of all steps in this turn."""
        self._is_turn_due = False
        self._tickets = count()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Steps that wait for a turn, by their tickets."""

    @coroutine
    def run(self, work: Coroutine[Any, Any, T], what: str) -> Generator[Any, Any, T]:
        """Run a coroutine, and measure each of its steps."""
        sent: Any = None
        error: BaseException | None = None
        while True:
            ticket = next(self._tickets)
            while self._spent_ns > TURN_MS * 1e6 and error is None:
                try:
                    yield from self._next_turn(ticket)
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as raised:
                    error = raised
            begun, started = self._turns.begin(), time.monotonic_ns()
            try:
                waited_for = work.send(sent) if error is None else work.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self._note(time.monotonic_ns() - started, what, is_inner=begun < 0)
                self._turns.end(begun, "an HTTP request", what)
            sent, error = None, None
            try:
                sent = yield waited_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as raised:
                error = raised

    def start(self, work: Coroutine[Any, Any, T], what: str) -> "asyncio.Task[T]":
        """Run a coroutine as a separate task, which is measured, too."""
        return asyncio.get_running_loop().create_task(self.run(work, what))

    def _note(self, spent_ns: int, what: str, *, is_inner: bool) -> None:
        self._await_turn()
        self._spent_ns += 0 if is_inner else spent_ns
        if spent_ns > self.longest_ms * 1e6:
            worked_ns = min(spent_ns, self._turns.processor_ns())
            if worked_ns > self.longest_ms * 1e6:
                self.longest_ms, self.what = worked_ns / 1e6, what

    def _next_turn(self, ticket: int) -> Generator[Any, None, None]:
        """Wait for another turn of the event loop."""
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (ticket, turn))
        yield from turn

    def _await_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        """Resume some of the waiting steps; they wait again if the first ones take the whole turn."""
        self._is_turn_due, self._spent_ns = False, 0
        released = 0
        while self._waiting and released < RELEASED:
            _, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                released += 1
        if self._waiting:
            self._await_turn()

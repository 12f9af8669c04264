"""Steps of requests are measured, and their total time in each turn of the event loop is bounded."""

import asyncio
import itertools
import time
from typing import Any

import pytest

from gapless.http.step_meter import TURN_MS, StepMeter
from gapless.runtime.event_loop import run
from gapless.runtime.turn_meter import TurnMeter

STEP_MS = 4.0


def spend(milliseconds: float) -> None:
    until = time.thread_time() + milliseconds / 1000
    while time.thread_time() < until:
        pass


def meter() -> StepMeter:
    loop: Any = asyncio.get_running_loop()
    return StepMeter(TurnMeter(loop, logger=None))  # type: ignore[arg-type]


def test_many_requests_at_once_leave_turns_to_others() -> None:
    async def main() -> None:
        steps = meter()
        served: list[int] = []
        turns: list[int] = []

        async def request(number: int) -> None:
            spend(STEP_MS)
            served.append(number)

        async def other() -> None:
            while len(served) < 20:
                turns.append(len(served))
                await asyncio.sleep(0)

        tasks = [steps.start(request(number), "/x") for number in range(20)]
        await asyncio.gather(*tasks, other())
        assert served == list(range(20))
        in_a_turn = [after - before for before, after in itertools.pairwise(turns)]
        assert max(in_a_turn) <= TURN_MS / STEP_MS + 1
        assert STEP_MS <= steps.longest_ms < STEP_MS + 10

    run(main())


def test_a_queued_request_can_be_cancelled() -> None:
    async def main() -> None:
        steps = meter()
        ends: list[str] = []

        async def busy() -> None:
            spend(2 * TURN_MS)

        async def request() -> None:
            try:
                await asyncio.sleep(0)
                spend(2 * TURN_MS)
                await asyncio.sleep(0)
                ends.append("served")
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

        waiting = steps.start(request(), "/x")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ends == ["cancelled"]
        await steps.start(busy(), "/x")

    run(main())

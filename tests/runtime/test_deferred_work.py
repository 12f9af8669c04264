"""Thousands of small tasks that are due at once run in order, in short turns."""

import asyncio

import pytest

from gapless.runtime import deferred_work
from gapless.runtime.deferred_work import DeferredWork
from gapless.runtime.event_loop import run


def test_work_within_the_time_limit_is_done_at_once() -> None:
    async def main() -> None:
        done: list[int] = []
        doing = DeferredWork(asyncio.get_running_loop())
        for number in range(10):
            doing.do(lambda number=number: done.append(number))  # type: ignore[misc]
        assert done == list(range(10))

    run(main())


def test_the_rest_is_done_in_the_next_turns_in_order_and_others_come_between(monkeypatch: pytest.MonkeyPatch) -> None:
    time_us = 0

    def tick() -> int:
        nonlocal time_us
        time_us += 1_000  # each reading of the clock advances it by a millisecond
        return time_us

    async def main() -> None:
        done: list[object] = []
        doing = DeferredWork(asyncio.get_running_loop())
        for number in range(100):
            doing.do(lambda number=number: done.append(number))  # type: ignore[misc]
        assert len(done) < 30
        for _ in range(20):
            await asyncio.sleep(0)
            done.append("another")
        assert [item for item in done if item != "another"] == list(range(100))
        assert done.index("another") < done.index(99)

    monkeypatch.setattr(deferred_work, "now_us", tick)
    run(main())

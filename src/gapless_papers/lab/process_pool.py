"""A pool of processes on this machine, one for each core; the default for sweeps."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeAlias

import pyarrow as pa

from gapless_papers.lab.sweep import Found, Work

__all__ = ["ProcessPool"]

_Task: TypeAlias = tuple[str, str]


class ProcessPool:
    """Runs tasks in worker processes. If the process of a task dies, the task is retried once, alone; if that fails,
    it has no row.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or len(os.sched_getaffinity(0))

    def run(
        self, work: Work, tasks: Sequence[_Task], _schema: pa.Schema, _on_done: Callable[[int], None] = lambda _: None
    ) -> Found:
        """Yield each key with its row, as tasks finish."""
        waiting = deque(tasks)
        while waiting:
            suspects = yield from self._together(work, waiting)
            for task in suspects:
                yield task[0], _alone(work, task)

    def _together(self, work: Work, waiting: deque[_Task]) -> Generator[tuple[str, dict[str, Any]], None, list[_Task]]:
        """Take tasks from `waiting` until none is left or a process dies; return the tasks that were running then."""
        under_way: dict[Future[dict[str, Any]], _Task] = {}
        pool = _pool(min(self._workers, len(waiting)))
        try:
            while under_way or waiting:
                while waiting and len(under_way) < 2 * self._workers:
                    task = waiting.popleft()
                    under_way[pool.submit(work, *task)] = task
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    row = future.result()
                    yield under_way.pop(future)[0], row
        except BrokenProcessPool:
            return list(under_way.values())
        finally:
            pool.shutdown(cancel_futures=True)
        return []


def _alone(work: Work, task: _Task) -> dict[str, Any] | None:
    with _pool(1) as pool:
        try:
            return pool.submit(work, *task).result()
        except BrokenProcessPool:
            return None


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))

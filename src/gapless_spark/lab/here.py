"""Runs cases in processes of this machine, for a while: Spark takes longer to start than a small sweep takes.

The cheapest go first, so that what is left when the time is up is what is worth a Spark job. Results are those of
Spark: the same function carries out a case in either place.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import msgspec

from gapless_spark.lab.experiment_file import workload_of
from gapless_spark.lab.grid import Case
from gapless_spark.lab.tasks import carry_out

__all__ = ["run_here"]


def run_here(todo: Mapping[str, Case], folder: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """The results of the cases that could be run in the time, each as soon as it is there.

    A case that takes its process along (out of memory, say) ends this: the rest, itself included, is left.
    """
    waiting = sorted(todo, key=lambda key: workload_of(todo[key]).cost(), reverse=True)
    deadline = time.monotonic() + seconds
    cores = os.cpu_count() or 1
    pool = ProcessPoolExecutor(min(cores, len(waiting)), multiprocessing.get_context("spawn"))
    under_way: set[Future[dict[str, Any]]] = set()
    try:
        while under_way or waiting:
            while waiting and len(under_way) < 2 * cores and time.monotonic() < deadline:
                key = waiting.pop()
                text = msgspec.json.encode(todo[key]).decode()
                under_way.add(pool.submit(carry_out, folder, key, text))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        return
    finally:
        pool.shutdown(cancel_futures=True)

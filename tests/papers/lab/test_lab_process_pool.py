"""The pool of local processes."""

import os
from typing import Any

import pyarrow as pa
import pytest

from gapless_papers.lab.process_pool import ProcessPool

SCHEMA = pa.schema([("key", pa.string())])


def answer(key: str, text: str) -> dict[str, Any]:
    """Return the answer to a task; some tasks end their process instead."""
    if text == "die":
        os._exit(7)
    return {"key": key}


def test_each_task_has_its_row() -> None:
    tasks = [(str(number), "live") for number in range(9)]
    found = dict(ProcessPool(2).run(answer, tasks, SCHEMA))
    assert found == {key: {"key": key} for key, _ in tasks}


@pytest.mark.slow
def test_a_task_whose_process_dies_has_no_row_and_the_others_have_theirs() -> None:
    tasks = [(str(number), "die" if number == 3 else "live") for number in range(9)]
    found = dict(ProcessPool(2).run(answer, tasks, SCHEMA))
    assert found == {key: None if key == "3" else {"key": key} for key, _ in tasks}

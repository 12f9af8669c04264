"""Many independent tasks on Spark, including tasks that kill their worker."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gapless_spark import task_pool
from gapless_spark.task_pool import SparkPool

SCHEMA = pa.schema([("key", pa.string()), ("length", pa.int64())])


def test_each_task_has_its_row_however_they_are_dealt_out(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def length(key: str, text: str) -> dict[str, Any]:
        return {"key": key, "length": len(text)}

    tasks = [(str(number), number * "x") for number in range(9)]
    for least, under_way in ((1, 3), (64, 1)):
        monkeypatch.setattr(task_pool, "BATCH_LEAST", least)
        monkeypatch.setattr(task_pool, "UNDER_WAY", under_way)
        with SparkPool("local[2]", None) as pool:
            found = dict(pool.run(length, tasks, SCHEMA))
        assert found == {key: {"key": key, "length": len(text)} for key, text in tasks}


def test_a_task_that_takes_its_worker_along_has_none_and_the_others_have_theirs(spark: SparkSession) -> None:
    def deadly(key: str, text: str) -> dict[str, Any]:
        import os

        if text == "die":
            os._exit(7)
        return {"key": key, "length": len(text)}

    with SparkPool("local[2]", None) as pool:
        found = dict(pool.run(deadly, [("a", "live"), ("b", "die"), ("c", "live")], SCHEMA))
    assert found == {"a": {"key": "a", "length": 4}, "b": None, "c": {"key": "c", "length": 4}}

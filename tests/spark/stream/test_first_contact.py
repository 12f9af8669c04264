"""A first attempt with the source, with a session as Spark creates it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gapless.errors import SparkError
from gapless_spark.stream import register
from gapless_spark.worker_python import prepare_worker_python

from .network import served, speak

EVENTS = 40_000

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from gapless_spark.stream import register

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
register(spark)
events = spark.read.format("gapless").option("url", sys.argv[1]).option("timeout", "60").load()
events.show(3)
events.select("seq").limit(2).show()
"""


@pytest.mark.slow
def test_a_session_of_ones_own_shows_events_and_prints_no_traceback(tmp_path: Path) -> None:
    """Workers run the interpreter of the program, a second registration says nothing, and rows that are not wanted
    leave no traceback of a broken pipe."""
    with served(tmp_path / "network", 1, history_bytes=100_000_000) as fleet:
        speak(fleet, "b0", [{"n": n} for n in range(EVENTS)], b"x" * 100, at_once=5_000)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
        program = [sys.executable, "-c", PROGRAM, fleet.config.url]
        ran = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "only showing top 3 rows" in ran.stdout
    assert "Traceback" not in ran.stderr
    assert "replaced a previously registered data source" not in ran.stderr


def test_a_package_that_workers_lack_is_one_sentence(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = f"{sys.base_prefix}/bin/python3"  # the interpreter that the environment of the tests was made with
    monkeypatch.setenv("PYSPARK_PYTHON", bare)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)
    with pytest.raises(SparkError) as caught:
        prepare_worker_python(spark)
    assert str(caught.value) == (
        f"Spark's workers run {bare}, which lacks the package 'gapless_spark': install gapless[spark] there, "
        f"or set PYSPARK_PYTHON={sys.executable} before the session is made"
    )
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    register(spark)

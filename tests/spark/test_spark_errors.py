"""Error texts of Spark that we search for: a version with other texts should fail here."""

import zipfile
from pathlib import Path

import pyspark
from pyspark.errors import StreamingQueryException

from gapless_spark.spark_errors import TOO_SLOW, started_too_slowly

FACTORY = "org/apache/spark/api/python/PythonWorkerFactory.class"


def test_spark_reports_a_process_that_starts_too_slowly() -> None:
    [jar] = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as classes:
        assert f"Python worker {TOO_SLOW}".encode() in classes.read(FACTORY)


def test_it_is_distinguished_from_other_errors() -> None:
    assert started_too_slowly(StreamingQueryException(f"SparkException: Python worker {TOO_SLOW}."))
    assert not started_too_slowly(StreamingQueryException("SparkException: the task failed"))

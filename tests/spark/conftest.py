"""One Spark session for all tests of this folder; all of them run in one worker, so that Spark starts once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gapless_spark.session import spark_session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs Spark is one group: xdist gives it to one worker, and first, for it takes the longest."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.xdist_group("spark"))
    items[:] = ours + [item for item in items if HERE not in item.path.parents]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on two cores, for tables of thousands of rows: what runs once or twice is not worth compiling."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with spark_session(master="local[2]", settings=settings) as session:
        yield session

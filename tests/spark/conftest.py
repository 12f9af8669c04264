"""One Spark session for each worker: what needs Spark is in two groups, so that it starts twice and not oftener."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gapless_spark.session import spark_session

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Spark runs in two workers: the audit of thousands of runs takes one as long as all else the other."""
    for item in items:
        if HERE in item.path.parents:
            group = "audit" if item.path.stem == "test_audit_agreement" else "spark"
            item.add_marker(pytest.mark.xdist_group(group))


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

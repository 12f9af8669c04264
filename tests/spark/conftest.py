"""One Spark session for each worker."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from gapless_spark.session import spark_session

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xmn400m"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on two cores, for tables of thousands of rows: what runs once or twice is not worth compiling well."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with spark_session(master="local[2]", settings=settings) as session:
        yield session

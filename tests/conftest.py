"""Fixtures for all tests: the command line, run in this process; a Spark session; and the assignment of tests to
workers.
"""

import gc
import os
from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from gapless.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")  # a busy machine must not fail tests

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xmn400m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options for short runs: little compilation, and no verification of Spark's classes."""


class Ran(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


Cli: TypeAlias = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Start Spark on two cores, for small tables."""
    from gapless_spark.session import spark_session

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Hundreds of steps pass on a few kilobytes each: compression and checksums cost more than they save.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.shuffle.checksum.enabled": "false",
        "spark.broadcast.compress": "false",
        "spark.broadcast.checksum": "false",
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
    }
    with spark_session(master="local[2]", settings=settings) as session:
        yield session


@cache
def _text(file: str) -> str:
    return (Path(__file__).parents[1] / file).read_text(encoding="utf-8")


def _makes_something_once(file: str) -> bool:
    """Return whether the tests of a file share an expensive object. Each worker would have to create it again."""
    text = _text(file)
    return 'scope="module"' in text or "\n@cache" in text


class _SharedInOnePlace(LoadScopeScheduling):  # type: ignore[misc]
    """Distributes tests individually, except those that share something.

    One worker starts the Spark session and runs all tests that need it. On two cores this is fastest: the session keeps
    about one of them busy, and the other one runs all other tests. A file whose tests share an object stays with one
    worker.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/spark/") and "SparkSession" in _text(file):
            return "spark"
        return file if _makes_something_once(file) else nodeid

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Remove finished tests from the worker's list, because xdist counts the whole list after each of thousands of
        tests."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]


WAITING = ("tests/checkers/live/", "tests/cli/", "tests/client/", "tests/deploy/", "tests/http/", "tests/runtime/")
"""Directories with tests that mostly wait for real brokers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Distribute tests that wait evenly among those that compute, to keep the cores busy."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        parts: list[list[pytest.Item]] = [[], []]
        for item in items:
            parts[item.nodeid.startswith(WAITING)].append(item)
        places = [(number / len(part), item) for part in parts for number, item in enumerate(part)]
        items[:] = [item for _, item in sorted(places, key=itemgetter(0))]


def pytest_collection_finish() -> None:
    """Freeze the collected tests, so that the garbage collector need not scan thousands of them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two more than the number of cores, because many tests mostly wait for real brokers."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return _SharedInOnePlace(config, log) if config.getoption("dist") == "load" else None

"""One Spark session for one command: local by default, any cluster by its master, Spark Connect by its address.

    with spark_session() as spark:                      # local[*]
    with spark_session(master="spark://host:7077") as spark:
    with spark_session(remote="sc://host:15002") as spark:

Starting Spark takes seconds, so a command opens one session and does all its work in it. An existing session is used as
it is, and left open.

- Executors run the interpreter that runs the command. If they may be on other machines, our own packages are sent
  along;
  their dependencies (msgspec, pyarrow, numpy) must be installed there.
- Spark's own output, with its stack traces, goes to a log file and never to the terminal. The file is removed at
  the end, unless Spark failed: then the error names it.
- Errors are raised as `GaplessError`: see `spark_errors`.
"""

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path

from pyspark.sql import SparkSession

import gapless
from gapless.errors import SparkError
from gapless_spark.address import require_address
from gapless_spark.java import require_java
from gapless_spark.spark_errors import plain_errors

__all__ = ["DRIVER_MEMORY", "spark_session"]

DRIVER_MEMORY = "4g"
"""The heap of a JVM that we start: joins and sorts spill to disk, so more helps little, and the Python workers need
memory, too."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.sql.session.timeZone": "UTC",
    # Many small steps over tables of very different sizes: adaptive execution uses the sizes of intermediate results.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64m",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "64m",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    # A filter for each side of a join of presumably large tables costs more than it saves.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # The place in our code where a column was made is not useful, and finding it walks the stack each time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Plans are not read while they run, so they are not written out in full after each step.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
    # A page with a flipped bit must be detected.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}
"""Settings of every session that we start."""

_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # Dozens of small joins and sorts: clearing pages of the default size takes longer than filling them.
    "spark.buffer.pageSize": "4m",
}
"""Settings if Spark runs on this machine alone."""


@contextmanager
def spark_session(
    *, master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Open a session for the block. `master` and `remote` exclude each other; without both Spark runs locally, on all
    cores.

    `settings` are Spark's own, and override ours.
    """
    require_address(master, remote)
    running = SparkSession.getActiveSession()
    if running is not None:
        with plain_errors():
            yield running
        return
    workshop = Path(tempfile.mkdtemp(prefix="gapless-spark."))
    log = workshop / "spark.log"
    try:
        with plain_errors(log):
            spark = _start(master, remote, settings or {}, workshop, log)
            try:
                yield spark
            finally:
                with suppress(Exception):  # a session whose Spark has died cannot be stopped any more
                    spark.stop()
    except SparkError:
        shutil.rmtree(workshop / "scratch" if log.exists() else workshop, ignore_errors=True)
        raise
    except BaseException:
        shutil.rmtree(workshop, ignore_errors=True)
        raise
    shutil.rmtree(workshop, ignore_errors=True)


def _start(
    master: str | None, remote: str | None, wanted: Mapping[str, str], workshop: Path, log: Path
) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    for variable in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "MASTER"):
        os.environ.pop(variable, None)  # only the command line decides
    settings = dict(_SETTINGS)
    if remote is None or remote.startswith("local"):
        require_java()
        settings |= {"spark.driver.memory": DRIVER_MEMORY, "spark.sql.warehouse.dir": str(workshop / "scratch")}
        settings |= {"spark.local.dir": str(workshop / "scratch")}
    if (remote or master or "local").startswith("local"):
        settings |= _LOCAL_SETTINGS
    builder = SparkSession.builder.appName("gapless")
    for key, value in (settings | dict(wanted)).items():
        builder = builder.config(key, value)
    with _output_to(log):
        if remote is not None:
            spark = builder.remote(remote).getOrCreate()
        else:
            spark = builder.master(master or "local[*]").getOrCreate()
    if not (remote or master or "local").startswith("local"):
        spark.addArtifacts(str(_our_packages(workshop)), pyfile=True)
    return spark


def _our_packages(workshop: Path) -> Path:
    """Return our own code as a zip file that executors can import from, with its entry points."""
    archive = workshop / "gapless_packages.zip"
    source = Path(gapless.__file__).parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in ("gapless", "gapless_papers", "gapless_spark"):
            for file in sorted((source / package).rglob("*.py")):
                packed.write(file, file.relative_to(source))
        own = distribution("gapless")
        for name in ("METADATA", "entry_points.txt"):
            packed.writestr(f"gapless-{own.version}.dist-info/{name}", own.read_text(name) or "")
    return archive


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Permanently redirect the output of processes started within the block to the log. The output of this process is
    not redirected."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for ours, number in zip(kept, (1, 2), strict=True):
            os.dup2(ours, number)
            os.close(ours)
        os.close(target)

"""A Spark cluster and a Spark Connect server on loopback give the same results as this machine alone."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from gapless.checkers import check_all
from gapless.runtime.fleet import free_ports
from gapless.trace import read_trace
from gapless_papers.lab.conduct import conduct
from gapless_papers.lab.experiment_file import load_experiment
from gapless_papers.lab.grid import cases_of

PATIENCE_S = 900.0
"""A time limit for very busy machines; an idle one takes seconds."""
pytestmark = pytest.mark.timeout(2 * PATIENCE_S)

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""JVM options that shorten the start: little compilation, and no verification of Spark's classes."""
ENVIRONMENT = {
    **os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA, "PYSPARK_PYTHON": sys.executable,
}  # fmt: skip
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"

EXPERIMENT = f"""
title = "A first network"
question = "Does a cluster say what one machine says?"
scenario = "{Path(__file__).parents[3]}/examples/first.toml"
measure = ["delivery-latency", "messages"]
trace = true
grid = [{{ protocol = ["gapless", "gryphon"] }}]
"""
"""A broker on the path crashes while a subscription starts: `gapless` survives that, `gryphon` does not."""
COMMANDS = """
import sys
from contextlib import suppress

import pyarrow as pa

from gapless.cli.main import run
from gapless_spark.session import spark_session

option, address, experiment, out, java = sys.argv[1:]
# Executors of their own take their time to start, so both commands use one session, tuned for a handful of rows.
settings = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": f"{java} -XX:ReservedCodeCacheSize=240m",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": java,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def whence(batches):
    import gapless, gapless_spark
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"place": [gapless.__file__, gapless_spark.__file__]})


with spark_session(**{option: address}, settings=settings) as spark:
    places = spark.range(1).mapInArrow(whence, "place string").toArrow().column(0).to_pylist()
    print(*places, file=sys.stderr)
    with suppress(SystemExit):
        run(["lab", "run", experiment, "--out", out, f"--{option}", address, "--json"])
    print("AND")
    run(["audit", out + "/trace", f"--{option}", address, "--json"])
"""


@contextmanager
def _daemon(log: Path, *words: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen([SPARK_CLASS, *words], stdout=output, stderr=output, env=ENVIRONMENT, cwd=log.parent)
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"{log} never said {pattern}:\n{log.read_text(errors='replace')[-2000:]}")


@contextmanager
def _cluster(folder: Path, *workers: str) -> Iterator[str]:
    """Yield the address of a cluster of these workers, each with one core."""
    own = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as running:
        master = _daemon(folder / "master.log", "org.apache.spark.deploy.master.Master", *own, "--port", "0")
        running.enter_context(master)
        url = _said(folder / "master.log", r"Starting Spark master at (spark://\S+)")
        worker = ("org.apache.spark.deploy.worker.Worker", *own, "--cores", "1", "--memory", "1g")
        for name in workers:
            running.enter_context(_daemon(folder / f"{name}.log", *worker, "--work-dir", str(folder / name), url))
        for name in workers:
            _said(folder / f"{name}.log", r"(Successfully registered) with master")
        yield url


@pytest.fixture
def one_worker(tmp_path: Path) -> Iterator[str]:
    with _cluster(tmp_path, "one") as url:
        yield url


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[str]:
    with _cluster(tmp_path, "one", "two") as url:
        yield url


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a Spark Connect server that starts its executors on this machine."""
    [port] = free_ports(1)
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    settings = {
        "spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
    }  # fmt: skip
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    java = ("--driver-memory", "1g", "--driver-java-options", f"{QUICK_JAVA} -XX:ReservedCodeCacheSize=240m")
    submit = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *java, *words, *server)
    with _daemon(tmp_path / "connect.log", *submit):
        _said(tmp_path / "connect.log", r"(Spark Connect server started)")
        yield f"sc://127.0.0.1:{port}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("master", "one_worker"),
        pytest.param("master", "two_workers", marks=pytest.mark.slow),
        pytest.param("remote", "remote", marks=pytest.mark.slow),
    ],
)
def test_a_sweep_and_its_audit(option: str, place: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    address = request.getfixturevalue(place)
    file = tmp_path / "first.toml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    experiment = load_experiment(file)
    command = [sys.executable, "-c", COMMANDS, option, address, str(file), str(tmp_path / "out"), QUICK_JAVA]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "AND" in ran.stdout, ran.stderr
    swept, audited = ran.stdout.split("AND\n")
    places = ran.stderr.split()
    assert len(places) == 2
    assert all("gapless_packages.zip" in place for place in places), places
    assert json.loads(swept)["report"]["failures"] == []
    assert pq.read_table(tmp_path / "out" / "metrics").to_pylist() == [
        {"run": case.run, **metric._asdict()} for case in cases_of(experiment) for metric in conduct(case)[0]
    ]
    statuses = {verdict.run: verdict.status for verdict in check_all(read_trace(tmp_path / "out" / "trace"))}
    assert statuses == {"first/protocol=gapless,seed=0": "valid", "first/protocol=gryphon,seed=0": "invalid"}
    assert {row["run"]: row["status"] for row in json.loads(audited)["runs"]} == statuses

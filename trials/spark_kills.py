"""Runs a source, a transformation, a sink and a subscriber, and kills each; no event may be lost or duplicated.

    python -m trials.spark_kills                     # a million events: minutes on an idle machine
    python -m trials.spark_kills --events 20000      # a short run

Two clients publish at both ends of a network whose brokers keep history on disk. A streaming query reads these events
and publishes an answer to each; a subscriber receives the answers. Meanwhile the driver is killed twice with its JVM
and restarted from its checkpoint, a Python worker with a task is killed, and a broker is killed and restarted. At the
end there must be one answer to each event, in the order of its publisher, and after the event.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gapless import sync
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from gapless.runtime.settings import RuntimeSettings

__all__ = ["Outcome", "Plan", "run_trial"]

PATIENCE_S = 900.0
"""The maximum time without progress."""
SPEAKERS = ("b0", "b2")


class Plan(msgspec.Struct, frozen=True):
    """When each kill happens: after which share of the answers."""

    events: int = 1_000_000
    driver_killed: tuple[float, ...] = (0.2, 0.6)
    broker_killed: float | None = 0.4
    worker_killed: float | None = 0.75
    per_batch: int = 50_000
    publishers: int = 1
    """The number of workers that publish a batch; with several, the answers of a batch have no order."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a trial."""

    answers: int
    lost: int
    doubled: int
    disordered: int
    """With one publisher: the number of answers that arrived before an answer to an earlier event of the same
    publisher.
    """
    hasty: int
    """The number of answers that arrived before their event."""
    batches: int
    seconds: float
    kills: list[str]

    @property
    def is_good(self) -> bool:
        """Return whether there was no error."""
        return not (self.lost or self.doubled or self.disordered or self.hasty)


# ---- the driver: a process of its own ------------------------------------------------------------------------------


def drive(url: str, checkpoint: str, per_batch: str, publishers: str) -> None:
    """Answer all events until the process is killed."""
    from gapless_spark.session import spark_session
    from gapless_spark.stream import register

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # the process is short-lived
        "spark.sql.codegen.wholeStage": "false",
    }
    # Tasks fail because their workers are killed, and are retried.
    with spark_session(master="local[2,4]", settings=settings) as spark:
        register(spark)
        source = spark.readStream.format("gapless").option("url", url).option("filter", "topic = 'question'")
        source = source.option("startingPosition", "earliest").option("maxEventsPerTrigger", per_batch)
        questions = source.option("timeout", "300").schema("who STRING, n BIGINT, position STRING").load()
        answers = questions.selectExpr("'answer' AS topic", "who", "n", "position AS cause")
        sink = answers.writeStream.format("gapless").option("url", url).option("sink", "answers")
        sink = sink.option("timeout", "300").option("checkpointLocation", checkpoint).option("publishers", publishers)
        sink.trigger(processingTime="0 seconds").start().awaitTermination()


class Driver:
    """A driver process that can be killed."""

    def __init__(self, folder: Path, url: str, plan: Plan) -> None:
        self._command = [
            sys.executable,
            "-m",
            "trials.spark_kills",
            "--drive",
            url,
            str(folder / "checkpoint"),
            str(plan.per_batch),
            str(plan.publishers),
        ]
        self._log = folder / "driver.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the driver and its child processes as a process group."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)

    def check(self) -> None:
        """Restart a driver that ended because Spark found the machine too busy; raise an error if it ended for another
        reason.
        """
        if self._process is not None and self._process.poll() is not None:
            said = self._log.read_text(encoding="utf-8", errors="replace")
            if "failed to connect back" not in said:
                raise RuntimeError(f"the driver ended: {said[-3000:]}")
            self._log.unlink()
            self.start()

    def kill(self) -> None:
        """Kill the process group at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def kill_a_worker(self) -> bool:
        """Kill a Python process that runs tasks; return whether there was one."""
        assert self._process is not None
        parents = _parents()
        ours = [pid for pid in parents if _is_below(pid, self._process.pid, parents)]
        python = {pid for pid in ours if b"pyspark.daemon" in _command_of(pid)}
        children = [pid for pid in python if parents[pid] in python]
        for pid in children[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(children)


def _parents() -> dict[int, int]:
    """Return the parent of every process."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(entry.parent.name)] = int(entry.read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parents.get(pid, 0)
    return False


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# ---- the trial -----------------------------------------------------------------------------------------------------


def run_trial(folder: Path, plan: Plan) -> Outcome:
    """Run the trial in a directory."""
    options: dict[str, float] = {"history_bytes": max(64_000_000, 400 * plan.events)}
    config = local_network(
        chain(3), name="shop", protocol=ProtocolEntry("gapless", options), data=folder / "data",
        runtime=RuntimeSettings(suspect_ms=5_000),
    )  # fmt: skip
    with Fleet(config, folder) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(PATIENCE_S))
        driver = Driver(folder, config.url, plan)
        began = time.monotonic()
        speakers = [threading.Thread(target=_speak, args=(fleet, broker, plan)) for broker in SPEAKERS]
        try:
            with sync.connect(f"gapless://{config.addresses['b1']}", name="ear", timeout_s=PATIENCE_S) as ear:
                heard = ear.subscribe("topic = 'answer'")
                driver.start()
                for speaker in speakers:
                    speaker.start()
                answers, kills = _listen(heard, fleet, driver, plan)
        finally:
            driver.kill()
        for speaker in speakers:
            speaker.join()
        return _judged(answers, plan, kills, time.monotonic() - began)


def _speak(fleet: Fleet, broker: str, plan: Plan) -> None:
    with sync.connect(f"gapless://{fleet.config.addresses[broker]}", timeout_s=PATIENCE_S) as client:
        client.advertise("topic = 'question'")
        share = plan.events // len(SPEAKERS)
        client.publish_many({"topic": "question", "who": broker, "n": n} for n in range(share))


def _listen(heard: sync.Subscription, fleet: Fleet, driver: Driver, plan: Plan) -> tuple[list[Event], list[str]]:
    """Read answers until there is one for each event, and a little longer; kill processes according to the plan."""
    answers: list[Event] = []
    kills: list[str] = []
    total = plan.events // len(SPEAKERS) * len(SPEAKERS)
    due = sorted(
        [
            *((part, "driver") for part in plan.driver_killed),
            *([(plan.broker_killed, "broker")] if plan.broker_killed is not None else []),
            *([(plan.worker_killed, "worker")] if plan.worker_killed is not None else []),
        ]
    )
    last = time.monotonic()
    while len(answers) < total:
        try:
            answers += heard.take(4_096, timeout_s=5.0)
            last = time.monotonic()
        except TimeoutError:
            driver.check()
            if time.monotonic() - last > PATIENCE_S:
                raise RuntimeError(f"{len(answers):,} of {total:,} answers came, and then none") from None
        if due and len(answers) >= due[0][0] * total:
            kills.append(_kill(due.pop(0)[1], fleet, driver, len(answers)))
            last = time.monotonic()
    with contextlib.suppress(TimeoutError):
        while more := heard.take(4_096, timeout_s=5.0):  # any further answer is an error
            answers += more
    return answers, kills


def _kill(what: str, fleet: Fleet, driver: Driver, count: int) -> str:
    if what == "driver":
        driver.kill()
        driver.start()
    elif what == "broker":
        fleet.kill("b0")
        fleet.start("b0")
    elif not driver.kill_a_worker():
        return f"no worker was there after {count:,} answers"
    return f"{what} killed after {count:,} answers"


def _judged(answers: Sequence[Event], plan: Plan, kills: list[str], seconds: float) -> Outcome:
    share = plan.events // len(SPEAKERS)
    seen: dict[str, set[int]] = {broker: set() for broker in SPEAKERS}
    newest = dict.fromkeys(SPEAKERS, -1)
    doubled = disordered = hasty = 0
    for event in answers:
        who, number = str(event.attributes["who"]), int(event.attributes["n"])
        doubled += number in seen[who]
        disordered += plan.publishers == 1 and number < newest[who] and number not in seen[who]
        hasty += event.position <= Position(str(event.attributes["cause"]))
        seen[who].add(number)
        newest[who] = max(newest[who], number)
    lost = sum(share - len(numbers) for numbers in seen.values())
    batches = len({event.attributes["sink.batch"] for event in answers})
    return Outcome(len(answers), lost, doubled, disordered, hasty, batches, seconds, kills)


def main() -> int:
    """Run the trial and print its result."""
    if sys.argv[1:2] == ["--drive"]:
        drive(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=float, default=1e6, help="how many")
    parser.add_argument("--publishers", type=int, default=1, help="how many workers publish a batch")
    chosen = parser.parse_args()
    events = int(chosen.events)
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(events=events, per_batch=max(500, events // 20), publishers=chosen.publishers)
        outcome = run_trial(Path(folder), plan)
    print(msgspec.json.format(msgspec.json.encode(outcome), indent=1).decode())
    print("good" if outcome.is_good else "NOT GOOD")
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

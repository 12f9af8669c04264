"""Measures the speed of the audit on Spark, compared with the checkers on one core.

    python benchmarks/audit.py                     # 1 to 10 million deliveries, on 2 cores: many minutes
    python benchmarks/audit.py --quick             # a short run
    python benchmarks/audit.py --deliveries 5e6    # one size
    python benchmarks/audit.py --json              # figures for a machine

The trace is synthetic, made by vector operations instead of a simulator, but its causality is real. In each round every
publisher publishes one event, knowing all events delivered to it in earlier rounds; then every client gets the events
of the round that match its subscription. The certificate lists, for each event, what its publisher knew directly or
through others. Some deliveries are omitted, and the audit has to find these and nothing else.

Each audit runs in its own process. Memory and processor time are those of the whole tree of processes: Python, Java,
and the workers. The checkers also run in their own process, with `CHECKERS_GIB` of memory: if that is too little, that
is the result.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.trace.tables import TABLES, arrow_schema

CLIENTS = 200
PUBLISHERS = 20
TOPICS = 5
PRICES = 1000
SHARE = 0.5 / TOPICS
"""The share of all events that a subscription matches: one topic, and half of its prices."""

LATE = 0.25
"""The share of subscriptions that start in the first half."""

ROUNDS_PER_CHUNK = 1000
LOST = 20
"""The number of omitted deliveries."""

CORES = 2
RATE_LEAST = 60_000
"""The required number of deliveries per second at the largest size."""

GROWTH_MOST = 1.2
"""The maximum ratio of processor times of the largest and the smallest trace: 12 for ten times the size."""

CHECKERS_GIB = 8
"""The memory limit for the checkers in Python."""

Numbers = npt.NDArray[Any]


# ---- a trace --------------------------------------------------------------------------------------------------


class Synthetic:
    """Generates a trace chunk by chunk."""

    def __init__(self, directory: Path, deliveries: int) -> None:
        self.draw = np.random.default_rng(7)
        per_round = PUBLISHERS * CLIENTS * SHARE * (1 - LATE / 4)
        self.rounds = max(10, int(deliveries / per_round))
        self.topic_of = self.draw.integers(0, TOPICS, CLIENTS)
        late = self.draw.random(CLIENTS) < LATE
        self.start = np.where(late, self.draw.integers(0, self.rounds // 2, CLIENTS), 0)
        self.known = np.zeros((PUBLISHERS, PUBLISHERS), np.int64)
        self.before = self.known
        self.received: Numbers = np.zeros((PUBLISHERS, PUBLISHERS), bool)
        self.steps = np.zeros(CLIENTS, np.int64)
        self.deliveries = self.past_rows = self.left_out = 0
        self.names = np.array([f"client-{number:03d}" for number in range(CLIENTS)])
        self.lost = set(
            self.draw.choice(np.arange(self.rounds // 4, self.rounds * 3 // 4), LOST, replace=False).tolist()
        )
        self.writers = {}
        for table in TABLES:
            (directory / table).mkdir(parents=True)
            self.writers[table] = pq.ParquetWriter(
                directory / table / "part-00000.parquet", arrow_schema(table), compression="zstd"
            )

    def write(self) -> None:
        """Write the whole trace."""
        self._put("runs", [["r1"], ["synthetic"], ["gcd"], ["rounds"], [7], [1], [0], [True], ["{}"], [0.0]])
        filters = [f"topic = 't{topic}' AND price < {PRICES // 2}" for topic in self.topic_of]
        ids, nothing = [f"s-{name}" for name in self.names], [None] * CLIENTS
        began = self.start * 1000.0
        self._put(
            "subscriptions",
            [["r1"] * CLIENTS, ids, self.names, filters, began, began + 1, nothing, ["first"] * CLIENTS],
        )
        pairs = CLIENTS * PUBLISHERS
        self._put(
            "cuts",
            [
                ["r1"] * pairs, np.repeat(ids, PUBLISHERS), np.tile(self.names[:PUBLISHERS], CLIENTS),
                np.repeat(self.start + 1, PUBLISHERS), [None] * pairs,
            ],
        )  # fmt: skip
        for first in range(1, self.rounds + 1, ROUNDS_PER_CHUNK):
            self._chunk(np.arange(first, min(first + ROUNDS_PER_CHUNK, self.rounds + 1)))
        for writer in self.writers.values():
            writer.close()

    def _put(self, table: str, columns: list[Any]) -> None:
        schema = arrow_schema(table)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        self.writers[table].write_table(pa.Table.from_arrays(arrays, schema=schema))

    def _chunk(self, rounds: Numbers) -> None:
        topics = self.draw.integers(0, TOPICS, (len(rounds), PUBLISHERS))
        prices = self.draw.integers(0, PRICES, (len(rounds), PUBLISHERS))
        cheap = prices < PRICES // 2
        asked = (topics[:, :, None] == self.topic_of) & cheap[:, :, None] & (rounds[:, None, None] > self.start)
        for place in np.flatnonzero(np.isin(rounds, list(self.lost))):
            # Omit one delivery to a consumer, which publishes nothing, so that no event depends on the delivery.
            hits = np.argwhere(asked[place, :, PUBLISHERS:])
            if len(hits):
                asked[place, hits[0][0], PUBLISHERS + hits[0][1]] = False
                self.left_out += 1
        self._events(rounds, topics, prices)
        self._history(rounds, asked)
        self._pasts(rounds, asked)

    def _events(self, rounds: Numbers, topics: Numbers, prices: Numbers) -> None:
        who, when = np.tile(np.arange(PUBLISHERS), len(rounds)), np.repeat(rounds, PUBLISHERS)
        texts = [
            f'{{"price":{price},"topic":"t{topic}"}}'
            for price, topic in zip(prices.ravel().tolist(), topics.ravel().tolist(), strict=True)
        ]
        self._put(
            "events", [_same("r1", len(who)), self._ids(who, when), self.names[who], when, texts, when * 1000.0 + who]
        )

    def _history(self, rounds: Numbers, asked: Numbers) -> None:
        when, publisher, client = np.nonzero(asked)
        publishing = np.tile(np.arange(PUBLISHERS), len(rounds))
        place = np.concatenate((np.repeat(np.arange(len(rounds)), PUBLISHERS), when))
        actor = np.concatenate((publishing, client))
        author = np.concatenate((publishing, publisher))
        delivers = np.concatenate((np.zeros(len(publishing), bool), np.ones(len(when), bool)))
        order = np.lexsort((author, delivers, place))
        place, actor, author, delivers = place[order], actor[order], author[order], delivers[order]
        step = self._count_steps(actor)
        number = rounds[place]
        subscription = pa.array(self.names[actor])
        subscription = pa.compute.binary_join_element_wise("s", subscription, "-")
        columns = [
            _same("r1", len(step)), self.names[actor], step, np.where(delivers, "deliver", "publish"),
            self._ids(author, number), pa.compute.if_else(pa.array(delivers), subscription, None),
            number * 1000.0 + np.where(delivers, 500, 0) + author,
        ]  # fmt: skip
        self._put("history", columns)
        self.deliveries += int(delivers.sum())

    def _count_steps(self, actor: Numbers) -> Numbers:
        """Return the number of each action among those of its client."""
        order = np.argsort(actor, kind="stable")
        counts = np.bincount(actor, minlength=CLIENTS)
        first = np.cumsum(counts) - counts
        step = np.empty(len(actor), np.int64)
        step[order] = np.arange(len(actor)) - np.repeat(first, counts) + np.repeat(self.steps, counts)
        self.steps += counts
        return step

    def _pasts(self, rounds: Numbers, asked: Numbers) -> None:
        """Return the past of each event where it advanced: the maximum over the deliveries of its publisher."""
        who, about, reach, when = [], [], [], []
        own = np.arange(PUBLISHERS)
        for place, number in enumerate(rounds.tolist()):
            before = self.known
            if number > 1:
                received = self.received
                theirs = self.before.copy()
                theirs[own, own] = number - 1
                gained = np.where(received[:, :, None], theirs[None, :, :], 0).max(axis=1)
                self.known = np.maximum(before, gained)
                self.known[own, own] = 0
                p, q = np.nonzero(self.known > before)
                who.append(p)
                about.append(q)
                reach.append(self.known[p, q])
                when.append(np.full(len(p), number))
            self.received = asked[place, :, :PUBLISHERS].T
            self.before = self.known
        p, q = np.concatenate(who), np.concatenate(about)
        self._put(
            "pasts", [_same("r1", len(p)), self._ids(p, np.concatenate(when)), self.names[q], np.concatenate(reach)]
        )
        self.past_rows += len(p)

    def _ids(self, who: Numbers, number: Numbers) -> pa.Array:
        return pa.compute.binary_join_element_wise(pa.array(self.names[who]), pa.array(number).cast(pa.string()), ":")


def _same(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [text]).dictionary_decode()


# ---- measuring ------------------------------------------------------------------------------------------------

AUDIT = """
import json, sys, time
began = time.perf_counter()
from gapless_spark.audit import audit
from gapless_spark.session import spark_session
from gapless_spark.tables import read_tables
with spark_session(master=sys.argv[2]) as spark:
    spark.range(1).count()
    started = time.perf_counter()
    result = audit(spark, read_tables(spark, sys.argv[1]))
    verdicts = result.verdicts.collect()
    judged = time.perf_counter()
    counts = {kind: count for verdict in verdicts for kind, count in verdict["counts"].items()}
    print(json.dumps({"start_s": started - began, "audit_s": judged - started, "counts": counts}))
"""


def audit_in_spark(trace: Path) -> dict[str, Any]:
    """Audit in a separate process; return the costs."""
    command = [sys.executable, "-c", AUDIT, str(trace), f"local[{CORES}]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, _Watch(process.pid) as watch:
        said = process.communicate()[0]
    if process.returncode:
        raise SystemExit("the audit failed")
    return {**json.loads(said.splitlines()[-1]), "peak_mib": watch.peak_mib, "cpu_s": round(watch.cpu_s, 1)}


CHECK = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from gapless.checkers import check_all
from gapless.trace import read_trace
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
try:
    check_all(read_trace(Path(sys.argv[1])))
except (MemoryError, pa.ArrowMemoryError):
    sys.exit(3)
"""


def check_in_python(trace: Path) -> dict[str, Any]:
    """Check in a separate process; `check_s` is None if the checkers ran out of memory."""
    start = time.perf_counter()
    command = [sys.executable, "-c", CHECK, str(trace), str(CHECKERS_GIB * 2**30)]
    with subprocess.Popen(command) as process, _Watch(process.pid) as watch:
        code = process.wait()
    if code not in (0, 3):
        raise SystemExit("the checkers failed")
    seconds = None if code else time.perf_counter() - start
    return {"check_s": seconds, "peak_mib": watch.peak_mib, "cpu_s": round(watch.cpu_s, 1)}


class _Watch(threading.Thread):
    """Records the peak memory and the processor time of a process tree."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self.peak_mib = 0
        self.cpu_s = 0.0

    def __enter__(self) -> "_Watch":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.5):
            memory = 0
            cpu = 0
            for pid in _tree(self._pid):
                try:
                    status = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
                    memory += int(status.partition("Pss:")[2].split()[0])
                    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                    cpu += sum(map(int, fields[11:15]))
                except (OSError, IndexError, ValueError):
                    continue
            self.peak_mib = max(self.peak_mib, memory // 1024)
            self.cpu_s = max(self.cpu_s, cpu / os.sysconf("SC_CLK_TCK"))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                yield from _tree(int(child))
    except OSError:
        return


def measure(deliveries: int) -> dict[str, Any]:
    """Generate a trace of one size, audit it, and verify that the audit finds the omitted deliveries."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        synthetic = Synthetic(trace, deliveries)
        start = time.perf_counter()
        synthetic.write()
        row: dict[str, Any] = {
            "deliveries": synthetic.deliveries,
            "events": synthetic.rounds * PUBLISHERS,
            "past_rows": synthetic.past_rows,
            "generate_s": round(time.perf_counter() - start, 1),
        }
        spark = audit_in_spark(trace)
        assert spark["counts"] == {"gap": synthetic.left_out}, spark["counts"]
        row |= {"spark": spark, "deliveries_per_s": round(synthetic.deliveries / spark["audit_s"])}
        return row | {"python": check_in_python(trace)}


def growth(rows: list[dict[str, Any]], figure: str) -> float:
    """Return the cost per delivery in the largest trace, relative to the smallest."""
    first, last = (row["spark"][figure] / row["deliveries"] for row in (rows[0], rows[-1]))
    return float(last / first)


def main() -> int:
    """Measure and print; fail below the required speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small traces")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--deliveries", type=float, help="one size only")
    arguments = parser.parse_args()
    sizes = [100_000] if arguments.quick else [1_000_000, 3_000_000, 10_000_000]
    if arguments.deliveries:
        sizes = [int(arguments.deliveries)]
    rows = [measure(size) for size in sizes]
    grown = {figure: round(growth(rows, figure), 2) for figure in ("audit_s", "cpu_s")}
    asked = {"least_deliveries_per_s": RATE_LEAST, "most_growth": GROWTH_MOST}
    figures = json.dumps({"rows": rows, "cores": CORES, "growth_per_delivery": grown, **asked})
    if arguments.out:
        arguments.out.write_text(figures)
    if arguments.json:
        print(figures)
    else:
        show(rows, grown)
    is_fast = rows[-1]["deliveries_per_s"] >= RATE_LEAST and grown["cpu_s"] <= GROWTH_MOST
    return 0 if arguments.quick or is_fast else 1


def show(rows: list[dict[str, Any]], grown: dict[str, float]) -> None:
    """Print the figures as a table."""
    for row in rows:
        spark, python = row["spark"], row["python"]
        print(
            f"{row['deliveries']:>11,} deliveries  {row['past_rows']:>11,} rows of pasts  "
            f"Spark {spark['audit_s']:6.1f} s (and {spark['start_s']:.1f} s to start, {spark['cpu_s']:.0f} s of CPU)  "
            f"{row['deliveries_per_s']:>8,}/s  {spark['peak_mib']:>6,} MiB"
        )
        took = "too large" if python["check_s"] is None else f"{python['check_s']:.1f} s"
        print(f"{'':>26}the checkers, one core: {took} ({python['cpu_s']:.0f} s of CPU), {python['peak_mib']:,} MiB")
    if len(rows) > 1:
        print(
            f"a delivery of the largest takes {grown['audit_s']:.2f} times as long as one of the smallest, "
            f"{grown['cpu_s']:.2f} times the CPU"
        )


if __name__ == "__main__":
    sys.exit(main())

"""Measures the speed of the Spark source and sink, compared with Spark's `rate`, Parquet and the client alone.

    python benchmarks/spark_source.py                 # minutes
    python benchmarks/spark_source.py --quick         # a short run
    python benchmarks/spark_source.py --events 1e6    # with this number of events

All variants read the same events of about 100 bytes, on two cores that brokers, Spark and its workers share. The Spark
variants are streaming queries with one micro-batch and without output (`noop`); Spark itself measures the time from the
trigger to the commit. Each variant runs several times, alternating with the others. The best result is used, because
Spark's first runs include compilation.

Besides the events per second, the benchmark measures the processor time per event of all processes together: brokers,
Java, its workers, and this process. That time does not depend on other work on the machine. The benchmark fails if it
exceeds `MOST_US` with one broker.

The sink writes a DataFrame of two partitions (`df.write`) to one broker, measured from the call to its return.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from gapless import sync
from gapless.overlay import chain
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from gapless_spark.session import spark_session
from gapless_spark.stream import register

CORES = 2
MOST_US = 40.0
PATIENCE_S = 120.0
BYTES = 60


@contextmanager
def published(folder: Path, brokers: int, events: int) -> Iterator[str]:
    """Start a network whose history has this many events; return its address."""
    protocol = ProtocolEntry("gapless", {"history_bytes": max(32_000_000, 600 * events)})
    config = local_network(chain(brokers), protocol=protocol)
    with Fleet(config, folder) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(PATIENCE_S))
        share = events // brokers
        for name in fleet.names:
            with sync.connect(f"gapless://{config.addresses[name]}", timeout_s=PATIENCE_S) as client:
                client.advertise("TRUE")
                client.publish_many(({"topic": "trade", "n": n, "price": n / 8}, bytes(BYTES)) for n in range(share))
        yield config.url


def client_alone(url: str) -> tuple[int, float]:
    """Return the number of events, and the seconds to read them."""
    with sync.connect(url, timeout_s=PATIENCE_S) as client:
        end = client.position()
        begun = time.perf_counter()
        reading = client.read("TRUE", until=end)
        count = 0
        while events := reading.take(8_192):
            count += len(events)
        return count, time.perf_counter() - begun


def query(stream: DataFrame, folder: Path) -> tuple[int, float]:
    """Return the number of rows of the stream, and the seconds that Spark took."""
    writer = stream.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp(dir=folder))
    started = writer.trigger(availableNow=True).start()
    started.awaitTermination()
    told = [progress for progress in started.recentProgress if progress["numInputRows"]]
    rows = sum(progress["numInputRows"] for progress in told)
    return rows, sum(progress["durationMs"]["triggerExecution"] for progress in told) / 1_000


def gapless_stream(spark: SparkSession, url: str, **options: str) -> DataFrame:
    """Return a stream of the whole history."""
    source = spark.readStream.format("gapless").option("url", url).option("startingPosition", "earliest")
    return source.options(**options).load()


def rate_stream(spark: SparkSession, events: int) -> DataFrame:
    """Return a stream of generated rows with two columns: the limit for a source without input."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", events)
    return source.option("numPartitions", CORES).load()


def parquet_stream(spark: SparkSession, url: str, folder: Path) -> DataFrame:
    """Return a stream of the same events, with the same columns, from files."""
    table = spark.read.format("gapless").option("url", url).load()
    table.write.mode("overwrite").parquet(str(folder))
    return spark.readStream.schema(table.schema).parquet(str(folder))


def processor_s() -> float:
    """Return the processor time of this process and all its descendants."""
    parents: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = entry.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            number = int(entry.parent.name)
            parents.setdefault(int(fields[1]), []).append(number)
            used[number] = sum(map(int, fields[11:15]))
    total, rest = 0, [os.getpid()]
    while rest:
        number = rest.pop()
        total += used.get(number, 0)
        rest += parents.get(number, [])
    return total / os.sysconf("SC_CLK_TCK")


def best(turns: int, runs: dict[str, Callable[[], tuple[int, float]]]) -> dict[str, dict[str, float]]:
    """Return the best rate in events per second, and the best processor time per event in microseconds."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            before = processor_s()
            count, seconds = run()
            found[name].append((count / seconds, (processor_s() - before) / count * 1e6))
    return {
        name: {"per_s": max(rate for rate, _ in each), "cpu_us": min(cost for _, cost in each)}
        for name, each in found.items()
    }


def measure(spark: SparkSession, brokers: int, events: int, turns: int) -> dict[str, Any]:
    """Measure all variants on one network."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with published(folder / "network", brokers, events) as url:
            files = parquet_stream(spark, url, folder / "parquet")
            runs: dict[str, Callable[[], tuple[int, float]]] = {
                "client": lambda: client_alone(url),
                "source": lambda: query(gapless_stream(spark, url), folder),
                "one_task": lambda: query(gapless_stream(spark, url, maxEventsPerPartition=str(10**9)), folder),
                "parquet": lambda: query(files, folder),
                "rate": lambda: query(rate_stream(spark, events), folder),
            }
            return {"brokers": brokers, "events": events, "found": best(turns, runs)}


def client_publishes(url: str, events: int) -> tuple[int, float]:
    """Return the number of events, and the seconds to publish them."""
    with sync.connect(url, timeout_s=PATIENCE_S) as client:
        client.advertise("TRUE")
        begun = time.perf_counter()
        client.publish_many(({"topic": "trade", "id": n, "price": n / 8}, bytes(BYTES)) for n in range(events))
        return events, time.perf_counter() - begun


def sink_publishes(
    spark: SparkSession, url: str, events: int, folder: Path, publishers: int = 1
) -> tuple[int, float]:  # fmt: skip
    """Publish the same events through Spark, by the driver or by several workers."""
    rows = spark.range(0, events, 1, CORES).selectExpr(
        "'trade' AS topic", "id", "id / 8 AS price", f"unhex(repeat('00', {BYTES})) AS payload"
    )
    writer = rows.write.format("gapless").option("url", url).option("sink", folder.name)
    begun = time.perf_counter()
    writer.option("staging", str(folder)).option("publishers", publishers).mode("append").save()
    return events, time.perf_counter() - begun


def measure_sink(spark: SparkSession, events: int, turns: int) -> dict[str, dict[str, float]]:
    """Measure both on a network of one broker."""
    with tempfile.TemporaryDirectory() as place, published(Path(place) / "network", 1, 0) as url:
        driver, workers = Path(place) / "driver", Path(place) / "workers"
        return best(
            turns,
            {
                "client": lambda: client_publishes(url, events),
                "sink": lambda: sink_publishes(spark, url, events, driver),
                f"sink with {CORES} publishers": lambda: sink_publishes(spark, url, events, workers, CORES),
            },
        )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a glance")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--events", type=float, help="how many")
    parser.add_argument("--sink", action="store_true", help="the sink alone")
    chosen = parser.parse_args()
    events = int(chosen.events or (30_000 if chosen.quick else 300_000))
    turns, networks = (2, (1,)) if chosen.quick else (4, (1, 3))
    settings = {"spark.driver.memory": "2g"}
    with spark_session(master=f"local[{CORES}]", settings=settings) as spark:
        register(spark)
        sink = measure_sink(spark, events, turns)
        rows = [] if chosen.sink else [measure(spark, brokers, events, turns) for brokers in networks]
    if chosen.out:
        chosen.out.write_text(
            json.dumps({"rows": rows, "sink": sink, "cores": CORES, "most_us": MOST_US}), encoding="utf-8"
        )
    names = {"client": "client", "source": "source", "one_task": "one task", "parquet": "Parquet", "rate": "rate"}
    table = Table(title=f"{events:,} events of about 100 bytes; events/s, and processor time for each; best of {turns}")
    table.add_column("brokers", justify="right")
    for name in names.values():
        table.add_column(name, justify="right")
    for row in rows:
        found = [row["found"][name] for name in names]
        table.add_row(str(row["brokers"]), *(f"{each['per_s']:,.0f}\n{each['cpu_us']:.1f} µs" for each in found))
    Console().print(table)
    for name, figures in sink.items():
        print(
            f"published by the {name}: {figures['per_s']:,.0f} a second, {figures['cpu_us']:.1f} µs of processors each"
        )
    costs = [sink["sink"]["cpu_us"], *(row["found"]["source"]["cpu_us"] for row in rows[:1])]
    print(f"one broker: an event takes {' and '.join(f'{cost:.1f}' for cost in costs)} µs ({MOST_US:g} are allowed)")
    return 0 if chosen.quick or max(costs) <= MOST_US else 1


if __name__ == "__main__":
    sys.exit(main())

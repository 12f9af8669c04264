"""A network of broker processes for tests of the source, with published events."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StructType

from gapless import Event, sync
from gapless.overlay import chain
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from gapless.runtime.settings import RuntimeSettings
from gapless_spark.spark_errors import started_too_slowly
from gapless_spark.stream.columns import default_schema
from gapless_spark.stream.options import Options
from gapless_spark.stream.source import StreamReader

__all__ = ["PATIENCE_S", "history", "patiently", "rows_between", "schema", "served", "speak", "stream_reader"]

PATIENCE_S = 120.0
T = TypeVar("T")
PATIENT = RuntimeSettings(suspect_ms=5_000)
"""Settings for a machine that is busy with other tests."""


@contextmanager
def served(folder: Path, brokers: int = 3, *, name: str = "shop", **options: float) -> Iterator[Fleet]:
    config = local_network(chain(brokers), name=name, protocol=ProtocolEntry("gapless", options), runtime=PATIENT)
    with Fleet(config, folder) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(PATIENCE_S))
        yield fleet


def schema(**kinds: str) -> StructType:
    """Return a schema with these types, by Spark's JSON names; it needs no session."""
    made = StructType()
    for name, kind in kinds.items():
        made = made.add(name, kind)
    return made


def speak(fleet: Fleet, broker: str, events: list[dict[str, Any]], payload: bytes = b"", at_once: int = 100) -> None:
    """Publish at a broker in calls of the given size; events of one call share a timestamp."""
    url = f"gapless://{fleet.config.addresses[broker]}"
    with sync.connect(url, name=f"at-{broker}", timeout_s=PATIENCE_S) as client:
        client.advertise("TRUE")
        for first in range(0, len(events), at_once):
            client.publish_many([(event, payload) for event in events[first : first + at_once]])


def patiently(query: Callable[[], T]) -> T:
    """Retry if Spark's Python process did not start within ten seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return query()
        except StreamingQueryException as error:
            if not started_too_slowly(error) or time.monotonic() > deadline:
                raise


def history(fleet: Fleet, text: str = "TRUE") -> list[Event]:
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        return list(client.read(text))


def stream_reader(fleet: Fleet, schema: StructType | None = None, **options: str) -> StreamReader:
    given = Options.of({"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), **options})
    return StreamReader(given, schema or default_schema(is_variant=False))


def rows_between(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the tasks of a micro-batch, which run at the same time."""
    parts = reader.partitions(start, end)
    found: dict[int, list[dict[str, Any]]] = {}

    def run(place: int) -> None:
        found[place] = [row for batch in reader.read(parts[place]) for row in batch.to_pylist()]

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    return [row for place in range(len(parts)) for row in found[place]]

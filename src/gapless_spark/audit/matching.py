"""Which events match which subscriptions: our own `FilterIndex`, on the executors, over batches of events.

The events of a run are dealt out to as many buckets as it needs, and each bucket gets a copy of the run's filters.
In each partition the rows come sorted, a bucket's filters before its events: so a worker holds one run's filters
at a time, streams the events past them, and no run has to fit anywhere.

Subscriptions with the same text share a filter. What cannot be read, a filter or attributes, comes out as a
sentence instead of a match, since an exception on an executor has no good way to the user.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers.matching import parsed_filter
from gapless.errors import TraceError
from gapless.events import Attributes
from gapless.filters import FilterIndex
from gapless.trace import attributes_from_text
from gapless_spark.audit.encoding import Encoded, run_of

__all__ = ["match_events", "number_filters", "read_topics"]

EVENTS_PER_BUCKET = 50_000
"""Building an index costs about as much as matching this many events."""

_MATCHED = pa.schema([
    ("run_no", pa.int32()), ("filter_no", pa.int32()), ("p", pa.int64()), ("seq", pa.int64()),
    ("published_ms", pa.float64()), ("sentence", pa.string()),
])  # fmt: skip
_MATCHED_DDL = "run_no int, filter_no int, p bigint, seq bigint, published_ms double, sentence string"


def number_filters(encoded: Encoded) -> DataFrame:
    """s, run_no, filter_no, filter: equal texts in a run have one number."""
    filter_no = F.dense_rank().over(Window.partitionBy("run_no").orderBy("filter"))
    return encoded.subscriptions.select("s", "run_no", "filter", filter_no.alias("filter_no"))


def match_events(encoded: Encoded, asked: DataFrame) -> DataFrame:
    """run_no, filter_no, p, seq, published_ms of every match, or a sentence about what cannot be read."""
    events = _sent(encoded).withColumn("run_no", run_of("p"))
    sizes = events.groupBy("run_no").agg(F.ceil(F.count("*") / EVENTS_PER_BUCKET).cast("int").alias("buckets"))
    filters = asked.select("run_no", "filter_no", "filter").distinct().join(sizes, "run_no", "left")
    copies = filters.select(
        "run_no",
        F.explode(F.sequence(F.lit(0), F.coalesce("buckets", F.lit(1)) - 1)).alias("bucket"),
        "filter_no",
        F.col("filter").alias("text"),
        F.lit(None).cast("bigint").alias("p"),
        F.lit(None).cast("bigint").alias("seq"),
        F.lit(None).cast("double").alias("published_ms"),
    )
    dealt = events.join(F.broadcast(sizes), "run_no").select(
        "run_no",
        F.pmod(F.hash("p", "seq"), F.col("buckets")).alias("bucket"),
        F.lit(None).cast("int").alias("filter_no"),
        F.col("attributes").alias("text"),
        "p",
        "seq",
        "published_ms",
    )
    stream = copies.union(dealt).repartition("run_no", "bucket")
    stream = stream.sortWithinPartitions("run_no", "bucket", F.col("filter_no").asc_nulls_last())
    return stream.mapInArrow(_matched_batches, _MATCHED_DDL)


def _sent(encoded: Encoded) -> DataFrame:
    """The events, without those that may never have left their publishers."""
    if encoded.cut_short is None:
        return encoded.events
    sent = encoded.cut_short.where("p IS NOT NULL").select("p", "sent_seq")
    return encoded.events.join(sent, "p", "left").where("sent_seq IS NULL OR seq <= sent_seq").drop("sent_seq")


def read_topics(events: DataFrame) -> DataFrame:
    """p, seq, topic of each event; `topic` is null without a string attribute of that name."""
    return events.select("p", "seq", "attributes").mapInArrow(_topic_batches, "p bigint, seq bigint, topic string")


class _Matcher:
    """The filters of one run."""

    def __init__(self) -> None:
        self._place: tuple[int, int] | None = None
        self._index: FilterIndex[int] = FilterIndex()

    def enter(self, place: tuple[int, int], numbers: list[int], texts: list[str]) -> list[str]:
        """Filters of a bucket; a bucket that is new begins with none. Returns what could not be read."""
        self._begin(place)
        faults = []
        for number, text in zip(numbers, texts, strict=True):
            try:
                self._index.add(number, parsed_filter(text))
            except TraceError as error:
                faults.append(str(error))
        return faults

    def match(self, place: tuple[int, int], texts: list[str]) -> tuple[list[list[int]], list[str]]:
        """The filters that match each of the texts, and what could not be read."""
        self._begin(place)
        faults: list[str] = []
        if not len(self._index):
            return [[] for _ in texts], faults
        known: dict[str, Attributes] = {}
        for text in dict.fromkeys(texts):
            try:
                known[text] = attributes_from_text(text)
            except TraceError as error:
                faults.append(str(error))
                known[text] = {}
        answers = dict(zip(known, self._index.match_many(list(known.values())), strict=True))
        return [answers[text] for text in texts], faults

    def _begin(self, place: tuple[int, int]) -> None:
        if place != self._place:
            self._place, self._index = place, FilterIndex()


def _matched_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    matcher = _Matcher()
    for batch in batches:
        runs, buckets = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        is_filter = batch.column(2).is_valid().to_numpy(zero_copy_only=False)
        changes = np.flatnonzero((np.diff(runs) != 0) | (np.diff(buckets) != 0) | (np.diff(is_filter))) + 1
        for start, end in zip([0, *changes], [*changes, len(runs)], strict=True):
            part = batch.slice(start, end - start)
            place = int(runs[start]), int(buckets[start])
            texts = part.column(3).to_pylist()
            if is_filter[start]:
                faults = matcher.enter(place, part.column(2).to_pylist(), texts)
                if faults:
                    yield _matched(part.slice(0, 0), [], faults)
            else:
                yield _matched(part, *matcher.match(place, texts))


def _matched(part: pa.RecordBatch, answers: list[list[int]], faults: list[str]) -> pa.RecordBatch:
    counts = np.fromiter(map(len, answers), np.int64, len(answers))
    rows = pa.array(np.repeat(np.arange(len(answers)), counts))
    found = np.fromiter((number for answer in answers for number in answer), np.int32, int(counts.sum()))
    columns = [
        part.column(0).take(rows),
        pa.array(found),
        *(part.column(place).take(rows) for place in (4, 5, 6)),
        pa.nulls(len(rows), pa.string()),
    ]
    if faults:
        empty = [pa.nulls(len(faults), field.type) for field in _MATCHED][:-1]
        columns = [pa.concat_arrays(pair) for pair in zip(columns, [*empty, pa.array(faults)], strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_MATCHED)


def _topic_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        topics = pa.array([_topic(text) for text in batch.column(2).to_pylist()], pa.string())
        yield pa.RecordBatch.from_arrays([batch.column(0), batch.column(1), topics], names=["p", "seq", "topic"])


def _topic(text: str) -> str | None:
    topic = attributes_from_text(text).get("topic")
    return topic if isinstance(topic, str) else None

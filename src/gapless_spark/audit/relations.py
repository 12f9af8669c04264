"""What happens before what: the past of each event, as a vector.

The certificate in `pasts` is checked row by row. An event's past must be the maximum of all that its publisher had
read before, and of the pasts of that, as the certificate has *them*. If that holds for every event, and no event comes
before itself, then the certificate is the relation: each event's past follows from those of earlier events, so only
one certificate can hold everywhere. That takes a join of what publishers read with the pasts of what they read, and a
running maximum along each publisher: no walk through the graph, whatever its depth.

Where it does not hold, the relation is computed from `history` alone, by *doubling*. To begin with, the past of an
event is what its publisher had read itself. In each round, all that is known of the pasts of what is in it is added;
so chains of two links are known after the first round, then of four, of eight. The rounds are as many as the longest
shortest chain has digits in binary. That is how runs with a false certificate are judged by the truth, and how
causality within a topic is found, for which there is no certificate.

A *relation* `rel` is a run (its number in the upper half, as in all keys), or one topic of a run (the topic's number
in the lower half).
"""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless.errors import TraceError
from gapless_spark.audit.encoding import Encoded, place_of, publisher_at, refuse, run_of
from gapless_spark.audit.keeping import materialise, shared
from gapless_spark.audit.matching import read_topics
from gapless_spark.audit.sentences import event_name, sentence
from gapless_spark.audit.streams import CLAIMED_DDL, MERGED_DDL, NO_VECTOR, claimed_pasts, merged_pasts

__all__ = ["Relations", "direct_pasts", "relate", "relation_of"]

ROUNDS_MAX = 40
"""Of doubling: enough for chains longer than any trace."""


@dataclass(frozen=True)
class Relations:
    """The pasts by which the runs of a trace are judged."""

    vectors: DataFrame
    """rel, p, seq, past"""
    topics: DataFrame | None
    """p, seq, rel: which relation an event of a run that claims `topic-causal` takes part in; None without such runs"""
    nodes: DataFrame
    """rel, p, seq, own, width: the events of every relation"""
    reads: DataFrame
    """rel, c, step, before, p, seq, own, width, idx: what publishers were delivered, in every relation"""
    claimed: DataFrame
    """p, seq, past, lies, twice: what the certificate says; without a past where no event is"""
    orphans: bool
    """Whether the certificate speaks of events that are not there"""
    truth: DataFrame | None
    """rel, p, seq, past, fresh: of runs whose certificate does not hold; None without such runs"""


def relation_of(key: str) -> Column:
    """The relation of all events of the run that a key belongs to."""
    return F.shiftleft(F.shiftright(key, 32), 32)


def relate(encoded: Encoded, unpublished: DataFrame | None) -> Relations:
    """Check the certificate, and compute what it does not give. `unpublished` was delivered, and never published."""
    claimed = encoded.keeper.keep(_claimed(encoded))
    orphans, doubled = claimed.agg(F.count_if(F.col("past").isNull()), F.count("twice")).collect()[0]
    if doubled:
        refuse(_about_claims(claimed, encoded))
    nodes, reads = _nodes(encoded), _reads(encoded, unpublished)
    vectors = claimed.where("past IS NOT NULL").select(relation_of("p").alias("rel"), "p", "seq", "past")
    suspects = shared(_suspects(claimed, vectors, nodes, reads))
    lying = not suspects.isEmpty()
    topics = _topics(encoded)
    unknown: list[tuple[DataFrame, DataFrame]] = []
    if lying:
        vectors = vectors.join(suspects, "rel", "left_anti")
        unknown.append((nodes.join(suspects, "rel", "left_semi"), reads.join(suspects, "rel", "left_semi")))
    if topics is not None:
        within = topics.where(F.col("rel") != relation_of("rel"))
        topical = nodes.drop("rel").join(within, ["p", "seq"]), reads.drop("rel").join(within, ["p", "seq"])
        unknown.append(topical)
        nodes, reads = nodes.unionByName(topical[0]), reads.unionByName(topical[1])
    truth = None
    if unknown:
        all_nodes, all_reads = (reduce(DataFrame.unionByName, frames) for frames in zip(*unknown, strict=True))
        computed = _double(all_nodes, all_reads, encoded)
        vectors = vectors.union(computed.select(*vectors.columns))
        truth = computed.where(F.col("rel") == relation_of("rel")) if lying else None
    return Relations(vectors, topics, nodes, reads, claimed, bool(orphans), truth)


def direct_pasts(nodes: DataFrame, reads: DataFrame) -> DataFrame:
    """rel, p, seq, past: of each event what its publisher itself had read, the highest number of each publisher."""
    return _merged(_events(nodes, F.expr(NO_VECTOR)), _gathered(reads, None))


# ---- the certificate ------------------------------------------------------------------------------------------


def _claimed(encoded: Encoded) -> DataFrame:
    nothing = F.lit(None).cast("bigint")
    events = encoded.events.select(
        "p", "seq", nothing.alias("q"), place_of("p").alias("idx"), "width", nothing.alias("reach")
    )
    place = place_of("q")
    # An id that no publisher can have given stands for an event that is not there, of nobody.
    claims = encoded.claims.select(
        F.coalesce("p", relation_of("q")).alias("p"),
        F.coalesce("seq", F.xxhash64("odd_id")).alias("seq"),
        "q",
        F.when(place < F.col("width"), place).alias("idx"),
        F.lit(0).alias("width"),
        "reach",
    )
    rows = events.union(claims)
    stream = rows.repartition("p").sortWithinPartitions("p", "seq", F.col("q").asc_nulls_first())
    return stream.mapInArrow(claimed_pasts, CLAIMED_DDL)


def _about_claims(claimed: DataFrame, encoded: Encoded) -> DataFrame:
    names = encoded.names
    doubled = claimed.where("twice IS NOT NULL").join(names.withColumnRenamed("actor", "p"), "p")
    about = names.select(F.col("actor").alias("twice"), F.col("name").alias("about"))
    named = doubled.join(about, "twice").withColumn("event", event_name("name", "seq"))
    return named.select(sentence("run {run}: the past of {event} has two entries for publisher {about}").alias("fault"))


def _suspects(claimed: DataFrame, vectors: DataFrame, nodes: DataFrame, reads: DataFrame) -> DataFrame:
    """rel: runs whose certificate does not hold somewhere."""
    events = nodes.join(vectors, ["rel", "p", "seq"])
    checked = _merged(_events(events, F.col("past")), _gathered(reads, vectors))
    wrong = checked.where("grew OR circular").select("rel")
    return wrong.union(claimed.where("lies").select(relation_of("p"))).distinct()


# ---- doubling -------------------------------------------------------------------------------------------------


def _double(nodes: DataFrame, reads: DataFrame, encoded: Encoded) -> DataFrame:
    """The pasts of these events, from what their publishers read."""
    known = materialise(direct_pasts(nodes, reads))
    for _ in range(ROUNDS_MAX):
        if not _grew(known, encoded):
            return known
        entries = known.select("rel", "p", "seq", F.explode("fresh").alias("idx"), F.col("past").alias("own_past"))
        followed = entries.select(
            "rel", "p", "seq", publisher_at("rel", "idx").alias("q"),
            F.get("own_past", "idx").cast("bigint").alias("number"),
        )  # fmt: skip
        theirs = known.select("rel", F.col("p").alias("q"), F.col("seq").alias("number"), "past")
        pasts = followed.join(theirs, ["rel", "q", "number"]).select("rel", "p", "seq", "past")
        pasts = pasts.union(known.select("rel", "p", "seq", "past")).join(nodes, ["rel", "p", "seq"])
        held = _events(nodes.join(known.select("rel", "p", "seq", "past"), ["rel", "p", "seq"]), F.col("past"))
        known = materialise(_merged(held, _rows(pasts, 0, F.lit(-1), F.lit(0), F.col("past"))))
    raise AssertionError("chains of events cannot be that long")


def _grew(known: DataFrame, encoded: Encoded) -> bool:
    """Whether the last round added something. A `TraceError` if some event would have to happen before itself."""
    grown, circular = known.agg(F.count_if("grew"), F.count_if("circular")).collect()[0]
    if circular:
        first = known.where("circular").orderBy("p", "seq").limit(1)
        named = first.join(encoded.names.withColumnRenamed("actor", "p"), "p")
        run, event = named.select("run", event_name("name", "seq")).collect()[0]
        raise TraceError(f"run {run}: the histories contradict each other, for {event} would have to precede itself")
    return bool(grown)


# ---- rows for the passes --------------------------------------------------------------------------------------


def _nodes(encoded: Encoded) -> DataFrame:
    return encoded.events.select(relation_of("p").alias("rel"), "p", "seq", place_of("p").alias("own"), "width")


def _reads(encoded: Encoded, unpublished: DataFrame | None) -> DataFrame:
    """Deliveries to clients that publish, too: only these carry the relation on."""
    places = {"own": place_of("c"), "idx": place_of("p")}
    reads = encoded.acts.where("NOT publishes").withColumns(places).where("own < width AND idx < width")
    if unpublished is not None:
        reads = reads.join(unpublished, ["p", "seq"], "left_anti")
    return reads.select(
        relation_of("c").alias("rel"), "c", "step", "before", "p", "seq", "own", "width", "idx"
    )  # fmt: skip


def _gathered(reads: DataFrame, vectors: DataFrame | None) -> DataFrame:
    """What was read between two events of the reader: the latest of each publisher, with its past if that is known."""
    latest = reads.groupBy("rel", "c", "before", "p", "own", "width", "idx").agg(F.max("seq").alias("number"))
    past = F.expr(NO_VECTOR)
    if vectors is not None:
        latest = latest.join(vectors.withColumnRenamed("seq", "number"), ["rel", "p", "number"])
        past = F.col("past")
    rows = latest.select(
        "rel", F.col("c").alias("p"), F.col("before").alias("seq"), "own", "width", "idx", "number", past.alias("past")
    )
    return _rows(rows, 2, F.col("idx"), F.col("number"), F.col("past"))


def _events(nodes: DataFrame, held: Column) -> DataFrame:
    return _rows(nodes, 1, F.lit(-1), F.lit(0), held)


def _rows(frame: DataFrame, role: int, idx: Column, number: Column, past: Column) -> DataFrame:
    return frame.select(
        "rel", "p", "seq", F.lit(role).alias("role"), "own", "width", idx.cast("int").alias("idx"),
        number.cast("bigint").alias("number"), past.cast("array<int>").alias("past"),
    )  # fmt: skip


def _merged(events: DataFrame, others: DataFrame) -> DataFrame:
    stream = events.union(others).repartition("rel", "p").sortWithinPartitions("rel", "p", "seq", "role")
    return stream.mapInArrow(merged_pasts, MERGED_DDL)


# ---- topics ---------------------------------------------------------------------------------------------------


def _topics(encoded: Encoded) -> DataFrame | None:
    """Each topic of a run is a relation; the only topic of a run is the run's own."""
    runs = encoded.runs.where(F.col("guarantee") == "topic-causal").select("run_no")
    if runs.isEmpty():
        return None
    events = encoded.events.withColumn("run_no", run_of("p")).join(runs, "run_no", "left_semi")
    topics = materialise(read_topics(events).withColumn("run_no", run_of("p")))
    kinds = topics.groupBy("run_no", "topic").count()
    of_run = Window.partitionBy("run_no")
    numbered = kinds.select(
        "run_no",
        "topic",
        F.when(F.count("*").over(of_run) > 1, F.row_number().over(of_run.orderBy("topic")))
        .otherwise(0)
        .alias("topic_no"),
    ).where("topic IS NOT NULL")
    rel = F.shiftleft(F.col("run_no").cast("bigint"), 32) + F.col("topic_no")
    return topics.join(numbered, ["run_no", "topic"]).select("p", "seq", rel.alias("rel")).transform(materialise)

"""Names to numbers: the tables of a trace, made narrow before anything is sorted or sent.

A client, a publisher and a subscription become one 64-bit key each: the number of the run in its upper half, the
number of the name within the run in its lower half. So a key says which run it belongs to, keys of different runs
never meet in a join, and what is shuffled are integers. An event is (p, seq): its publisher's key and its number.
Those that published are numbered first, so that a publisher's key says, too, where it stands in the run's vectors.

| here | what |
| --- | --- |
| `c` | a client, by whom or to whom something was done |
| `p`, `q` | a publisher: a client, too, in the same numbering |
| `s` | a subscription |
| `idx` | the place of a publisher in the vectors of its run: 0 up to, but without, the run's `width` |
| `width` | how many publishers the run has |
| `before` | how far a client had published when it acted: the number of its last event, 0 without one |

What cannot be encoded keeps its name, so that it can still be reported: `odd_id` is an event id that no publisher
of the run can have given, `odd_s` the id of a subscription that was never requested.

A trace that no run can have left is refused here, with a `TraceError` in the words of `gapless.checkers.evidence`:
each table carries a column with the sentence that there is to say about a row, and is looked through once.
"""

from dataclasses import dataclass
from functools import reduce
from typing import get_args

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers import JUDGED
from gapless.errors import TraceError
from gapless.protocol import Ready
from gapless_spark.audit.keeping import Keeper, shared
from gapless_spark.audit.sentences import event_name, sentence
from gapless_spark.tables import TraceTables

__all__ = ["Encoded", "encode", "place_of", "publisher_at", "refuse", "run_of"]

_HALF = 2**32
_READY = list(get_args(Ready))
_HELD = [guarantee for guarantee, forbidden in JUDGED.items() if "late-start" in forbidden]
"""Guarantees under which a subscription with the whole cut is held to it."""

SEQ_MAX = 2**31 - 1
"""The highest number of an event: vectors of 32 bits travel twice as fast, and no publisher gets that far."""


@dataclass(frozen=True)
class Encoded:
    """The tables of a trace, by keys."""

    runs: DataFrame
    """run_no, run, guarantee, quiesced, clock_skew_ms"""
    names: DataFrame
    """actor, run, name, width"""
    subscriptions: DataFrame
    """s, run_no, run, subscription_id, c, client, filter, requested_ms, active_ms, ended_ms, guarantee, quiesced,
    promised_from, promised_until: what is published between them was promised, if it is not null"""
    cuts: DataFrame
    """s, p, from_seq, to_seq"""
    skipped: DataFrame | None
    """s, p, from_seq, to_seq: what subscriptions were told that they will not get; None if nothing"""
    events: DataFrame
    """p, seq, published_ms, attributes, width"""
    acts: DataFrame
    """c, step, publishes, p, seq, odd_id, s, mine, odd_s, odd_kind, time_ms, width, before, fault_no"""
    claims: DataFrame
    """run, p, seq, odd_id, q, reach, width: the rows of the certificate"""

    cut_short: DataFrame | None
    """run, client, p, acts, last_ms, sent_seq, forgotten: clients of which not all is there, p null without an act;
    None without any"""
    strays: int
    """Deliveries for no subscription of the client's, or of what no publisher can have published."""
    keeper: Keeper
    """For what is used more than once."""

    def only(self, runs: DataFrame) -> "Encoded":
        """The same of some of the runs: those that are listed by `run_no` and `run`."""
        chosen = F.broadcast(runs.select(F.col("run_no").alias("chosen_no")))

        def kept(frame: DataFrame, key: Column) -> DataFrame:
            return frame.join(chosen, key == F.col("chosen_no"), "left_semi")

        return Encoded(
            runs=shared(kept(self.runs, F.col("run_no"))),
            names=shared(kept(self.names, run_of("actor"))),
            subscriptions=shared(kept(self.subscriptions, F.col("run_no"))),
            cuts=shared(kept(self.cuts, run_of("s"))),
            skipped=self.skipped,
            events=kept(self.events, run_of("p")),
            acts=kept(self.acts, run_of("c")),
            claims=kept(self.claims, run_of("q")),
            cut_short=self.cut_short,
            strays=self.strays,
            keeper=self.keeper,
        )


def run_of(key: Column | str) -> Column:
    """The number of the run that a key belongs to."""
    return F.shiftright(key, 32).cast("int")


def place_of(key: str) -> Column:
    """The place of an actor among those of its run, publishers first; of a publisher that in the run's vectors."""
    return F.expr(f"CAST(({key} & {_HALF - 1}) - 1 AS int)")


def publisher_at(key: str, place: str) -> Column:
    """The publisher at a place in the vectors of the run that some other key belongs to."""
    return F.expr(f"shiftleft(shiftright({key}, 32), 32) + {place} + 1")


def refuse(frame: DataFrame, column: str = "fault") -> None:
    """A `TraceError` with the first sentence of that column, if it has one."""
    said = frame.agg(F.min(column)).collect()[0][0]
    if said is not None:
        raise TraceError(said)


def encode(tables: TraceTables, keeper: Keeper) -> Encoded:
    """Number all names, and write the tables anew with numbers."""
    runs = shared(_runs(tables), "fault")
    names = shared(_names(tables, runs))
    cut_short = shared(_cut_short(tables, runs, names), "fault") if tables.rows["cut_short"] else None
    subscriptions = shared(_subscriptions(tables, runs, names, cut_short), "fault")
    cuts = shared(_cuts(tables, runs, subscriptions, names), "fault")
    skipped = shared(_skipped(tables, subscriptions, names), "fault") if tables.rows["skipped"] else None
    events = keeper.keep(_events(tables, names))
    acts = keeper.keep(_acts(tables, names, subscriptions))
    strays = _look_through(acts, names)
    refuse(_about_publications(events, acts, names))
    if cut_short is not None:
        refuse(_about_unsent(acts, cut_short))
    claims = _claims(tables, names)
    return Encoded(runs, names, subscriptions, cuts, skipped, events, acts, claims, cut_short, strays, keeper)


def _as(names: DataFrame, key: str, name: str, *more: str) -> DataFrame:
    return names.selectExpr("run", f"name AS {name}", f"actor AS {key}", *more)


def _runs(tables: TraceTables) -> DataFrame:
    by_name = Window.partitionBy(F.lit(0)).orderBy("run")
    doubled = F.lag("run").over(by_name) == F.col("run")
    words = list(JUDGED)
    strange = f"table runs: column 'guarantee' holds '{{guarantee}}', but only {', '.join(words)} belong there"
    fault = F.when(
        doubled, sentence("two runs are named '{run}'; give each run of a trace a name of its own")
    ).when(~F.col("guarantee").isin(words), sentence(strange))  # fmt: skip
    run_no = F.row_number().over(by_name).alias("run_no")
    columns = ("run", "guarantee", "quiesced", "clock_skew_ms")
    return tables.runs.select(run_no, *columns, fault.alias("fault"))


def _names(tables: TraceTables, runs: DataFrame) -> DataFrame:
    sources = [
        tables.events.selectExpr("run", "publisher AS name", "1 AS publishes"),
        tables.history.selectExpr("run", "client AS name", "0 AS publishes"),
        tables.subscriptions.selectExpr("run", "client AS name", "0 AS publishes"),
        tables.cuts.selectExpr("run", "publisher AS name", "0 AS publishes"),
        tables.pasts.selectExpr("run", "publisher AS name", "0 AS publishes"),
    ]
    found = reduce(DataFrame.union, sources).groupBy("run", "name").agg(F.max("publishes").alias("publishes"))
    found = found.join(runs.select("run", "run_no"), "run")
    width = F.expr("CAST(sum(publishes) OVER (PARTITION BY run_no) AS int) AS width")
    return found.select(_key("publishes DESC, name").alias("actor"), "run", "name", width)


def _key(order: str) -> Column:
    """The number of the run above the place of the row within the run."""
    return F.expr(f"run_no * {_HALF} + row_number() OVER (PARTITION BY run_no ORDER BY {order})")


def _cut_short(tables: TraceTables, runs: DataFrame, names: DataFrame) -> DataFrame:
    doubled = F.lag("client").over(Window.partitionBy("run").orderBy("client")) == F.col("client")
    fault = F.when(doubled, sentence("run {run}: a client is listed twice as cut short"))
    known = tables.cut_short.join(runs.select("run"), "run")
    keyed = known.join(_as(names, "p", "client"), ["run", "client"], "left")
    return keyed.select("run", "client", "p", "acts", "last_ms", "sent_seq", "forgotten", fault.alias("fault"))


def _about_unsent(acts: DataFrame, cut_short: DataFrame) -> DataFrame:
    """What was delivered was sent."""
    delivered = acts.where("NOT publishes AND p IS NOT NULL").select("p", "seq")
    beyond = delivered.join(cut_short, "p").where("seq > sent_seq").withColumn("event", event_name("client", "seq"))
    said = (
        "run {run}: {event} was delivered, though {client}, which is cut short, is said to have sent its events up to "
        "{sent_seq} only"
    )
    return beyond.select(sentence(said).alias("fault"))


def _subscriptions(
    tables: TraceTables, runs: DataFrame, names: DataFrame, cut_short: DataFrame | None
) -> DataFrame:  # fmt: skip
    known = tables.subscriptions.join(runs.drop("fault"), "run").join(_as(names, "c", "client"), ["run", "client"])
    if cut_short is not None:
        # What a client did after its part of the trace broke off is not known: for it, nothing is over.
        broken = cut_short.select("run", "client", F.lit(True).alias("broken"))
        known = known.join(broken, ["run", "client"], "left")
        known = known.withColumn("quiesced", F.col("quiesced") & F.col("broken").isNull()).drop("broken")
    columns = ["filter", "requested_ms", "active_ms", "ended_ms", "guarantee", "quiesced"]
    held = F.col("guarantee").isin(_HELD) & (F.col("ready") == "whole")
    promised = {
        "promised_from": F.when(held, F.col("active_ms") + F.col("clock_skew_ms")),
        "promised_until": F.coalesce(F.col("ended_ms") - F.col("clock_skew_ms"), F.lit(float("inf"))),
    }
    before = F.lag("subscription_id").over(Window.partitionBy("run_no").orderBy("subscription_id"))
    doubled = before == F.col("subscription_id")
    strange = f"table subscriptions: column 'ready' holds '{{ready}}', but only {', '.join(_READY)} belong there"
    fault = F.when(doubled, sentence("run {run}: subscription {subscription_id} is listed twice")).when(
        ~F.col("ready").isin(_READY), sentence(strange)
    )
    keyed = known.withColumns(promised).select("*", _key("subscription_id").alias("s"), fault.alias("fault"))
    return keyed.select("s", "run_no", "run", "subscription_id", "c", "client", *columns, *promised, "fault")


def _cuts(tables: TraceTables, runs: DataFrame, subscriptions: DataFrame, names: DataFrame) -> DataFrame:
    owners = subscriptions.select("run", "subscription_id", "s", "ended_ms")
    cuts = tables.cuts.join(runs.select("run"), "run").join(owners, ["run", "subscription_id"], "left")
    cuts = cuts.join(_as(names, "p", "publisher"), ["run", "publisher"])
    doubled = F.lag("p").over(Window.partitionBy("s").orderBy("p")) == F.col("p")
    fault = (
        F.when(
            F.col("s").isNull(),
            sentence("run {run}: a cut belongs to subscription {subscription_id}, which is not listed"),
        )
        .when(doubled, sentence("run {run}: subscription {subscription_id} has two cuts for publisher {publisher}"))
        .when(
            F.col("to_seq").isNotNull() & F.col("ended_ms").isNull(),
            sentence("run {run}: subscription {subscription_id} has an ending cut, but did not end"),
        )
    )
    return cuts.select("s", "p", "from_seq", "to_seq", fault.alias("fault"))


def _skipped(tables: TraceTables, subscriptions: DataFrame, names: DataFrame) -> DataFrame:
    owners = subscriptions.select("run", "subscription_id", "s")
    skipped = tables.skipped.join(owners, ["run", "subscription_id"], "left")
    skipped = skipped.join(_as(names, "p", "publisher"), ["run", "publisher"])
    unlisted = sentence("run {run}: something was skipped for subscription {subscription_id}, not listed")
    fault = F.when(F.col("s").isNull(), unlisted)
    return skipped.select("s", "p", "from_seq", "to_seq", fault.alias("fault"))


def _events(tables: TraceTables, names: DataFrame) -> DataFrame:
    misnamed = (F.col("event_id") != event_name("publisher", "seq")) | (F.col("seq") < 1)
    fault = F.when(
        misnamed, sentence("run {run}: event {event_id} is not named publisher:seq, with numbers from 1")
    ).when(
        F.col("seq") > SEQ_MAX, sentence(f"run {{run}}: event {{event_id}} is numbered beyond {SEQ_MAX}")
    )  # fmt: skip
    known = tables.events.join(_as(names, "p", "publisher", "width"), ["run", "publisher"])
    return known.select("p", "seq", "published_ms", "attributes", "width", fault.alias("fault"))


def _with_event(frame: DataFrame, names: DataFrame) -> DataFrame:
    """Add p and seq, read from `event_id`; without them where the id is not `publisher:seq` of a known name."""
    tail = F.substring_index("event_id", ":", -1)
    head = F.expr("substring(event_id, 1, length(event_id) - length(substring_index(event_id, ':', -1)) - 1)")
    read = frame.withColumn("publisher_name", head).withColumn("number", tail.try_cast("bigint"))
    canonical = F.concat("publisher_name", F.lit(":"), F.col("number").cast("string")) == F.col("event_id")
    keyed = read.join(_as(names, "named_p", "publisher_name"), ["run", "publisher_name"], "left")
    known = F.coalesce(canonical, F.lit(False)) & F.col("named_p").isNotNull()
    return keyed.withColumns({
        "p": F.when(known, F.col("named_p")),
        "seq": F.when(known, F.col("number")),
        "odd_id": F.when(~known, F.col("event_id")),
    })  # fmt: skip


def _acts(tables: TraceTables, names: DataFrame, subscriptions: DataFrame) -> DataFrame:
    acts = _with_event(tables.history.join(_as(names, "c", "client", "width"), ["run", "client"]), names)
    owners = subscriptions.select("run", "subscription_id", "s", F.col("c").alias("owner"))
    known = acts.join(owners, ["run", "subscription_id"], "left")
    # From here on there are numbers only, save where something is odd: this is the widest table to be sorted.
    narrow = known.select(
        "c", "step", (F.col("kind") == "publish").alias("publishes"), "p", "seq", "odd_id", "s",
        F.coalesce(F.col("owner") == F.col("c"), F.lit(False)).alias("mine"),
        F.when(F.col("s").isNull(), F.col("subscription_id")).alias("odd_s"),
        F.when(~F.col("kind").isin("publish", "deliver"), F.col("kind")).alias("odd_kind"),
        "time_ms", "width",
    )  # fmt: skip
    by_step = Window.partitionBy("c").orderBy("step")
    published = F.max(F.when(F.col("publishes"), F.col("seq")))
    before = F.coalesce(published.over(by_step.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0))
    placed = narrow.withColumns({"place": F.row_number().over(by_step) - 1, "before": before})
    return placed.withColumn("fault_no", _fault_no()).drop("place")


_FAULTS = (
    "table history: column 'kind' holds '{odd_kind}', but only publish, deliver belong there",
    "run {run}: client {client} has no single step {place}; number its acts 0, 1, 2…",
    "run {run}: step {step} of client {client} must name a subscription exactly if it delivers",
    "run {run}: client {client} publishes {event}, which is no event of its own",
    "run {run}: client {client} publishes {event} out of the order of its numbers",
)
"""What cannot be of one act of a client."""


def _fault_no() -> Column:
    """Which of `_FAULTS` an act has; null without one."""
    publishes = F.col("publishes")
    own = F.coalesce(F.col("p") == F.col("c"), F.lit(False))
    tests = (
        F.col("odd_kind").isNotNull(),
        F.col("step") != F.col("place"),
        publishes == (F.col("s").isNotNull() | F.col("odd_s").isNotNull()),
        publishes & ~own,
        publishes & (F.col("seq") <= F.col("before")),
    )
    numbered = [F.when(test, F.lit(number).cast("tinyint")) for number, test in enumerate(tests)]
    return F.coalesce(*numbered)


def _look_through(acts: DataFrame, names: DataFrame) -> int:
    """Refuse what is impossible; how many deliveries are for no subscription of the client's, or of no event."""
    stray = F.count_if(~F.col("publishes") & (~F.col("mine") | F.col("p").isNull()))
    faults, strays = acts.agg(F.count("fault_no"), stray).collect()[0]
    if faults:
        refuse(_about_acts(acts, names))
    return int(strays)


def _about_acts(acts: DataFrame, names: DataFrame) -> DataFrame:
    place = F.row_number().over(Window.partitionBy("c").orderBy("step")) - 1
    faulty = acts.withColumn("place", place).where("fault_no IS NOT NULL")
    named = faulty.join(names.select(F.col("actor").alias("c"), "run", F.col("name").alias("client")), "c")
    named = named.join(names.select(F.col("actor").alias("p"), "name"), "p", "left")
    named = named.withColumn("event", F.coalesce("odd_id", event_name("name", "seq")))
    said = [F.when(F.col("fault_no") == number, sentence(text)) for number, text in enumerate(_FAULTS)]
    return named.select(F.coalesce(*said).alias("fault"))


def _about_publications(events: DataFrame, acts: DataFrame, names: DataFrame) -> DataFrame:
    """Each event is listed once and published once. `fault` says which is not."""
    listed = events.select("p", "seq", F.lit(1).alias("listed"), F.lit(0).alias("published"), "fault")
    published = acts.where("publishes").select(
        "p", "seq", F.lit(0).alias("listed"), F.lit(1).alias("published"), F.lit(None).cast("string").alias("fault")
    )
    totals = listed.union(published).groupBy("p", "seq")
    counted = [F.sum("listed").alias("listed"), F.sum("published").alias("published"), F.min("fault").alias("fault")]
    wrong = totals.agg(*counted).where("listed <> 1 OR published <> 1 OR fault IS NOT NULL")
    named = wrong.join(names.withColumnRenamed("actor", "p"), "p").withColumn("event", event_name("name", "seq"))
    missing = (
        F.when(F.col("listed") > 1, sentence("run {run}: event {event} is listed twice"))
        .when(
            F.col("listed") == 0,
            sentence("run {run}: client {name} publishes {event}, which is no event of its own"),
        )
        .otherwise(sentence("run {run}: event {event} is listed, but not published; record each publication as a step"))
    )
    return named.select(F.coalesce(F.col("fault"), missing).alias("fault"))


def _claims(tables: TraceTables, names: DataFrame) -> DataFrame:
    rows = tables.pasts.select("run", "event_id", "publisher", F.col("seq").alias("reach"))
    about = rows.join(_as(names, "q", "publisher", "width"), ["run", "publisher"])
    return _with_event(about, names).select("run", "p", "seq", "odd_id", "q", "reach", "width")

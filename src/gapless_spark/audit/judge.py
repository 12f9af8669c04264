"""The judge on Spark: runs that fit into a worker are judged there, by the checkers (`small_runs`) or, if they are
larger, by arrays (`large_runs`); what does not fit, or is not clear at a glance, by joins.

For those, it asks every rule that their guarantees call for, and sums up. One summary shows what kinds of anomalies
there are. A rule is asked for its anomalies only if the summary shows some, so a valid trace costs one pass of each
kind, whatever its runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers import ANOMALY_KINDS
from gapless.checkers.verdict_rows import IN_ORDER, PAIRS_MAX, ROWS_MAX
from gapless.checkers.verdict_rows import first_anomalies as first_of_rows
from gapless.errors import TraceError
from gapless_spark.audit import anomalies, pair_anomalies
from gapless_spark.audit.causal_order import find_inversions
from gapless_spark.audit.cut_short import with_cut_short
from gapless_spark.audit.due import BLURRED, all_due, is_much, nearest_due, without_skipped
from gapless_spark.audit.encoding import Encoded, encode, refuse, run_of
from gapless_spark.audit.keeping import Keeper, materialise, shared
from gapless_spark.audit.large_runs import EVENTS_MAX, glance_at
from gapless_spark.audit.matching import match_events, number_filters
from gapless_spark.audit.missing_effects import find_missing_effects
from gapless_spark.audit.pairs import ACCEPTED, AFTER_LAST, BEFORE_START, OTHER, WITHIN, lay_pairs
from gapless_spark.audit.relations import Relations, relate
from gapless_spark.audit.small_runs import judge_in_workers, sizes_of_runs
from gapless_spark.audit.witnesses import find_witnesses
from gapless_spark.tables import TraceTables

__all__ = ["Audit", "audit", "first_anomalies"]

COLLECTED_MAX = 20_000
"""So many anomalies are sorted here, where that is asked for: Spark takes seconds to plan it."""

ROWS_PER_PARTITION = 250_000
"""Of `history`, for each task of a shuffle: sorts stay in memory, and a core has a few tasks to balance."""


@dataclass(frozen=True)
class Audit:
    """What was found. Both tables are kept until `release`."""

    verdicts: DataFrame
    """run, guarantee, status, reason, anomalies, counts, events, subscriptions, deliveries, cut_short"""
    anomalies: DataFrame
    """run, kind, client, subscription, event, publisher, witness, message"""
    keeper: Keeper
    rows: list[dict[str, Any]] | None = None
    """The verdicts, where they had to be looked at anyway."""

    def tell(self, count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The verdict on each run, by name, and so many anomalies (see `first_anomalies`)."""
        rows = self.rows
        if rows is None:
            rows = self.verdicts.toArrow().to_pylist(maps_as_pydicts="strict")
        rows = sorted(rows, key=itemgetter("run"))
        total = sum(row["anomalies"] for row in rows)
        if not total:
            return rows, []
        if total > COLLECTED_MAX:
            return rows, first_anomalies(self.anomalies, count).toArrow().to_pylist()
        return rows, first_of_rows(self.anomalies.toArrow().to_pylist(), count)

    def release(self) -> None:
        """Let go of what is kept."""
        self.keeper.release()


def audit(
    spark: SparkSession,
    tables: TraceTables,
    *,
    rows_max: int = ROWS_MAX,
    events_max: int = EVENTS_MAX,
    look_first: bool | None = None,
) -> Audit:
    """Judge every run of the trace by the guarantee that it claims; a `TraceError` if no run can have left it.

    `rows_max` is how many rows a run may have to be judged by the checkers, and `events_max` how many events a trace
    may have for others to be judged by arrays. `look_first` decides whether there is a first look at what is left for
    joins (see `due`); if it is not given, the trace does.
    """
    small, large = sizes_of_runs(spark, tables, rows_max, PAIRS_MAX)
    parts: list[Audit] = []
    if large and tables.rows["events"] <= events_max:
        glanced, unclear = glance_at(spark, tables, large)
        if len(unclear) < len(large):
            parts.append(_told(glanced))
        large = unclear
    if large:
        chosen = spark.createDataFrame([(run,) for run in large], "run string")
        some = tables.only(chosen) if small or parts else tables
        parts.append(_audited_by_joins(spark, some, sum(large.values()), look_first))
    if small or not parts:
        parts.append(_told(judge_in_workers(spark, tables, small)))
    return _together(parts)


def _together(parts: Sequence[Audit]) -> Audit:
    if len(parts) == 1:
        return parts[0]
    keeper = Keeper()
    for part in parts:
        keeper.take_over(part.keeper)
    return Audit(
        materialise(reduce(DataFrame.unionByName, (part.verdicts for part in parts))),
        materialise(reduce(DataFrame.unionByName, (part.anomalies for part in parts))),
        keeper,
    )


def _told(judged: DataFrame) -> Audit:
    """What was found in workers: a row for each run."""
    found = materialise(judged)
    counted = F.size("found").cast("bigint").alias("anomalies")
    verdicts = found.select(
        "run", "guarantee", "status", "reason", counted, "counts", "events", "subscriptions", "deliveries", "cut_short"
    )
    rows = found.select(*verdicts.columns[:4], counted, *verdicts.columns[5:], "fault").toArrow()
    faults = [fault for fault in rows.column("fault").to_pylist() if fault is not None]
    if faults:
        raise TraceError(min(faults))
    anomalies = found.select("run", F.explode("found").alias("found")).select("run", "found.*")
    return Audit(verdicts, anomalies, Keeper(), rows.drop_columns("fault").to_pylist(maps_as_pydicts="strict"))


def _audited_by_joins(spark: SparkSession, tables: TraceTables, acts: int, look_first: bool | None) -> Audit:
    keeper = Keeper()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(_partitions(int(before or 4), acts)))
    try:
        return _audited(encode(tables, keeper), acts, look_first)
    except BaseException:
        keeper.release()
        raise
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))


def _audited(encoded: Encoded, acts: int, look_first: bool | None) -> Audit:
    asked = shared(number_filters(encoded))
    matches = encoded.keeper.keep(match_events(encoded, asked))
    refuse(matches, "sentence")
    asked = asked.drop("filter")
    if look_first is None:
        look_first = is_much(matches, asked, acts)
    if not look_first:
        return _Judge(encoded, without_skipped(encoded, all_due(matches, asked))).audit()
    near = without_skipped(encoded, nearest_due(encoded, matches, asked))
    first = _Judge(encoded, near, is_first_look=True).audit()
    blurred = first.anomalies.where(F.col("kind").isin(*BLURRED)).select("run")
    unsure = materialise(encoded.runs.join(blurred, "run", "left_semi").select("run_no", "run"))
    if unsure.isEmpty():
        return first
    chosen = encoded.only(unsure)
    everything = all_due(matches, asked.join(unsure.select("run_no"), "run_no", "left_semi"))
    again = _Judge(chosen, without_skipped(encoded, everything)).audit()
    verdicts, found = (
        table.join(unsure.select("run"), "run", "left_anti") for table in (first.verdicts, first.anomalies)
    )
    return Audit(
        materialise(verdicts.unionByName(again.verdicts)),
        materialise(found.unionByName(again.anomalies)),
        encoded.keeper,
    )


def first_anomalies(found: DataFrame, count: int) -> DataFrame:
    """So many anomalies, the first of each kind in each run before the second of any."""
    place = F.row_number().over(Window.partitionBy("run", "kind").orderBy(*IN_ORDER))
    chosen = found.withColumn("place", place).orderBy("place", "run", "kind").limit(count)
    return chosen.orderBy("run", "place", "kind", *IN_ORDER).drop("place")


def _partitions(at_least: int, rows: int) -> int:
    return max(at_least, min(2000, rows // ROWS_PER_PARTITION))


class _Judge:
    def __init__(self, encoded: Encoded, due: DataFrame, *, is_first_look: bool = False) -> None:
        self._encoded = encoded
        self._is_first_look = is_first_look
        self._namer = anomalies.Namer(encoded)
        self._pairs = encoded.keeper.keep(lay_pairs(encoded, due))
        self._summary = materialise(_summary(self._pairs))
        self._totals = self._summary.agg(*(F.sum(name).alias(name) for name in _COUNTED)).collect()[0].asDict()

    def audit(self) -> Audit:
        relations = relate(self._encoded, self._unpublished())
        found = [anomalies.never_active(self._encoded), *self._spurious(), *self._false_pasts(relations)]
        found += self._about_pairs(relations)
        found += anomalies.false_losses(self._encoded, self._namer)
        table = materialise(reduce(DataFrame.union, found))
        return Audit(materialise(_verdicts(self._encoded, table, self._summary)), table, self._encoded.keeper)

    def _has(self, name: str) -> bool:
        return bool(self._totals[name])

    def _unpublished(self) -> DataFrame | None:
        """p, seq of what was delivered and never published."""
        if not self._has("unsound") and not self._encoded.strays:
            return None
        delivered = self._pairs.where("came > 0 AND NOT matches").select("p", "seq")
        strays = self._encoded.acts.where("NOT publishes AND NOT mine AND p IS NOT NULL").select("p", "seq")
        listed = self._encoded.events.select("p", "seq")
        return materialise(delivered.union(strays).distinct().join(listed, ["p", "seq"], "left_anti"))

    def _spurious(self) -> list[DataFrame]:
        unsound, untimely = self._has("unsound"), self._has("untimely")
        if not (unsound or untimely or self._encoded.strays):
            return []
        return [anomalies.spurious(self._encoded, self._pairs, self._namer, unsound=unsound, untimely=untimely)]

    def _about_pairs(self, relations: Relations) -> list[DataFrame]:
        facts = []
        if self._has("repeated"):
            facts.append(pair_anomalies.duplicates(self._encoded, self._pairs))
        if self._has("late"):
            facts.append(pair_anomalies.fifo_inversions(self._pairs))
        if self._has("within"):
            facts.append(pair_anomalies.gaps(self._pairs))
        inverted, effects = find_inversions(self._encoded, self._pairs, relations), None
        if self._has("after_last"):
            facts.append(pair_anomalies.unobserved(self._unobserved(inverted)))
        if self._has("unstarted"):
            facts.append(pair_anomalies.late_starts(self._pairs))
        if self._has("before_start"):
            effects = find_missing_effects(self._encoded, self._pairs, relations)
        if inverted is not None:
            facts.append(pair_anomalies.inversions(inverted))
        if effects is not None:
            facts.append(pair_anomalies.missing_effects(effects))
        if not facts:
            return []
        # Where a chain would be the witness, a first look is not the last.
        chains = None
        if (inverted is not None or effects is not None) and not self._is_first_look:
            chains = find_witnesses(self._encoded, relations, self._pairs, inverted, effects)
        return [pair_anomalies.tell(facts, chains, self._namer)]

    def _unobserved(self, inverted: DataFrame | None) -> DataFrame:
        waiting = self._encoded.subscriptions.where(
            "quiesced AND ended_ms IS NULL AND active_ms IS NOT NULL AND guarantee <> 'best-effort'"
        )
        missing = self._pairs.where(F.col("state") == AFTER_LAST).join(waiting.select("s"), "s")
        if inverted is not None:
            missing = missing.join(inverted.select("s", "p", "seq"), ["s", "p", "seq"], "left_anti")
        return missing.select("s", "p", "seq", "from_seq", "low")

    def _false_pasts(self, relations: Relations) -> list[DataFrame]:
        found = []
        if relations.truth is not None:
            found += anomalies.false_claims(self._encoded, relations.truth, self._namer)
        if relations.orphans:
            lonely = relations.claimed.where("past IS NULL").select("p", "seq")
            claims = self._encoded.claims
            about_nothing = claims.where("p IS NULL").unionByName(claims.join(lonely, ["p", "seq"], "left_semi"))
            found.append(anomalies.claims_about_nothing(about_nothing, self._namer))
        return found


# ---- summing up -----------------------------------------------------------------------------------------------

_COUNTED = (
    "accepted", "unsound", "untimely", "repeated", "late", "within", "after_last", "before_start", "unserved",
    "unstarted",
)  # fmt: skip


def _summary(pairs: DataFrame) -> DataFrame:
    """Per subscription, how many pairs of each fate."""
    counted = {
        "accepted": f"state = {ACCEPTED}",
        "unsound": "came > 0 AND NOT sound",
        "untimely": f"state = {OTHER} AND sound",
        "repeated": "came > 1 AND sound",
        "late": "late",
        "within": f"state = {WITHIN}",
        "after_last": f"state = {AFTER_LAST}",
        "before_start": f"state = {BEFORE_START}",
        "unserved": "unserved",
        "unstarted": "unstarted",
    }
    return pairs.groupBy("s").agg(*(F.expr(f"count_if({what}) AS {name}") for name, what in counted.items()))


def _verdicts(encoded: Encoded, found: DataFrame, summary: DataFrame) -> DataFrame:
    rank = F.array_position(F.array(*map(F.lit, ANOMALY_KINDS)), F.col("kind"))
    by_kind = found.groupBy("run", "kind").agg(
        F.count("*").alias("count"), F.min(F.struct("subscription", "event", "message")).alias("first")
    )
    wrong = by_kind.groupBy("run").agg(
        F.sum("count").alias("anomalies"),
        F.map_from_entries(F.array_sort(F.collect_list(F.struct("kind", "count")))).alias("counts"),
        F.min(F.struct(rank.alias("rank"), "first")).alias("first"),
    )
    judged = encoded.subscriptions.join(summary, "s", "left").fillna(0, list(_COUNTED))
    lives = "guarantee <> 'best-effort' AND accepted = 0 AND ended_ms IS NULL AND "
    silent = F.expr(
        lives + "((NOT quiesced AND after_last > 0) OR (quiesced AND active_ms IS NOT NULL AND unserved > 0))"
    )
    one = F.lit(1)
    silent_one = F.when(silent, F.struct("requested_ms", "subscription_id"))
    of_subscriptions = judged.select("run_no", one.alias("subscriptions"), "accepted", silent_one.alias("silent"))
    of_events = encoded.events.select(run_of("p").alias("run_no"), one.alias("events"))
    of_acts = encoded.acts.where("NOT publishes").select(run_of("c").alias("run_no"), one.alias("deliveries"))
    counted = of_subscriptions.unionByName(of_events, allowMissingColumns=True)
    counted = counted.unionByName(of_acts, allowMissingColumns=True)
    summed = (F.sum(name).alias(name) for name in ("subscriptions", "accepted", "events", "deliveries"))
    totals = counted.groupBy("run_no").agg(*summed, F.min("silent").alias("silent"))
    # Both are materialised: a plan that is sent to Spark Connect may be nested only so deep.
    runs = encoded.runs.join(materialise(wrong), "run", "left").join(materialise(totals), "run_no", "left")
    runs = runs.fillna(0, ["anomalies", "subscriptions", "accepted", "events", "deliveries"])
    message = F.col("first.first.message")
    more = F.concat(message, F.lit(" (and "), (F.col("anomalies") - 1).cast("string"), F.lit(" more)"))
    status = F.expr(
        "CASE WHEN anomalies > 0 THEN 'invalid' WHEN accepted = 0 OR silent IS NOT NULL THEN 'unknown' ELSE 'valid' END"
    )
    reason = (
        F.when(F.col("anomalies") > 0, F.when(F.col("anomalies") == 1, message).otherwise(more))
        .when(F.col("accepted") == 0, F.lit("nothing was delivered in the whole run"))
        .when(
            F.col("silent").isNotNull(),
            F.concat("silent.subscription_id", F.lit(" got nothing, though something may be due to it")),
        )
        .otherwise(F.concat(F.col("accepted").cast("string"), F.lit(" deliveries are as promised")))
    )
    nothing = F.create_map().cast("map<string,bigint>")
    found_of_run = runs.select(
        "run", "guarantee", status.alias("status"), reason.alias("reason"), "anomalies",
        F.coalesce("counts", nothing).alias("counts"), "events", "subscriptions", "deliveries",
    )  # fmt: skip
    return with_cut_short(found_of_run, encoded.cut_short)

"""What is due to whom: every match of a subscription, or, for a first look, only those that can decide something.

A subscription that was there for a moment of a long run matches, by its filter, events of the whole run. If many come
and go, all their matches are far more than what was delivered. Of an ended subscription with a cut, what lies far
outside the cut decides nothing by itself:

- before the start, the last match is a missing effect if any is (`missing_effects`: pasts grow along a publisher);
- after the end, the first match lacks before its effects if any does (`causal_order`, for the same reason);
- of publishers without a cut and without a delivery, an ended subscription is owed nothing.

So a first look takes what lies within the cut, one match on either side, and before the start what was published when
the subscription was active, if it claims that its cut is whole: of an honest one, that is nothing. What is wrong within
cuts it sees as it is; a run that shows something outside (`BLURRED`) is looked at again, with everything.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, place_of, run_of
from gapless_spark.audit.keeping import shared

__all__ = ["BLURRED", "all_due", "is_much", "nearest_due", "without_skipped"]

BLURRED = ("spurious", "causal-inversion", "late-start", "missing-effect")
"""Anomalies of which a first look may not see all, or not why."""

MUCH = 4
"""Matches for each act of a client: from there on a first look is worth its while."""

_DUE = ("s", "p", "seq", "published_ms")


def all_due(matches: DataFrame, asked: DataFrame) -> DataFrame:
    """s, p, seq, published_ms of every match."""
    return matches.join(asked, ["run_no", "filter_no"]).select(*_DUE)


def without_skipped(encoded: Encoded, due: DataFrame) -> DataFrame:
    """The same without what subscriptions were told that they will not get, and did not get."""
    if encoded.skipped is None:
        return due
    skipped = encoded.skipped.select("s", "p", "from_seq", "to_seq")
    lost = due.join(skipped, ["s", "p"]).where("seq BETWEEN from_seq AND to_seq").select("s", "p", "seq").distinct()
    came = encoded.acts.where("NOT publishes AND mine AND p IS NOT NULL").select("s", "p", "seq")
    return due.join(lost.join(came, ["s", "p", "seq"], "left_anti"), ["s", "p", "seq"], "left_anti")


def is_much(matches: DataFrame, asked: DataFrame, acts: int) -> bool:
    """Whether all that is due is far more than what was done."""
    found = matches.groupBy("run_no", "filter_no").agg(F.count("*").alias("matching"))
    asking = asked.groupBy("run_no", "filter_no").agg(F.count("*").alias("asking"))
    total = found.join(asking, ["run_no", "filter_no"]).agg(F.sum(F.col("matching") * F.col("asking"))).collect()[0][0]
    return bool((total or 0) > MUCH * acts)


def nearest_due(encoded: Encoded, matches: DataFrame, asked: DataFrame) -> DataFrame:
    """The same for what lies within cuts, the nearest on either side, and what was promised."""
    along = Window.partitionBy("filter_no", "p").orderBy("seq")
    neighboured = matches.select(
        "filter_no", "p", "seq", "published_ms",
        F.lag("seq").over(along).alias("before"), F.lead("seq").over(along).alias("after"),
    )  # fmt: skip
    near = neighboured.join(shared(_spans(encoded, asked)), ["filter_no", "p"]).where(
        "(low IS NULL OR after IS NULL OR after >= low OR published_ms > promised_from)"
        " AND (high IS NULL OR before IS NULL OR before <= high)"
    )
    return near.select(*_DUE)


def _spans(encoded: Encoded, asked: DataFrame) -> DataFrame:
    """filter_no, p, s, low, high, promised_from: where to look; an end that is null is open."""
    subscriptions = encoded.subscriptions.select("s", "run_no", "ended_ms", "promised_from")
    subscriptions = subscriptions.join(asked.drop("run_no"), "s")
    cut = encoded.cuts.select("s", "p", "from_seq", "to_seq").join(subscriptions, "s")
    end = F.when(F.col("ended_ms").isNotNull(), F.col("to_seq"))
    cut = cut.select("filter_no", "p", "s", F.col("from_seq").alias("low"), end.alias("high"), "promised_from")
    publishers = encoded.names.where(place_of("actor") < F.col("width")).select(
        F.col("actor").alias("p"), run_of("actor").alias("run_no")
    )
    living = subscriptions.where("ended_ms IS NULL").join(publishers, "run_no").select("filter_no", "p", "s")
    came = encoded.acts.where("NOT publishes AND mine AND p IS NOT NULL").select("s", "p").distinct()
    served = subscriptions.join(came, "s").select("filter_no", "p", "s")
    nothing = F.lit(None).cast("bigint")
    without_cut = living.union(served).distinct().join(encoded.cuts.select("s", "p"), ["s", "p"], "left_anti")
    open_ends = (nothing.alias("low"), nothing.alias("high"), F.lit(None).cast("double").alias("promised_from"))
    return cut.union(without_cut.select("filter_no", "p", "s", *open_ends))

"""Every pair of a subscription and an event that is due to it or came for it, and what became of it.

What is due (the matches) and what came (the deliveries) are laid together, one row for each pair, and sorted once,
by subscription, publisher and number. In that order every rule about single events and about one publisher is a
look at a row, at its partition, or at the rows above it:

| rule | how |
| --- | --- |
| `spurious`, `duplicate` | the row itself: came without a match, outside the cut, at the wrong time, more than once |
| starting cut without a row in `cuts` | the lowest accepted number of the partition |
| `fifo-inversion` | a higher number came at an earlier step: the running minimum of steps, highest number first |
| `gap` | missing, and not above the highest accepted number or the ending cut |
| witness of a gap | the next accepted number above: the last one seen, highest number first |

Missing pairs are sorted into those before the start, within, and after the last that came, as
`gapless.checkers.gapless_fifo` does.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded

__all__ = ["ACCEPTED", "AFTER_LAST", "BEFORE_START", "OTHER", "WITHIN", "lay_pairs"]

OTHER, ACCEPTED, BEFORE_START, WITHIN, AFTER_LAST = range(5)
"""What became of a pair. `OTHER` came, but was not accepted; the last three never came."""


def lay_pairs(encoded: Encoded, matches: DataFrame) -> DataFrame:
    """One row a pair, of the matches that are given and of all deliveries.

    s, p, seq; matches; published_ms; came: how often; step, time_ms: of the first delivery; from_seq, to_seq; sound:
    nothing is wrong with it but, perhaps, the time; state; low, high: lowest and highest accepted number of the
    publisher; above: the next accepted number; late: a higher number came before; unserved: published after the
    subscription was active, by a publisher without a cut, before the first that came; reached: before the start, and
    not after the publisher's end as far as that is known; unstarted: a late start.
    """
    return _placed(_judged(_paired(encoded, matches), encoded))


def _paired(encoded: Encoded, matches: DataFrame) -> DataFrame:
    deliveries = encoded.acts.where("NOT publishes AND mine AND p IS NOT NULL")
    due = matches.select(
        "s",
        "p",
        "seq",
        "published_ms",
        F.lit(None).cast("bigint").alias("step"),
        F.lit(None).cast("double").alias("time_ms"),
    )
    came = deliveries.select("s", "p", "seq", F.lit(None).cast("double").alias("published_ms"), "step", "time_ms")
    # All that follows is about one subscription and publisher, so this is the only time that rows travel.
    both = due.union(came).repartition("s", "p")
    return both.groupBy("s", "p", "seq").agg(
        F.max("published_ms").alias("published_ms"),
        F.count("step").alias("came"),
        F.min("step").alias("step"),
        F.min_by("time_ms", "step").alias("time_ms"),
    )


def _judged(pairs: DataFrame, encoded: Encoded) -> DataFrame:
    lives = encoded.subscriptions.select(
        "s", "requested_ms", "active_ms", "ended_ms", "quiesced", "promised_from", "promised_until"
    )
    facts = pairs.join(lives, "s").join(encoded.cuts, ["s", "p"], "left")
    matches = F.col("published_ms").isNotNull()
    in_cut = F.expr("from_seq IS NULL OR (seq >= from_seq AND (to_seq IS NULL OR seq <= to_seq))")
    timely = F.expr("time_ms >= requested_ms AND (ended_ms IS NULL OR time_ms <= ended_ms)")
    sound = (F.col("came") > 0) & matches & in_cut
    return facts.select(
        "s", "p", "seq", "published_ms", "came", "step", "time_ms", "from_seq", "to_seq", "active_ms", "ended_ms",
        "quiesced", "promised_from", "promised_until", matches.alias("matches"), sound.alias("sound"),
        (sound & timely).alias("accepted"),
    )  # fmt: skip


def _placed(judged: DataFrame) -> DataFrame:
    group = Window.partitionBy("s", "p")
    above = group.orderBy(F.col("seq").desc()).rowsBetween(Window.unboundedPreceding, -1)
    accepted_seq = F.when(F.col("accepted"), F.col("seq"))
    accepted_step = F.when(F.col("accepted"), F.col("step"))
    placed = judged.withColumns({
        "above": F.last(accepted_seq, ignorenulls=True).over(above),
        "earliest_above": F.min(accepted_step).over(above),
        "low": F.min(accepted_seq).over(group),
        "high": F.max(accepted_seq).over(group),
    })  # fmt: skip
    start = F.coalesce("from_seq", "low")
    last = F.greatest(F.coalesce("high", F.lit(0)), F.coalesce("to_seq", F.lit(0)))
    state = (
        F.when(F.col("accepted"), ACCEPTED)
        .when(F.col("came") > 0, OTHER)
        .when(start.isNull() | (F.col("seq") < start), BEFORE_START)
        .when(F.col("seq") <= last, WITHIN)
        .otherwise(AFTER_LAST)
    )
    late = F.coalesce(F.col("accepted") & (F.col("earliest_above") < F.col("step")), F.lit(False))
    uncut = F.expr("coalesce(published_ms > active_ms AND from_seq IS NULL, false)")
    unserved = (state == BEFORE_START) & uncut
    reached = (state == BEFORE_START) & _is_reached()
    promised = F.expr("coalesce(published_ms > promised_from AND published_ms < promised_until, false)")
    return placed.select(
        "s", "p", "seq", "published_ms", "came", "step", "time_ms", "from_seq", "to_seq", "matches", "sound",
        state.cast("tinyint").alias("state"), "low", "high", "above", late.alias("late"), unserved.alias("unserved"),
        reached.alias("reached"), (reached & promised).alias("unstarted"),
    )  # fmt: skip


def _is_reached() -> Column:
    """Whether what never came is not after its publisher's end, as far as that is known."""
    return F.expr(
        "CASE WHEN to_seq IS NOT NULL THEN seq <= to_seq"
        " WHEN ended_ms IS NOT NULL THEN high IS NOT NULL"
        " ELSE from_seq IS NOT NULL OR low IS NOT NULL OR quiesced END"
    )

"""Clients whose part of a trace is not complete, in the words of `gapless.checkers.cut_short`.

What follows from it is decided where names become keys (`encoding`: for their subscriptions the run is not quiet) and
where events are matched (`matching`: what may never have left is due to nobody).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers.cut_short import NAMED_MAX
from gapless_spark.audit.sentences import sentence

__all__ = ["with_cut_short"]


def with_cut_short(verdicts: DataFrame, cut_short: DataFrame | None) -> DataFrame:
    """The verdicts with `cut_short`, a sentence for each such client, and with their names in the reason."""
    if cut_short is None:
        return verdicts.withColumn("cut_short", F.array().cast("array<string>"))
    known = F.when(F.col("last_ms").isNull(), "nothing is known of").otherwise(sentence("{acts} acts are known of"))
    lost = F.when(F.col("forgotten") > 0, sentence("; {forgotten} deliveries of its events are left out")).otherwise("")
    said = sentence("{known} {client}, which is cut short: it is held to no more{lost}", known=known, lost=lost)
    missing = sentence("{client} published, and no part says what: {forgotten} deliveries of its events are left out")
    told = cut_short.select(
        "run",
        "client",
        F.when(F.col("last_ms").isNull() & (F.col("forgotten") > 0), missing).otherwise(said).alias("said"),
    )
    by_run = told.groupBy("run").agg(F.array_sort(F.collect_list(F.struct("client", "said"))).alias("of_run"))
    left = F.size("of_run") - NAMED_MAX
    more = F.when(left > 0, sentence(" and {left} more", left=left)).otherwise("")
    words = F.concat(F.lit("; cut short: "), F.array_join(F.slice("of_run.client", 1, NAMED_MAX), ", "), more)
    joined = verdicts.join(by_run, "run", "left")
    return joined.withColumns({
        "reason": F.concat("reason", F.coalesce(words, F.lit(""))),
        "cut_short": F.coalesce("of_run.said", F.array().cast("array<string>")),
    }).drop("of_run")  # fmt: skip

"""Causal completeness: `missing-effect`.

Let e be an event that matches and never came, that stands before the starting cut of its publisher, or whose publisher
has none, and that is no late start. It is missed if something in the accepted history happens before it, and it is not
after the end of its publisher as far as that is known. Something in the history happens before e if and only if the
past of e reaches the lowest number that the history has of some publisher.

Pasts grow along a publisher's events, so if the last such event of a publisher is no effect, none of them is. Only the
last one is joined with its past, and held against the lowest numbers. If it is an effect, the others are looked at,
too.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, place_of
from gapless_spark.audit.keeping import materialise
from gapless_spark.audit.relations import Relations, relation_of

__all__ = ["find_missing_effects", "lowest_numbers"]


def find_missing_effects(encoded: Encoded, pairs: DataFrame, relations: Relations) -> DataFrame | None:
    """s, rel, p, seq, start of every missing effect; None if there is none."""
    judged = encoded.subscriptions.where(F.col("guarantee") == "gcd").select("s")
    missing = pairs.where("reached AND NOT unstarted").join(judged, "s")
    missing = missing.selectExpr("s", "p", "seq", "coalesce(from_seq, low) AS start")
    lowest = lowest_numbers(pairs)
    last = missing.groupBy("s", "p").agg(F.max("seq").alias("seq"), F.max("start").alias("start"))
    concerned = materialise(_effects(last, lowest, relations).select("s", "p"))
    if concerned.isEmpty():
        return None
    return materialise(_effects(missing.join(concerned, ["s", "p"], "left_semi"), lowest, relations))


def lowest_numbers(pairs: DataFrame) -> DataFrame:
    """s, idx, low: the lowest accepted number of each publisher that a history has."""
    found = pairs.where("low IS NOT NULL").groupBy("s", "p").agg(F.min("low").alias("low"))
    return found.select("s", place_of("p").alias("idx"), "low")


def _effects(missing: DataFrame, lowest: DataFrame, relations: Relations) -> DataFrame:
    """Those of the missing whose past reaches the lowest number of some publisher."""
    pasts = missing.withColumn("rel", relation_of("p")).join(relations.vectors, ["rel", "p", "seq"])
    entries = pasts.select("s", "rel", "p", "seq", "start", F.posexplode("past").alias("idx", "reach"))
    reached = entries.where("reach > 0").join(lowest, ["s", "idx"]).where("reach >= low")
    return reached.select("s", "rel", "p", "seq", "start").distinct()

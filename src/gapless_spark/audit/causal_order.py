"""Causal order of delivery: `causal-inversion`.

An event e1 is inverted, for a subscription, if something in its accepted history came before it that e1 happens
before; or if e1 never came, from its starting cut on, and something in the history has it in its past. So along the
history, in the order of steps, the maximum of the pasts of all that came so far is kept, and e1 held against it: a
join of deliveries with the pasts of their events, and one pass over them. What never came stands at the end.

The first effect is looked for only where something was found: from the highest number down, the earliest step of
anything whose past reaches so far.

Under `topic-causal` each topic is a relation of its own, and so is a subscription's history within it.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, place_of
from gapless_spark.audit.keeping import materialise
from gapless_spark.audit.pairs import ACCEPTED, AFTER_LAST
from gapless_spark.audit.relations import Relations, relation_of
from gapless_spark.audit.streams import NO_VECTOR, OVERTAKEN_DDL, overtaken

__all__ = ["find_inversions"]

_NEVER = 2**62
"""The step of what never came: behind all others."""


def find_inversions(encoded: Encoded, pairs: DataFrame, relations: Relations) -> DataFrame | None:
    """s, rel, p, seq, state, effect_p, effect_seq of every inversion; None if there is none."""
    causal = encoded.subscriptions.where(F.col("guarantee").isin("gcd", "topic-causal"))
    if causal.isEmpty():
        return None
    ranked = _ranked(pairs, causal, relations)
    stream = _with_pasts(ranked, relations).select(
        "s", "rel", "step", "p", "seq", "state", F.col("late").cast("int"), place_of("p").alias("idx"),
        F.when(F.col("state") == ACCEPTED, F.col("past")).otherwise(F.expr(NO_VECTOR)).alias("past"),
    )  # fmt: skip
    stream = stream.repartition("s", "rel").sortWithinPartitions("s", "rel", "step")
    inverted = materialise(stream.mapInArrow(overtaken, OVERTAKEN_DDL))
    if inverted.isEmpty():
        return None
    return materialise(_with_effects(inverted, ranked, relations))


def _ranked(pairs: DataFrame, causal: DataFrame, relations: Relations) -> DataFrame:
    """s, rel, step, p, seq, state, late of all that takes part."""
    taking = pairs.where(F.col("state").isin(ACCEPTED, AFTER_LAST))
    taking = taking.join(causal.select("s", "guarantee"), "s")
    taking = taking.withColumn("step", F.coalesce("step", F.lit(_NEVER)))
    rel = relation_of("p")
    if relations.topics is not None:
        taking = taking.join(relations.topics, ["p", "seq"], "left")
        rel = F.when(F.col("guarantee") == "gcd", rel).otherwise(F.col("rel"))
    return taking.select("s", rel.alias("rel"), "step", "p", "seq", "state", "late").where("rel IS NOT NULL")


def _with_pasts(ranked: DataFrame, relations: Relations) -> DataFrame:
    return ranked.join(relations.vectors, ["rel", "p", "seq"])


def _with_effects(inverted: DataFrame, ranked: DataFrame, relations: Relations) -> DataFrame:
    """Add the first event of the history that has the inverted one in its past."""
    causes = inverted.withColumn("idx", place_of("p"))
    concerned = causes.select("s", "rel", "idx").distinct()
    history = ranked.where(F.col("state") == ACCEPTED).join(
        concerned.select("s", "rel").distinct(), ["s", "rel"], "left_semi"
    )
    reaching = _with_pasts(history, relations).join(concerned, ["s", "rel"]).select(
        "s", "rel", "idx", F.get("past", "idx").cast("bigint").alias("number"),
        F.struct("step", F.col("p").alias("effect_p"), F.col("seq").alias("effect_seq")).alias("effect"),
        F.lit(None).cast("bigint").alias("p"), F.lit(None).cast("tinyint").alias("state"),
    )  # fmt: skip
    nothing = F.lit(None).cast(reaching.schema["effect"].dataType)
    asked = causes.select(
        "s", "rel", "idx", F.col("seq").alias("number"), nothing.alias("effect"),
        "p", "state",
    )  # fmt: skip
    down = Window.partitionBy("s", "rel", "idx").orderBy(F.col("number").desc(), F.col("p").asc_nulls_first())
    first = F.min("effect").over(down.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    answered = reaching.where("number > 0").union(asked).withColumn("effect", first).where("p IS NOT NULL")
    return answered.select(
        "s", "rel", "p", F.col("number").alias("seq"), "state", "effect.effect_p", "effect.effect_seq"
    )

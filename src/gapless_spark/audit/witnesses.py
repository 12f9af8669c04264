"""Witnesses of what is wrong with causality: chains from a cause to its effect, one search for all of them."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.chains import find_chains
from gapless_spark.audit.encoding import Encoded, run_of
from gapless_spark.audit.keeping import materialise
from gapless_spark.audit.pairs import ACCEPTED
from gapless_spark.audit.relations import Relations

__all__ = ["CHAINS_MAX", "find_witnesses"]

CHAINS_MAX = 100
"""Chains that are searched for, in each run and of each kind. Beyond that, a witness is cause and effect alone."""


def find_witnesses(
    encoded: Encoded, relations: Relations, pairs: DataFrame, inverted: DataFrame | None, effects: DataFrame | None
) -> DataFrame:
    """s, p, seq, chain: of events that were inverted, from them to their first effect; of missing effects, to them."""
    asked, causes = [], []
    if inverted is not None:
        # The event is the cause; its first effect is known.
        chosen = materialise(_first_of_each_run(inverted, 1))
        asked.append(chosen.select("id", "s", "p", "seq", "rel", "effect_p", "effect_seq"))
        causes.append(chosen.select("id", "rel", "p", "seq", F.lit(0).cast("bigint").alias("place")))
    if effects is not None:
        # The event is the effect; everything in the history may be the cause, the earliest first.
        chosen = materialise(_first_of_each_run(effects, 0))
        asked.append(
            chosen.select("id", "s", "p", "seq", "rel", F.col("p").alias("effect_p"), F.col("seq").alias("effect_seq"))
        )
        accepted = pairs.where(F.col("state") == ACCEPTED).select("s", "p", "seq", F.col("step").alias("place"))
        causes.append(chosen.select("id", "s", "rel").join(accepted, "s").select("id", "rel", "p", "seq", "place"))
    requests = asked[0] if len(asked) == 1 else asked[0].union(asked[1])
    chains = find_chains(
        encoded,
        relations,
        requests.select("id", "rel", F.col("effect_p").alias("p"), F.col("effect_seq").alias("seq")),
        causes[0] if len(causes) == 1 else causes[0].union(causes[1]),
    )
    return materialise(requests.join(chains, "id").select("s", "p", "seq", "chain"))


def _first_of_each_run(found: DataFrame, parity: int) -> DataFrame:
    """As many of each run as get a chain, with an id that is even or odd."""
    of_run = Window.partitionBy(run_of("s")).orderBy("s", "p", "seq")
    chosen = found.withColumn("place", F.row_number().over(of_run)).where(F.col("place") <= CHAINS_MAX)
    number = F.row_number().over(Window.partitionBy(F.lit(0)).orderBy("s", "p", "seq")).cast("bigint")
    return chosen.withColumn("id", number * 2 + parity).drop("place")

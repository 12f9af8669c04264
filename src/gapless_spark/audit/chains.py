"""The shortest chain of events from a cause to an effect: the proof that one happens before the other.

The search is that of `gapless.checkers.causal_chain`, for all anomalies at once, one join a level: backwards from the
effect, following of every publisher only the latest event that the reader had been delivered, and only if a cause can
lie behind it. Among chains of the same length it takes the same one, so both judges show the same witness: a level is
ranked by its predecessor's rank, then by which publisher the reader first heard of.

That is for runs that fit into no worker; in those that do, the checkers find chains of any length. Here the search ends
after `LENGTH_MAX` links, and a longer witness is cause and effect alone.
"""

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, place_of, publisher_at
from gapless_spark.audit.keeping import settle, shared
from gapless_spark.audit.relations import Relations, direct_pasts
from gapless_spark.audit.sentences import event_name

__all__ = ["find_chains"]

LENGTH_MAX = 8
"""Links of a chain before the search gives up: each level costs a dozen steps of Spark, whatever there is to find."""


def find_chains(encoded: Encoded, relations: Relations, effects: DataFrame, causes: DataFrame) -> DataFrame:
    """id, chain (ids of events, from the cause to the effect).

    `effects` has id, rel, p, seq; `causes` has id, p, seq and place, the order in which they are preferred.
    """
    search = _Search(encoded, relations, effects, causes)
    chains: list[DataFrame] = []
    while not search.is_over and len(chains) < LENGTH_MAX:
        chains.append(search.step())
    return reduce(DataFrame.union, chains)


class _Search:
    """One level after the other."""

    def __init__(self, encoded: Encoded, relations: Relations, effects: DataFrame, causes: DataFrame) -> None:
        self._names = encoded.names.select(F.col("actor").alias("p"), "name")
        concerned = shared(effects.select("rel").distinct())
        nodes = relations.nodes.join(concerned, "rel", "left_semi")
        reads = settle(relations.reads.join(concerned, "rel", "left_semi").where("c <> p"))
        self._direct = settle(direct_pasts(nodes, reads).select("rel", "p", "seq", F.col("past").alias("direct")))
        self._vectors = settle(relations.vectors.join(concerned, "rel", "left_semi"))
        self._delivered = settle(reads.groupBy("rel", "c", "p", "seq").agg(F.min("step").alias("delivered")))
        self._heard = settle(reads.groupBy("rel", "c", "idx").agg(F.min("step").alias("heard")))
        self._published = encoded.acts.where("publishes").select("p", "seq", F.col("step").alias("published"))
        self._causes = settle(causes)
        lowest = self._causes.groupBy("id", place_of("p").alias("idx")).agg(F.min("seq").alias("low"))
        lowest = lowest.groupBy("id").agg(F.collect_list(F.struct("idx", "low")).alias("lowest"))
        self._lowest = shared(lowest)
        level = effects.join(self._names, "p").select(
            "id",
            "rel",
            F.lit(0).cast("bigint").alias("rank"),
            "p",
            "seq",
            F.array(event_name("name", "seq")).alias("chain"),
        )
        self._level = settle(level)
        self._followed = self._level.selectExpr("id", "0 AS idx", "0L AS number").limit(0)
        self.is_over = False

    def step(self) -> DataFrame:
        """Chains that are complete with this level; the others get one link longer."""
        found = settle(self._complete())
        left = self._level.join(found.select("id"), "id", "left_anti")
        self._level = self._longer(left)
        self.is_over = self._level.isEmpty()
        return found

    def _complete(self) -> DataFrame:
        """Of each effect, the first chain of the level whose head has a cause right before it."""
        heads = self._level.join(self._published, ["p", "seq"])
        causes = self._causes.select("id", F.col("p").alias("cause_p"), F.col("seq").alias("cause_seq"), "place")
        delivered = self._delivered.select(
            "rel", F.col("c").alias("p"), F.col("p").alias("cause_p"), F.col("seq").alias("cause_seq"), "delivered"
        )
        tried = heads.join(causes, "id").join(delivered, ["rel", "p", "cause_p", "cause_seq"], "left")
        own = (F.col("cause_p") == F.col("p")) & (F.col("cause_seq") < F.col("seq"))
        read = (F.col("cause_p") != F.col("p")) & (F.col("delivered") < F.col("published"))
        direct = tried.where(own | F.coalesce(read, F.lit(False)))
        best = F.min_by(F.struct("cause_p", "cause_seq", "chain"), F.struct("rank", "place"))
        chosen = (
            direct.groupBy("id")
            .agg(best.alias("best"))
            .select(
                "id",
                F.col("best.cause_p").alias("p"),
                F.col("best.cause_seq").alias("seq"),
                F.col("best.chain").alias("chain"),
            )
        )
        named = chosen.join(self._names, "p")
        return named.select("id", F.concat(F.array(event_name("name", "seq")), "chain").alias("chain"))

    def _longer(self, level: DataFrame) -> DataFrame:
        entries = level.join(self._direct, ["rel", "p", "seq"]).select(
            "id", "rel", "rank", F.col("p").alias("c"), "chain", F.posexplode("direct").alias("idx", "number")
        )
        leads = entries.where("number > 0").withColumn("number", F.col("number").cast("bigint"))
        leads = leads.withColumn("q", publisher_at("rel", "idx"))
        theirs = self._vectors.select("rel", F.col("p").alias("q"), F.col("seq").alias("number"), "past")
        leads = leads.join(theirs, ["rel", "q", "number"]).join(self._lowest, "id")
        has_cause = F.exists(
            "lowest",
            lambda entry: F.when(entry["idx"] == F.col("idx"), entry["low"] < F.col("number")).otherwise(
                F.coalesce(F.get("past", entry["idx"]), F.lit(0)) >= entry["low"]
            ),
        )
        leads = leads.where(has_cause).join(self._heard, ["rel", "c", "idx"])
        leads = leads.join(self._followed.withColumnRenamed("number", "followed"), ["id", "idx"], "left")
        in_order = Window.partitionBy("id", "idx").orderBy("rank", "heard")
        seen = F.greatest(
            F.coalesce("followed", F.lit(0)),
            F.coalesce(F.max("number").over(in_order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0)),
        )
        fresh = leads.withColumn("seen", seen).where("number > seen")
        rank = F.row_number().over(Window.partitionBy("id").orderBy("rank", "heard"))
        ranked = settle(fresh.join(self._names.withColumnRenamed("p", "q"), "q").select(
            "id", "rel", rank.cast("bigint").alias("rank"),
            F.col("q").alias("p"), F.col("number").alias("seq"), "idx",
            F.concat(F.array(event_name("name", "number")), "chain").alias("chain"),
        ))  # fmt: skip
        followed = self._followed.union(ranked.select("id", "idx", F.col("seq").alias("number")))
        self._followed = settle(followed.groupBy("id", "idx").agg(F.max("number").alias("number")))
        return ranked.drop("idx")

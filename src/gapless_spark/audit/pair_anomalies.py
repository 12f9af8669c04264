"""What is wrong with a subscription and an event, in the words and with the witness of `gapless.checkers`.

Each rule gives its findings as facts, with keys and numbers alone. They are put together before they get their names
and words: so names are looked up once, however many rules have found something.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.anomalies import Namer, anomaly_rows
from gapless_spark.audit.encoding import Encoded
from gapless_spark.audit.pairs import ACCEPTED, WITHIN
from gapless_spark.audit.sentences import event_name, sentence

__all__ = [
    "duplicates",
    "fifo_inversions",
    "gaps",
    "inversions",
    "late_starts",
    "missing_effects",
    "tell",
    "unobserved",
]

_FACTS = {
    "step": "bigint", "earlier": "bigint", "number": "bigint", "from_seq": "bigint", "to_seq": "bigint",
    "start": "bigint", "came": "boolean", "effect_p": "bigint", "effect_seq": "bigint",
}  # fmt: skip
"""What rules know of a pair, beside s, p and seq; null where a rule does not need it."""


def _facts(found: DataFrame, kind: str, **columns: str) -> DataFrame:
    """The facts, from a frame that has s, p and seq; the others are given as expressions."""
    return found.selectExpr(
        f"'{kind}' AS kind", "s", "p", "seq",
        *(f"CAST({columns.get(name, 'NULL')} AS {type_}) AS {name}" for name, type_ in _FACTS.items()),
    )  # fmt: skip


# ---- the rules -------------------------------------------------------------------------------------------------


def duplicates(encoded: Encoded, pairs: DataFrame) -> DataFrame:
    """Deliveries that came again."""
    repeated = pairs.where("sound AND came > 1").select("s", "p", "seq", F.col("step").alias("first"))
    again = encoded.acts.where("NOT publishes AND mine").join(repeated, ["s", "p", "seq"]).where("step > first")
    return _facts(again, "duplicate", step="step", earlier="first")


def fifo_inversions(pairs: DataFrame) -> DataFrame:
    """Accepted events that came after a later one of their publisher."""
    late = pairs.where("late").select("s", "p", "seq", "step")
    accepted = pairs.where(F.col("state") == ACCEPTED)
    accepted = accepted.select("s", "p", F.col("seq").alias("higher"), F.col("step").alias("earlier"))
    before = accepted.join(late, ["s", "p"]).where("earlier < step AND higher > seq")
    found = before.groupBy("s", "p", "seq").agg(F.max("higher").alias("higher"))
    return _facts(found, "fifo-inversion", number="higher")


def gaps(pairs: DataFrame) -> DataFrame:
    """Events that are missing within the cuts."""
    missing = pairs.where(F.col("state") == WITHIN)
    return _facts(missing, "gap", number="above", from_seq="from_seq", start="coalesce(from_seq, low)", to_seq="to_seq")


def unobserved(missing: DataFrame) -> DataFrame:
    """Events that should have come by the quiet end: s, p, seq, from_seq, low."""
    return _facts(missing, "unobserved", from_seq="from_seq", start="coalesce(from_seq, low)")


def late_starts(pairs: DataFrame) -> DataFrame:
    """Events that were published when the subscription was active, and are left out by its start."""
    return _facts(
        pairs.where("unstarted"), "late-start", from_seq="from_seq", start="coalesce(from_seq, low)"
    )  # fmt: skip


def inversions(found: DataFrame) -> DataFrame:
    """Effects before their causes or without them: s, p, seq, state, effect_p, effect_seq."""
    came = f"state = {ACCEPTED}"
    return _facts(found, "causal-inversion", came=came, effect_p="effect_p", effect_seq="effect_seq")


def missing_effects(found: DataFrame) -> DataFrame:
    """Effects that are missing before the start: s, p, seq, start."""
    return _facts(found, "missing-effect", start="start")


# ---- their words -----------------------------------------------------------------------------------------------


def tell(facts: list[DataFrame], chains: DataFrame | None, namer: Namer) -> DataFrame:
    """The table of anomalies, from what the rules found; `chains` has s, p, seq and chain of some of the pairs."""
    found = reduce(DataFrame.union, facts)
    if chains is None:
        found = found.withColumn("chain", F.lit(None).cast("array<string>"))
    else:
        found = found.join(chains, ["s", "p", "seq"], "left")
    named = namer.name(namer.subscription(found), "p", "publisher")
    named = named.where("guarantee <> 'best-effort' OR kind NOT IN ('fifo-inversion', 'gap')")
    named = namer.name(named, "effect_p", "effect_publisher", "left")
    named = named.withColumns({
        "event": event_name("publisher", "seq"),
        "other": event_name("publisher", "number"),
        "first": event_name("publisher", "start"),
        "effect": event_name("effect_publisher", "effect_seq"),
    })  # fmt: skip
    kind, assumed = F.col("kind"), F.when(F.col("from_seq").isNull(), F.col("first"))
    witness = (
        F.when(kind == "duplicate", F.array("event", sentence("{client}#{earlier}"), sentence("{client}#{step}")))
        .when(kind == "fifo-inversion", F.array("other", "event"))
        .when(kind == "gap", F.array_compact(F.array(assumed, F.col("event"), F.col("other"))))
        .when(kind.isin("unobserved", "late-start"), F.array_compact(F.array(assumed, F.col("event"))))
        .when(kind == "causal-inversion", F.coalesce("chain", F.array("event", "effect")))
        .otherwise(F.coalesce("chain", F.array("event")))
    )
    message = F.concat(
        sentence("{client} was "), F.coalesce(*(F.when(kind == name, words) for name, words in _words().items()))
    )
    return anomaly_rows(named, kind, witness, message)


def _words() -> dict[str, Column]:
    gap_why = F.coalesce(sentence("it was delivered {other}"), sentence("its ending cut is {publisher}:{to_seq}"))
    where = F.coalesce(sentence("it starts at {publisher}:{start} only"), sentence("nothing of {publisher} ever came"))
    return {
        "duplicate": sentence("delivered {event} twice for {subscription_id}, in steps {earlier} and {step}"),
        "fifo-inversion": sentence(
            "delivered {other} before {event} for {subscription_id}, though {publisher} published them the other way "
            "round"
        ),
        "gap": sentence(
            "never delivered {event} for {subscription_id}, though it starts at {first} and {why}", why=gap_why
        ),
        "unobserved": sentence(
            "never delivered {event} for {subscription_id}, though it starts at {first} and the run ended quietly"
        ),
        "late-start": sentence(
            "never delivered {event} for {subscription_id}, though it was published when the subscription was active: "
            "{where}",
            where=where,
        ),
        "causal-inversion": sentence(
            "delivered {effect} {how} its cause {event} for {subscription_id}",
            how=F.when(F.col("came"), "before").otherwise("without"),
        ),
        "missing-effect": sentence(
            "delivered {cause} for {subscription_id}, but not its effect {event}: {where}",
            cause=F.coalesce(F.get("chain", F.lit(0)), F.lit("a cause")),
            where=where,
        ),
    }

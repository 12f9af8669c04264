"""What was found, as a table: one row for each anomaly, in the words and with the witness of `gapless.checkers`.

Here is what is wrong with a delivery, a subscription or the certificate; `pair_anomalies` has the rest.

run, kind, client, subscription, event, publisher, witness, message: as in `gapless.checkers.Anomaly`.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, place_of, publisher_at
from gapless_spark.audit.pairs import OTHER
from gapless_spark.audit.sentences import event_name, sentence

__all__ = ["Namer", "anomaly_rows", "claims_about_nothing", "false_claims", "false_losses", "never_active", "spurious"]


class Namer:
    """Gives keys their names back."""

    def __init__(self, encoded: Encoded) -> None:
        self._names = encoded.names
        self._subscriptions = encoded.subscriptions.select("s", "run", "subscription_id", "client", "guarantee")

    def subscription(self, frame: DataFrame) -> DataFrame:
        """Add run, subscription_id, client and guarantee of `s`."""
        return frame.join(self._subscriptions, "s")

    def name(self, frame: DataFrame, key: str, name: str, how: str = "inner") -> DataFrame:
        """Add the name behind a key."""
        return frame.join(self._names.select(F.col("actor").alias(key), F.col("name").alias(name)), key, how)

    def run_and_name(self, frame: DataFrame, key: str, name: str) -> DataFrame:
        """Add the run and the name behind a key."""
        return frame.join(self._names.select(F.col("actor").alias(key), F.col("name").alias(name), "run"), key)


def anomaly_rows(frame: DataFrame, kind: Column, witness: Column, message: Column) -> DataFrame:
    """The table, from a frame that has run, client, subscription_id, event and publisher."""
    return frame.select(
        "run",
        kind.alias("kind"),
        "client",
        F.col("subscription_id").alias("subscription"),
        "event",
        F.col("publisher").cast("string").alias("publisher"),
        witness.cast("array<string>").alias("witness"),
        message.alias("message"),
    )


# ---- deliveries -----------------------------------------------------------------------------------------------


def spurious(encoded: Encoded, pairs: DataFrame, namer: Namer, *, unsound: bool, untimely: bool) -> DataFrame:
    """Deliveries that nobody asked for. `unsound`, `untimely`: whether there are any of that kind."""
    deliveries = encoded.acts.where("NOT publishes")
    found = []
    if unsound:
        found.append(_wrong_by_what_they_are(deliveries, pairs, encoded))
    if untimely:
        found.append(_wrong_by_time(pairs, encoded))
    if encoded.strays:
        found += [_unpublished(deliveries, encoded), _strays(deliveries, encoded)]
    together = reduce(DataFrame.unionByName, found)
    named = namer.name(namer.run_and_name(together, "c", "client"), "p", "name", "left")
    named = named.withColumns({
        "event": F.coalesce("odd_id", event_name("name", "seq")),
        "publisher": F.when(F.col("exists"), F.col("name")),
    })  # fmt: skip
    witness = F.array("event", sentence("{client}#{step}"))
    return anomaly_rows(
        named, F.lit("spurious"), witness, sentence("{client} was delivered {event} for {subscription_id}, but {flaw}")
    )


_WRONG = ["c", "step", "p", "seq", "odd_id", "subscription_id", "exists", "flaw"]
"""A delivery, whether its event was published, and what is wrong with it."""


def _wrong_by_what_they_are(deliveries: DataFrame, pairs: DataFrame, encoded: Encoded) -> DataFrame:
    wrong = pairs.where("came > 0 AND NOT sound").select("s", "p", "seq", "matches", "from_seq", "to_seq")
    listed = encoded.events.select("p", "seq", F.lit(True).alias("listed"))
    names = encoded.names.select(F.col("actor").alias("p"), "name")
    asked = encoded.subscriptions.select("s", "subscription_id", "filter")
    facts = wrong.join(listed, ["p", "seq"], "left").join(names, "p").join(asked, "s")
    flaw = (
        F.when(F.col("listed").isNull(), F.lit("it was never published"))
        .when(~F.col("matches"), sentence("it does not match {shown}", shown=F.udf(repr, "string")("filter")))
        .when(F.expr("seq < from_seq"), sentence("it stands before the starting cut, {name}:{from_seq}"))
        .otherwise(sentence("it stands after the ending cut, {name}:{to_seq}"))
    )
    exists = F.col("listed").isNotNull()
    explained = facts.select("s", "p", "seq", "subscription_id", exists.alias("exists"), flaw.alias("flaw"))
    return deliveries.where("mine").join(explained, ["s", "p", "seq"]).select(*_WRONG)


def _wrong_by_time(pairs: DataFrame, encoded: Encoded) -> DataFrame:
    untimely = pairs.where((F.col("state") == OTHER) & F.col("sound")).select("s", "p", "seq", "step", "time_ms")
    facts = untimely.join(encoded.subscriptions.select("s", "c", "subscription_id", "requested_ms"), "s")
    early = F.col("time_ms") < F.col("requested_ms")
    flaw = F.when(early, "the subscription was not requested yet").otherwise("the subscription had ended")
    nothing = F.lit(None).cast("string")
    return facts.withColumns({"odd_id": nothing, "exists": F.lit(True), "flaw": flaw}).select(*_WRONG)


def _unpublished(deliveries: DataFrame, encoded: Encoded) -> DataFrame:
    asked = encoded.subscriptions.select("s", "subscription_id")
    unpublished = deliveries.where("mine AND p IS NULL").join(asked, "s")
    return unpublished.withColumns({"exists": F.lit(False), "flaw": F.lit("it was never published")}).select(*_WRONG)


def _strays(deliveries: DataFrame, encoded: Encoded) -> DataFrame:
    listed = encoded.events.select("p", "seq", F.lit(True).alias("listed"))
    owners = encoded.subscriptions.select(
        "s", F.col("client").alias("owner"), F.col("subscription_id").alias("known_s")
    )
    strays = deliveries.where("NOT mine").join(owners, "s", "left").join(listed, ["p", "seq"], "left")
    flaw = F.coalesce(sentence("the subscription belongs to {owner}"), F.lit("the subscription was never requested"))
    columns = {"subscription_id": F.coalesce("odd_s", "known_s"), "exists": F.col("listed").isNotNull(), "flaw": flaw}
    return strays.withColumns(columns).select(*_WRONG)


# ---- what was told to be lost ---------------------------------------------------------------------------------


def false_losses(encoded: Encoded, namer: Namer) -> list[DataFrame]:
    """What subscriptions were told to be lost, and was delivered to them, or never published."""
    if encoded.skipped is None:
        return []
    told = encoded.skipped.select("s", "p", "from_seq", "to_seq")
    came = encoded.acts.where("NOT publishes AND mine AND p IS NOT NULL").select("s", "p", "seq").distinct()
    listed = encoded.events.select("p", "seq")
    delivered = came.join(listed, ["p", "seq"], "left_semi").join(told, ["s", "p"])
    delivered = delivered.where("seq BETWEEN from_seq AND to_seq").select("s", "p", "seq").distinct()
    ends = encoded.events.groupBy("p").agg(F.max("seq").alias("last"))
    beyond = told.join(ends, "p").where("to_seq > last")
    if encoded.cut_short is not None:
        beyond = beyond.join(encoded.cut_short.select("p").distinct(), "p", "left_anti")
    beyond = beyond.select("s", "p", F.greatest(F.col("from_seq"), F.col("last") + 1).alias("seq"))
    found = []
    for frame, flaw in ((delivered, "was delivered"), (beyond, "was never published")):
        named = namer.name(namer.subscription(frame), "p", "publisher")
        named = named.withColumn("event", event_name("publisher", "seq"))
        said = sentence("{client} was told that {event} is lost for {subscription_id}, but it {flaw}", flaw=F.lit(flaw))
        found.append(anomaly_rows(named, F.lit("false-loss"), F.array("event"), said))
    return found


# ---- what is missing ------------------------------------------------------------------------------------------


def never_active(encoded: Encoded) -> DataFrame:
    """Subscriptions that never became active, though the run ended quietly."""
    idle = encoded.subscriptions.where(
        "quiesced AND ended_ms IS NULL AND active_ms IS NULL AND guarantee <> 'best-effort'"
    )
    nothing = F.lit(None).cast("string")
    said = sentence(
        "{client} subscribed with {subscription_id}, but it never became active, though the run ended quietly"
    )
    return anomaly_rows(
        idle.withColumns({"event": nothing, "publisher": nothing}), F.lit("unobserved"), F.array(), said
    )


# ---- the certificate ------------------------------------------------------------------------------------------


def claims_about_nothing(orphans: DataFrame, namer: Namer) -> DataFrame:
    """Entries of the certificate about events that do not exist: run, p, seq, odd_id, q, reach."""
    named = namer.name(namer.name(orphans, "p", "name", "left"), "q", "publisher")
    named = named.withColumn("event", F.coalesce("odd_id", event_name("name", "seq")))
    head = F.expr("substring(event, 1, length(event) - length(substring_index(event, ':', -1)) - 1)")
    named = named.withColumns({"client": head, "subscription_id": F.lit(None).cast("string")})
    said = sentence("the past of {event} is said to reach up to {publisher}:{reach}, but it was never published")
    return anomaly_rows(named, F.lit("false-past"), F.array("event"), said)


def false_claims(encoded: Encoded, truth: DataFrame, namer: Namer) -> list[DataFrame]:
    """Entries of the certificate that are wrong, and such that are missing."""
    claims = encoded.claims.where("p IS NOT NULL").select("p", "seq", "q", "reach")
    return [_wrong_claims(claims, truth, namer), _omitted_claims(claims, truth, namer)]


def _wrong_claims(claims: DataFrame, truth: DataFrame, namer: Namer) -> DataFrame:
    held = claims.join(truth.select("p", "seq", "past"), ["p", "seq"])
    real = F.coalesce(F.get("past", place_of("q")), F.lit(0))
    own = F.col("p") == F.col("q")
    wrong = held.withColumn("truth", real).where(own | (F.col("reach") != F.col("truth"))).drop("past")
    up_to = F.when(F.col("truth") > 0, sentence("up to {publisher}:{truth}")).otherwise("nothing of it")
    flaw = F.when(own, sentence("has an entry for its own publisher, {publisher}")).otherwise(
        sentence("is said to reach up to {publisher}:{reach}, but reaches {up_to}", up_to=up_to)
    )
    return _false_pasts(wrong, flaw, namer)


def _omitted_claims(claims: DataFrame, truth: DataFrame, namer: Namer) -> DataFrame:
    advanced = truth.select("p", "seq", "past", F.explode("fresh").alias("idx"))
    advanced = advanced.select("p", "seq", publisher_at("p", "idx").alias("q"), F.get("past", "idx").alias("truth"))
    omitted = advanced.join(claims, ["p", "seq", "q"], "left_anti")
    return _false_pasts(omitted, sentence("has no entry for {publisher}, but reaches up to {publisher}:{truth}"), namer)


def _false_pasts(frame: DataFrame, flaw: Column, namer: Namer) -> DataFrame:
    named = namer.name(namer.run_and_name(frame, "p", "client"), "q", "publisher")
    named = named.withColumns({"event": event_name("client", "seq"), "subscription_id": F.lit(None).cast("string")})
    return anomaly_rows(named, F.lit("false-past"), F.array("event"), sentence("the past of {event} {flaw}", flaw=flaw))

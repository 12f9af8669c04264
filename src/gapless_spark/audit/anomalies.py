"""What was found, as a table: one row for each anomaly, in the words and with the witness of `gapless.checkers`.

run, kind, client, subscription, event, publisher, witness, message: as in `gapless.checkers.Anomaly`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, run_of
from gapless_spark.audit.pairs import ACCEPTED, BEFORE_START, OTHER, WITHIN
from gapless_spark.audit.sentences import event_name, sentence

__all__ = [
    "Namer", "claims_about_nothing", "duplicates", "false_claims", "fifo_inversions", "gaps", "inversions",
    "missing_effects", "never_active", "spurious", "unobserved",
]  # fmt: skip


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


def _rows(frame: DataFrame, kind: str, witness: Column, message: Column) -> DataFrame:
    """The table, from a frame that has run, client, subscription_id, event and publisher."""
    return frame.select(
        "run",
        F.lit(kind).alias("kind"),
        "client",
        F.col("subscription_id").alias("subscription"),
        "event",
        F.col("publisher").cast("string").alias("publisher"),
        witness.cast("array<string>").alias("witness"),
        message.alias("message"),
    )


# ---- deliveries -----------------------------------------------------------------------------------------------


def spurious(encoded: Encoded, pairs: DataFrame, namer: Namer) -> DataFrame:
    """Deliveries that nobody asked for."""
    deliveries = encoded.acts.where("NOT publishes")
    found = _wrong_by_what_they_are(deliveries, pairs, encoded)
    for others in (_wrong_by_time(pairs, encoded), _ghosts(deliveries, encoded), _strays(deliveries, encoded)):
        found = found.unionByName(others)
    named = namer.name(namer.run_and_name(found, "c", "client"), "p", "name", "left")
    named = named.withColumns({
        "event": F.coalesce("odd_id", event_name("name", "seq")),
        "publisher": F.when(F.col("exists"), F.col("name")),
    })  # fmt: skip
    witness = F.array("event", sentence("{client}#{step}"))
    return _rows(
        named, "spurious", witness, sentence("{client} was delivered {event} for {subscription_id}, but {flaw}")
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


def _ghosts(deliveries: DataFrame, encoded: Encoded) -> DataFrame:
    asked = encoded.subscriptions.select("s", "subscription_id")
    ghosts = deliveries.where("mine AND p IS NULL").join(asked, "s")
    return ghosts.withColumns({"exists": F.lit(False), "flaw": F.lit("it was never published")}).select(*_WRONG)


def _strays(deliveries: DataFrame, encoded: Encoded) -> DataFrame:
    listed = encoded.events.select("p", "seq", F.lit(True).alias("listed"))
    owners = encoded.subscriptions.select(
        "s", F.col("client").alias("owner"), F.col("subscription_id").alias("known_s")
    )
    strays = deliveries.where("NOT mine").join(owners, "s", "left").join(listed, ["p", "seq"], "left")
    flaw = F.coalesce(sentence("the subscription belongs to {owner}"), F.lit("the subscription was never requested"))
    columns = {"subscription_id": F.coalesce("odd_s", "known_s"), "exists": F.col("listed").isNotNull(), "flaw": flaw}
    return strays.withColumns(columns).select(*_WRONG)


def duplicates(encoded: Encoded, pairs: DataFrame, namer: Namer) -> DataFrame:
    """Deliveries that came again."""
    repeated = pairs.where("sound AND came > 1").select("s", "p", "seq", F.col("step").alias("first"))
    again = encoded.acts.where("NOT publishes AND mine").join(repeated, ["s", "p", "seq"]).where("step > first")
    named = _with_event(again, namer)
    witness = F.array("event", sentence("{client}#{first}"), sentence("{client}#{step}"))
    said = sentence("{client} was delivered {event} twice for {subscription_id}, in steps {first} and {step}")
    return _rows(named, "duplicate", witness, said)


def _with_event(frame: DataFrame, namer: Namer) -> DataFrame:
    """Add what `_rows` needs, of s, p and seq."""
    named = namer.name(namer.subscription(frame), "p", "publisher")
    return named.withColumn("event", event_name("publisher", "seq"))


def fifo_inversions(pairs: DataFrame, namer: Namer) -> DataFrame:
    """Accepted events that came after a later one of their publisher."""
    late = pairs.where("late").select("s", "p", "seq", "step")
    accepted = pairs.where(F.col("state") == ACCEPTED)
    accepted = accepted.select("s", "p", F.col("seq").alias("higher"), F.col("step").alias("earlier"))
    before = accepted.join(late, ["s", "p"]).where("earlier < step AND higher > seq")
    found = before.groupBy("s", "p", "seq").agg(F.max("higher").alias("higher"))
    named = _with_event(found, namer).where("guarantee <> 'best-effort'")
    named = named.withColumn("other", event_name("publisher", "higher"))
    said = sentence(
        "{client} was delivered {other} before {event} for {subscription_id}, though {publisher} published them the "
        "other way round"
    )
    return _rows(named, "fifo-inversion", F.array("other", "event"), said)


# ---- what is missing ------------------------------------------------------------------------------------------


def gaps(pairs: DataFrame, namer: Namer) -> DataFrame:
    """Events that are missing within the cuts."""
    named = _with_event(pairs.where(F.col("state") == WITHIN), namer).where("guarantee <> 'best-effort'")
    following = event_name("publisher", "above")
    first = F.when(F.col("from_seq").isNull(), event_name("publisher", "low"))
    why = F.coalesce(
        sentence("it was delivered {following}", following=following),
        sentence("its ending cut is {publisher}:{to_seq}"),
    )
    said = sentence(
        "{client} was never delivered {event} for {subscription_id}, though it starts at {publisher}:{start} and {why}",
        start=F.coalesce("from_seq", "low"),
        why=why,
    )
    return _rows(named, "gap", F.array_compact(F.array(first, F.col("event"), following)), said)


def unobserved(missing: DataFrame, namer: Namer) -> DataFrame:
    """Events that should have come by the quiet end: s, p, seq, from_seq, low."""
    named = _with_event(missing, namer)
    start = event_name("publisher", F.coalesce("from_seq", "low"))
    witness = F.array_compact(F.array(F.when(F.col("from_seq").isNull(), start), F.col("event")))
    said = sentence(
        "{client} was never delivered {event} for {subscription_id}, though it starts at {start} and the run ended "
        "quietly",
        start=start,
    )
    return _rows(named, "unobserved", witness, said)


def never_active(encoded: Encoded) -> DataFrame:
    """Subscriptions that never became active, though the run ended quietly."""
    idle = encoded.subscriptions.where(
        "quiesced AND ended_ms IS NULL AND active_ms IS NULL AND guarantee <> 'best-effort'"
    )
    nothing = F.lit(None).cast("string")
    said = sentence(
        "{client} subscribed with {subscription_id}, but it never became active, though the run ended quietly"
    )
    return _rows(idle.withColumns({"event": nothing, "publisher": nothing}), "unobserved", F.array(), said)


# ---- causality ------------------------------------------------------------------------------------------------


def inversions(found: DataFrame, namer: Namer) -> DataFrame:
    """Effects before their causes or without them: s, p, seq, state, effect_p, effect_seq, chain."""
    named = namer.name(_with_event(found, namer), "effect_p", "effect_publisher")
    named = named.withColumn("effect", event_name("effect_publisher", "effect_seq"))
    said = sentence(
        "{client} was delivered {effect} {how} its cause {event} for {subscription_id}",
        how=F.when(F.col("state") == ACCEPTED, "before").otherwise("without"),
    )
    return _rows(named, "causal-inversion", F.coalesce("chain", F.array("event", "effect")), said)


def missing_effects(found: DataFrame, pairs: DataFrame, namer: Namer) -> DataFrame:
    """Effects that are missing before the start: s, p, seq, chain."""
    before = pairs.where(F.col("state") == BEFORE_START)
    starts = before.select("s", "p", "seq", F.coalesce("from_seq", "low").alias("start"))
    named = _with_event(found.join(starts, ["s", "p", "seq"]), namer)
    said = sentence(
        "{client} was delivered {cause} for {subscription_id}, but not its effect {event}: {where}",
        cause=F.coalesce(F.get("chain", F.lit(0)), F.lit("a cause")),
        where=F.coalesce(
            sentence("it starts at {publisher}:{start} only"), sentence("nothing of {publisher} ever came")
        ),
    )
    return _rows(named, "missing-effect", F.coalesce("chain", F.array("event")), said)


# ---- the certificate ------------------------------------------------------------------------------------------


def claims_about_nothing(orphans: DataFrame, namer: Namer) -> DataFrame:
    """Entries of the certificate about events that do not exist: run, p, seq, odd_id, q, reach."""
    named = namer.name(namer.name(orphans, "p", "name", "left"), "q", "publisher")
    named = named.withColumn("event", F.coalesce("odd_id", event_name("name", "seq")))
    head = F.expr("substring(event, 1, length(event) - length(substring_index(event, ':', -1)) - 1)")
    named = named.withColumns({"client": head, "subscription_id": F.lit(None).cast("string")})
    said = sentence("the past of {event} is said to reach up to {publisher}:{reach}, but it was never published")
    return _rows(named, "false-past", F.array("event"), said)


def false_claims(encoded: Encoded, truth: DataFrame, namer: Namer) -> list[DataFrame]:
    """Entries of the certificate that are wrong, and such that are missing."""
    claims = encoded.claims.where("p IS NOT NULL").select("p", "seq", "q", "reach")
    return [_wrong_claims(claims, encoded, truth, namer), _omitted_claims(claims, encoded, truth, namer)]


def _wrong_claims(claims: DataFrame, encoded: Encoded, truth: DataFrame, namer: Namer) -> DataFrame:
    places = encoded.publishers.select(F.col("p").alias("q"), "idx")
    held = claims.join(truth.select("p", "seq", "past"), ["p", "seq"]).join(places, "q", "left")
    real = F.coalesce(F.get("past", F.coalesce("idx", F.lit(-1))), F.lit(0))
    own = F.col("p") == F.col("q")
    wrong = held.withColumn("truth", real).where(own | (F.col("reach") != F.col("truth"))).drop("past", "idx")
    up_to = F.when(F.col("truth") > 0, sentence("up to {publisher}:{truth}")).otherwise("nothing of it")
    flaw = F.when(own, sentence("has an entry for its own publisher, {publisher}")).otherwise(
        sentence("is said to reach up to {publisher}:{reach}, but reaches {up_to}", up_to=up_to)
    )
    return _false_pasts(wrong, flaw, namer)


def _omitted_claims(claims: DataFrame, encoded: Encoded, truth: DataFrame, namer: Namer) -> DataFrame:
    advanced = truth.select("p", "seq", "past", F.explode("fresh").alias("idx"), run_of("p").alias("run_no"))
    by_place = encoded.publishers.select(run_of("p").alias("run_no"), "idx", F.col("p").alias("q"))
    expected = advanced.join(by_place, ["run_no", "idx"]).join(claims, ["p", "seq", "q"], "left_anti")
    omitted = expected.select("p", "seq", "q", F.get("past", "idx").alias("truth"))
    return _false_pasts(omitted, sentence("has no entry for {publisher}, but reaches up to {publisher}:{truth}"), namer)


def _false_pasts(frame: DataFrame, flaw: Column, namer: Namer) -> DataFrame:
    named = namer.name(namer.run_and_name(frame, "p", "client"), "q", "publisher")
    named = named.withColumns({"event": event_name("client", "seq"), "subscription_id": F.lit(None).cast("string")})
    return _rows(named, "false-past", F.array("event"), sentence("the past of {event} {flaw}", flaw=flaw))

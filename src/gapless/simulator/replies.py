"""Simulates clients that answer events, which creates causal chains across publishers.

A rule says: when this client receives an event (for this subscription), it publishes an event with
these attributes, with some probability, at most a number of times, at once or after a delay; it can
skip the first few. A value `"$name"` stands for the attribute `name` of the answered event; if that
has none, the attribute is omitted. The reply is a separate call after the step that delivered, so
the delivery is in its past.
"""

import random
from collections.abc import Callable

import msgspec

from gapless.events import Attributes
from gapless.protocol import Deliver, Publish

__all__ = ["Replies", "ReplyRule", "filled"]


class ReplyRule(msgspec.Struct, frozen=True):
    """A rule that defines which events a client answers, and with which events."""

    client: str
    attributes: Attributes
    subscription: str | None = None
    """The subscription whose deliveries are answered; None for all."""
    probability: float = 1.0
    at_most: int = 10
    delay_us: int = 0
    after: int = 0
    """The number of first deliveries that are not answered."""


class _Rule:
    __slots__ = ("left", "rng", "rule", "silent")

    def __init__(self, rule: ReplyRule, rng: random.Random) -> None:
        self.rule = rule
        self.rng = rng
        self.left = rule.at_most
        self.silent = rule.after


class Replies:
    """The rules of all clients in a run."""

    def __init__(self, seed: int, publish_later: Callable[[str, Publish, int], None]) -> None:
        self._seed = seed
        self._publish_later = publish_later
        self._rules: dict[str, list[_Rule]] = {}

    def add(self, rule: ReplyRule) -> None:
        """Add a rule."""
        rules = self._rules.setdefault(rule.client, [])
        purpose = f"{self._seed}/reply/{rule.client}/{rule.subscription}/{sorted(rule.attributes.items())}"
        rules.append(_Rule(rule, random.Random(purpose)))

    def delivered(self, client: str, delivery: Deliver) -> None:
        """Answer a delivery if a rule applies to it."""
        for state in self._rules.get(client, ()):
            rule = state.rule
            if rule.subscription is not None and rule.subscription != delivery.subscription:
                continue
            if state.silent > 0:
                state.silent -= 1
            elif state.left > 0 and state.rng.random() < rule.probability:
                state.left -= 1
                self._publish_later(client, Publish(filled(rule.attributes, delivery)), rule.delay_us)


def filled(attributes: Attributes, delivery: Deliver) -> Attributes:
    """Return the attributes with every `"$name"` replaced by the attribute of the delivered event."""
    filled: Attributes = {}
    for name, value in attributes.items():
        if isinstance(value, str) and value.startswith("$"):
            if value[1:] in delivery.event.attributes:
                filled[name] = delivery.event.attributes[value[1:]]
        else:
            filled[name] = value
    return filled

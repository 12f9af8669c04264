"""The messages that a broker keeps until all relevant brokers behind it have confirmed them."""

from typing import TypeAlias

from gapless.events import Event
from gapless_papers.protocols.delta.messages import NO_TAGS, Number, Recovered, Tags, Vector

__all__ = ["NOTHING", "ContentId", "Unconfirmed"]

NOTHING: frozenset[str] = frozenset()

ContentId: TypeAlias = tuple[str | int, ...]


class Unconfirmed:
    """A publication, or a partition recovery notifier, that is not confirmed by all receivers."""

    __slots__ = ("content", "id", "missed", "number", "senders", "tags", "vector", "waiting")

    def __init__(self, content: Event | Recovered, id_: ContentId, vector: Vector) -> None:
        self.content = content
        self.id = id_
        self.vector = vector
        self.number = 0
        self.tags: Tags = NO_TAGS
        self.missed = NOTHING
        self.senders: dict[str, tuple[int, Number]] = {}
        """The senders, each with its number for the message and its session; a restarted sender renumbers."""
        self.waiting: dict[str, tuple[str, ...]] = {}
        """The receivers that have to confirm it: brokers with the gates they serve, and clients with their
        subscriptions.
        """

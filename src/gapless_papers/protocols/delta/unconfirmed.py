"""What a broker keeps until all behind it who should have it have confirmed it."""

from typing import TypeAlias

from gapless.events import Event
from gapless_papers.protocols.delta.messages import NO_TAGS, Number, Recovered, Tags, Vector

__all__ = ["NOTHING", "ContentId", "Unconfirmed"]

NOTHING: frozenset[str] = frozenset()

ContentId: TypeAlias = tuple[str | int, ...]


class Unconfirmed:
    """A publication, or the notice that a partition has recovered, that somebody has not confirmed."""

    __slots__ = ("content", "id", "missed", "number", "senders", "tags", "vector", "waiting")

    def __init__(self, content: Event | Recovered, id_: ContentId, vector: Vector) -> None:
        self.content = content
        self.id = id_
        self.vector = vector
        self.number = 0
        self.tags: Tags = NO_TAGS
        self.missed = NOTHING
        self.senders: dict[str, tuple[int, Number]] = {}
        """Who sent it, under which number, in which session of theirs: they number anew when they restart."""
        self.waiting: dict[str, tuple[str, ...]] = {}
        """Who has to confirm it: brokers, with the gates they are to serve, and clients, with their subscriptions."""

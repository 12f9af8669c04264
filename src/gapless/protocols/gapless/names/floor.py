"""Up to which position no durable subscription wants history any more, where history waits for them.

Every keeper of names tells the lowest position that it knows of, with the echo of each wave (`waves`). A majority of
the keepers holds each record that is agreed, and positions only grow. So the lowest position that a majority tells is
no higher than that of any name. A keeper that is not sure what it has forgotten wants everything.
"""

from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.messages import NOBODY
from gapless.protocols.gapless.name_messages import NameRecord
from gapless.protocols.gapless.names.register import Register

__all__ = ["Floor"]


class Floor:
    """What one broker has to do with it."""

    def __init__(self, register: Register, history: History) -> None:
        self._register = register
        self._history = history
        history.floor = 0  # until it is known

    @property
    def majority(self) -> int:
        """How many keepers have to tell."""
        return self._register.majority

    def lowest(self) -> tuple[int, int]:
        """The lowest position of those that are known here; and whether this is a keeper: 1, or 0."""
        if not self._register.is_keeper:
            return NOBODY, 0
        if not self._register.is_sure:
            return 0, 1
        return min((record.position for record in self._register.records()), default=NOBODY), 1

    def spare(self, position: int) -> None:
        """What came after this position is kept."""
        self._history.floor = min(position, NOBODY - 1)

    def last(self) -> NameRecord | None:
        """The name that lies behind farthest, of those that are known here."""
        return min(self._register.records(), key=lambda record: record.position, default=None)

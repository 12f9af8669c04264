"""Finding out what was admitted between two positions, where this broker did not hear of all of it."""

from collections.abc import Callable, Sequence

from gapless.protocols.gapless.history.index import Index
from gapless.protocols.gapless.history.retrieval import Retrieval
from gapless.protocols.gapless.messages import FetchIntervals, Interval

__all__ = ["IntervalSearch"]

PATIENCE = 3
"""After so many turns of the clock without an answer another broker is asked; then after twice as many."""
PATIENCE_MAX = 40
"""After so many turns without an answer a broker is asked no more. It is dead, and too far away to be known as out."""


class IntervalSearch:
    """Ask one broker after the other until there is no gap, or until all have answered."""

    def __init__(
        self, life: int, number: int, text: str, since: int, until: int, brokers: Sequence[str], journal: str = ""
    ) -> None:
        self._life = life
        self._number = number
        self._text = text
        self._journal = journal
        self._since = since
        self._until = until
        self._brokers = list(brokers)
        self.asked = ""
        self._oldest = -1
        """How far back the one asked was asked to reach."""
        self._waited = 0
        self._patience = PATIENCE

    def advance(self, index: Index, send: Callable[[str, FetchIntervals], None]) -> Retrieval | None:
        """Ask, if there is a gap, and somebody to ask. Otherwise return what is to be read."""
        known = index.between(self._since, self._until)
        retrieval = Retrieval(self._text, self._since, self._until, known, index.last, self._journal)
        if not self._brokers or (not retrieval.gaps and retrieval.until == self._until):
            return retrieval
        chain = index.chain(self._since)
        self.asked = self._brokers[0]
        self._oldest = chain[0].since if chain else 0
        self._waited = 0
        send(self.asked, FetchIntervals(self._life, self._number, self._since, self._oldest))
        return None

    def hear(self, peer: str, intervals: Sequence[Interval]) -> bool:
        """Somebody answered, perhaps late; tell whether to go on. A broker that told nothing new is asked no more."""
        knows_more = bool(intervals) and (not self._oldest or intervals[-1].until == self._oldest)
        if not knows_more:
            self._brokers = [name for name in self._brokers if name != peer]
        return knows_more or peer == self.asked

    def wait(self, is_out: Callable[[str], bool]) -> bool:
        """Time passes; tell whether another broker should be asked."""
        self._waited += 1
        if is_out(self.asked) or self._waited >= PATIENCE_MAX:
            self._brokers.remove(self.asked)
        elif self._waited < self._patience:
            return False
        else:
            self._patience = min(2 * self._patience, PATIENCE_MAX)
            self._brokers.append(self._brokers.pop(0))
        return True

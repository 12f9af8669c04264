"""How long a broker waits from one gossip round to the next (paper, section 5).

Always the same time; or, where `gossip_max_ms` is given, one that adapts to what gets lost: it doubles with every round
that brought nothing, and falls back to the least as soon as there is news of losses. A broker that hears of none
gossips ever more seldom, but never less often than the bound says, so that it finds out when that changes.
"""

from gapless_papers.protocols.epidemic.options import EpidemicOptions

__all__ = ["Interval"]


class Interval:
    """The interval of one broker."""

    def __init__(self, options: EpidemicOptions) -> None:
        self.least_us = round(options.gossip_ms * 1000)
        most_ms = options.gossip_ms if options.gossip_max_ms is None else options.gossip_max_ms
        self._most_us = round(most_ms * 1000)
        self._current_us = self.least_us
        self._news = 0

    def after_round(self, news: int) -> int:
        """How long until the next round, in microseconds; `news` is how much was heard of losses so far, in all."""
        self._current_us = self.least_us if news > self._news else min(2 * self._current_us, self._most_us)
        self._news = news
        return self._current_us

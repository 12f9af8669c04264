"""The interval between two gossip rounds of a broker (paper, section 5).

It is constant, or, with `gossip_max_ms`, adapts to losses: it doubles with every round without news, and returns to the
minimum as soon as there are signs of losses. A broker without news gossips less and less often, but never less often
than the bound allows, so that it notices new losses.
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
        """Return the time until the next round, in microseconds; `news` is the total number of signs of
        losses so far."""
        self._current_us = self.least_us if news > self._news else min(2 * self._current_us, self._most_us)
        self._news = news
        return self._current_us

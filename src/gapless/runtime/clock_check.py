"""Checks whether the clock of a broker's host is right, by comparing it with those of other brokers.

Timestamps order events whatever the clocks show, so no guarantee depends on them. Ages and times in
queries (`since="10m"`) do, and a clock that is a day ahead would move all later positions by a day.
Therefore:

- A broker whose clock differs by more than `max_clock_skew_ms` from those of most brokers that it
  reaches reports it: in its log, its status report, its metrics, and through `gapless doctor`.
- If the difference is ten times as large, the broker does not join until the clock is set. A broker
  that reaches no other broker joins: there are no timestamps that it could move. If others are there,
  but too busy to answer, it asks again for up to `UNANSWERED_S`.

A broker that has joined continues, because its timestamps no longer follow its host's clock
(`clock`). It reports how far the host's clock was set since then.
"""

import asyncio
import time
from collections.abc import Callable
from statistics import median

import msgspec

from gapless.errors import GaplessError
from gapless.runtime.access import Access
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.probe import probe

__all__ = ["ClockCheck", "Difference"]

CHECK_S = 10.0
"""The interval at which the clocks are compared."""
ASK_AGAIN_S = 1.0
"""The interval of the comparisons while the broker waits for its clock to be set."""
UNANSWERED_S = 30.0
"""How long a starting broker keeps asking brokers that do not answer in time, before it joins anyway."""
FAR = 10
"""The multiple of `max_clock_skew_ms` above which a broker does not join."""


class Difference(msgspec.Struct, frozen=True):
    """The difference between this host's clock and that of another broker."""

    ahead_s: float
    """By how many seconds this host's clock is ahead."""
    doubt_s: float
    """The uncertainty: half of the round-trip time."""

    def exceeds(self, bound_s: float) -> bool:
        """Return whether the difference certainly exceeds the bound, in spite of the uncertainty."""
        return abs(self.ahead_s) - self.doubt_s > bound_s


class ClockCheck:
    """Compares the clock of one broker's host with those of other brokers."""

    def __init__(
        self,
        config: NetworkConfig,
        name: str,
        access: Access,
        logger: Logger,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.differences: dict[str, Difference] = {}
        """The difference to each broker that answered the last query."""
        self.complaint = ""
        """Why the broker does not join; an empty string if it does."""
        self._are_busy = False
        """Whether a broker accepted the last query and did not answer in time."""
        self._config = config
        self._name = name
        self._access = access
        self._around = config.overlay.within(name, config.network.f + 1)
        self._bound_s = config.runtime.max_clock_skew_ms / 1000
        self._logger = logger
        self._wall_ns = wall_ns
        self._steady_s = steady_s
        self._log_backoff = LogBackoff()
        self._watching: asyncio.Task[None] | None = None

    @property
    def ahead_s(self) -> float:
        """Return by how many seconds this clock is ahead of the median of the others, or 0 if none answered."""
        return median(each.ahead_s for each in self.differences.values()) if self.differences else 0.0

    def is_wrong(self, times: int = 1) -> bool:
        """Return whether this clock differs from those of most brokers by more than `times` the bound."""
        far = [each for each in self.differences.values() if each.exceeds(times * self._bound_s)]
        return 2 * len(far) > len(self.differences)

    async def compare(self) -> None:
        """Ask the other brokers for their time, and record the differences."""
        self._are_busy = False
        answers = await asyncio.gather(*(self._ask(peer) for peer in self._around))
        self.differences = {peer: found for peer, found in zip(self._around, answers, strict=True) if found is not None}

    async def _ask(self, peer: str) -> Difference | None:
        config = self._config
        wall_s, begun_s = self._wall_ns() / 1e9, self._steady_s()
        try:
            welcome = await probe(
                config.addresses[peer],
                name=self._name,
                network=config.fingerprint,
                timeout_s=config.runtime.suspect_ms / 1000,
                access=self._access,
            )
        except TimeoutError:
            self._are_busy = True
            return None
        except (GaplessError, OSError):
            return None
        half_s = (self._steady_s() - begun_s) / 2
        return Difference(wall_s + half_s - welcome.time_s, half_s) if welcome.time_s else None

    async def wait_until_right(self) -> None:
        """Wait until this clock is close enough to those of most brokers to join them."""
        give_up_s = self._steady_s() + UNANSWERED_S
        while True:
            await self.compare()
            if self.is_wrong(FAR):
                self.complaint = f"for the clock of its host to be set: it is {self._words()}"
                if self._log_backoff.due("far"):
                    self._logger.error(f"waiting {self.complaint}; use NTP", extra={"event": "clock.waiting"})
            elif self.differences or not self._are_busy or self._steady_s() > give_up_s:
                break
            await asyncio.sleep(ASK_AGAIN_S)
        self.complaint = ""

    def watch(self) -> None:
        """Start comparing the clocks periodically."""
        self.stop()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Stop comparing."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        while True:
            self._log()
            await asyncio.sleep(CHECK_S)
            await self.compare()

    def _log(self) -> None:
        if self.is_wrong():
            if self._log_backoff.due("wrong"):
                self._logger.warning(
                    f"the clock of this host is {self._words()}; use NTP", extra={"event": "clock.wrong"}
                )
        elif self._log_backoff.forget("wrong"):
            self._logger.info("the clock of this host is right again", extra={"event": "clock.right"})

    def _words(self) -> str:
        side = "ahead of" if self.ahead_s > 0 else "behind"
        return f"{abs(self.ahead_s):,.1f} s {side} those of most brokers that it hears ({', '.join(self.differences)})"

"""Whether the clock of a broker's host is right: it compares it with those of the brokers around it.

Timestamps order events whatever the clocks show, so no guarantee depends on them. Ages and times in questions
(`since="10m"`) do, and a clock that is a day ahead would move all later positions by a day. So

- a broker whose clock differs by more than `max_clock_skew_ms` from those of most brokers that it hears reports it: in
  its log, its report, its metrics, and by `gapless doctor`;
- by more than ten times as much, it does not join until the clock is set. A broker that hears nobody joins: there is
  nobody whose timestamps it could move.

A broker that has joined goes on, because its timestamps do not follow its host's clock any more (`clock`). It reports
how far that was set since.
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
"""How often the clocks are compared."""
ASK_AGAIN_S = 1.0
"""How often, while the broker waits for its clock."""
FAR = 10
"""With a difference of so many times `max_clock_skew_ms`, a broker does not join."""


class Difference(msgspec.Struct, frozen=True):
    """Between our clock and that of one other broker."""

    ahead_s: float
    """By how much ours is ahead."""
    doubt_s: float
    """By how much that may be wrong: half the time of question and answer."""

    def exceeds(self, bound_s: float) -> bool:
        """Whether it is surely more than this."""
        return abs(self.ahead_s) - self.doubt_s > bound_s


class ClockCheck:
    """One broker's."""

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
        """By broker that answered the last time it was asked."""
        self.complaint = ""
        """Why the broker does not join, while that is so."""
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
        """By how much our clock is ahead of those of the brokers that we hear, as their median; 0 if we hear none."""
        return median(each.ahead_s for each in self.differences.values()) if self.differences else 0.0

    def is_wrong(self, times: int = 1) -> bool:
        """Whether our clock differs from those of most brokers that we hear by more than so many times the bound."""
        far = [each for each in self.differences.values() if each.exceeds(times * self._bound_s)]
        return 2 * len(far) > len(self.differences)

    async def compare(self) -> None:
        """Ask the brokers around us for their time."""
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
        except (GaplessError, OSError, TimeoutError):
            return None
        half_s = (self._steady_s() - begun_s) / 2
        return Difference(wall_s + half_s - welcome.time_s, half_s) if welcome.time_s else None

    async def wait_until_right(self) -> None:
        """Return when our clock is near enough to those of most brokers that we hear to join them."""
        await self.compare()
        while self.is_wrong(FAR):
            self.complaint = f"for the clock of its host to be set: it is {self._words()}"
            if self._log_backoff.due("far"):
                self._logger.error(f"waits {self.complaint}; let NTP keep it")
            await asyncio.sleep(ASK_AGAIN_S)
            await self.compare()
        self.complaint = ""

    def watch(self) -> None:
        """Compare the clocks from time to time from now on."""
        self.stop()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Compare no more."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        while True:
            self._tell()
            await asyncio.sleep(CHECK_S)
            await self.compare()

    def _tell(self) -> None:
        if self.is_wrong():
            if self._log_backoff.due("wrong"):
                self._logger.warning(f"the clock of this host is {self._words()}; let NTP keep it")
        elif self._log_backoff.forget("wrong"):
            self._logger.info("the clock of this host is right again")

    def _words(self) -> str:
        side = "ahead of" if self.ahead_s > 0 else "behind"
        return f"{abs(self.ahead_s):,.1f} s {side} those of most brokers that it hears ({', '.join(self.differences)})"

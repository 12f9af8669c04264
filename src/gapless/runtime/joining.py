"""Which life a broker starts with.

A protocol must be able to tell a broker that starts for the first time from one that was here before and has lost its
memory. The first takes its place in the tree; the second has to be taken in by those who remember it.

A broker whose disk knows an earlier start begins a later life, and asks nobody. Every other broker asks all brokers at
most f + 1 away whether they have met an earlier start of it.

- If one has, it is a new life: its incarnation is the time of the wall clock in milliseconds, or if somebody should
  remember a later one, because the clock was set back, one more than that.
- If all answer and none has, nobody holds anything of it: it is its first life, incarnation 0. So a network that is
  started, or started again, as a whole begins at once, with nothing to recover.
- If some do not answer, it waits for `join_ms`. If nobody answers at all it goes on waiting, because a broker that
  hears nobody can do nobody any good.

Those who did not answer may remember it all the same. They notice when it greets them (the same incarnation, another
boot) and turn it down as *stale*; then it starts over with a new life, by the clock.
"""

import asyncio
import time

from gapless.errors import GaplessError
from gapless.runtime.access import Access
from gapless.runtime.address import why_unreachable
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.probe import probe

__all__ = ["ask_whether_remembered", "choose_incarnation", "later_incarnation"]

ASK_AGAIN_S = 0.1
MOMENT_S = 2.0
"""Brokers that are started together do not complain of each other."""


def later_incarnation(remembered: int) -> int:
    """Later than that of any earlier start."""
    return max(time.time_ns() // 1_000_000, remembered + 1)


async def choose_incarnation(
    config: NetworkConfig, name: str, logger: Logger, awaited: dict[str, str], access: Access
) -> int:
    """The incarnation to start with, once enough is known. `awaited` says meanwhile who is waited for, and why."""
    around = config.overlay.within(name, config.network.f + 1)
    answers: dict[str, int] = {}
    log_backoff = LogBackoff()
    begun = time.monotonic()
    while True:
        missing = [peer for peer in around if peer not in answers]
        found = await asyncio.gather(*(ask_whether_remembered(config, name, peer, access) for peer in missing))
        for peer, answer in zip(missing, found, strict=True):
            if isinstance(answer, int):
                answers[peer] = answer
                awaited.pop(peer, None)
            else:
                awaited[peer] = answer
        if max(answers.values(), default=-1) >= 0:
            return later_incarnation(max(answers.values()))
        if len(answers) == len(around) or (answers and time.monotonic() - begun >= config.runtime.join_ms / 1000):
            return 0
        if time.monotonic() - begun >= MOMENT_S:
            for peer, reason in awaited.items():
                if log_backoff.due((peer, reason)):
                    logger.warning(f"waits for {peer}: {reason}", extra={"peer": peer})
        await asyncio.sleep(ASK_AGAIN_S)


async def ask_whether_remembered(config: NetworkConfig, name: str, peer: str, access: Access) -> int | str:
    """The last incarnation of ours that a broker has met, -1 if none; or why it cannot be asked."""
    # A handshake costs both ends some work, and those that are started together all shake hands at once.
    timeout_s = (config.runtime.hello_ms if access.is_tls else config.runtime.suspect_ms) / 1000
    address = config.addresses[peer]
    try:
        welcome = await probe(address, name=name, network=config.fingerprint, timeout_s=timeout_s, access=access)
    except GaplessError as error:
        return str(error)
    except (OSError, TimeoutError) as error:
        return why_unreachable(address, error)
    return welcome.remembered

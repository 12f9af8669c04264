"""Chooses the incarnation with which a broker starts.

A protocol must distinguish a broker that starts for the first time from one that existed before and
has lost its memory. The first takes its place in the tree; the second has to rejoin through the
brokers that remember it.

A broker whose disk knows an earlier start uses a later incarnation, and asks nobody. Every other
broker asks all brokers at most f + 1 links away whether they have met an earlier start of it.

- If one has, the broker uses a new incarnation: the wall-clock time in milliseconds, or one more
  than the latest remembered one, in case the clock was set back.
- If all answer and none has, nobody holds state of it: it starts with incarnation 0. So a network
  that is started, or restarted, as a whole begins at once, with nothing to recover.
- If some do not answer, it waits for `join_ms`. If nobody answers at all, it continues to wait,
  because a broker without connections is of no use.

Brokers that did not answer may still remember it. They notice when it greets them (the same
incarnation, another boot) and refuse it as *stale*; then it restarts with a new incarnation.
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
"""How long brokers that start together do not warn about each other."""


def later_incarnation(remembered: int) -> int:
    """Return an incarnation later than that of any earlier start."""
    return max(time.time_ns() // 1_000_000, remembered + 1)


async def choose_incarnation(
    config: NetworkConfig, name: str, logger: Logger, awaited: dict[str, str], access: Access
) -> int:
    """Return the incarnation to start with. While this runs, `awaited` lists the brokers that it waits for, with
    reasons.
    """
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
                    logger.warning(
                        f"waiting for {peer} to start: {reason}", extra={"event": "broker.waiting", "peer": peer}
                    )
        await asyncio.sleep(ASK_AGAIN_S)


async def ask_whether_remembered(config: NetworkConfig, name: str, peer: str, access: Access) -> int | str:
    """Return the last incarnation of `name` that a broker has met, or -1 if it met none. Return the reason as text if
    it cannot be asked.
    """
    # A handshake costs both ends processor time, and brokers that are started together all connect at the same time.
    timeout_s = (config.runtime.hello_ms if access.is_tls else config.runtime.suspect_ms) / 1000
    address = config.addresses[peer]
    try:
        welcome = await probe(address, name=name, network=config.fingerprint, timeout_s=timeout_s, access=access)
    except GaplessError as error:
        return str(error)
    except (OSError, TimeoutError) as error:
        return why_unreachable(address, error)
    return welcome.remembered

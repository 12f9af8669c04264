"""Queries the status of all brokers, and classifies the brokers that do not answer.

The reasons for silence call for different actions. Nothing listens: the process is gone. The port
accepts connections and nothing answers: the process is frozen or overloaded. No packet returns: the
network is broken. Or the broker answers with a refusal.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec

from gapless.errors import WireError
from gapless.runtime.access import Access
from gapless.runtime.address import split_address
from gapless.runtime.probe import ask_for_report

__all__ = ["Answer", "Silence", "ask_all"]

PATIENCE_S = 2.0

Silence: TypeAlias = Literal["", "nobody", "frozen", "unreachable", "turned-down"]
"""Why there is no report, or an empty string if there is one."""


class Answer(msgspec.Struct, frozen=True):
    """A broker's report, or the reason why there is none."""

    report: dict[str, Any] | None = None
    silence: Silence = ""
    why: str = ""
    """Details of the reason, if there are any."""
    ahead_s: float = 0.0
    """By how many seconds the broker's clock is ahead of that of this host."""
    doubt_s: float = 0.0
    """The uncertainty: half of the round-trip time."""


async def ask_all(addresses: Mapping[str, str], access: Access, about: str = "") -> dict[str, Answer]:
    """Return the answers of all brokers."""
    asked = (_ask(address, access, about) for address in addresses.values())
    return dict(zip(addresses, await asyncio.gather(*asked), strict=True))


async def _ask(address: str, access: Access, about: str) -> Answer:
    begun, began = time.time(), time.monotonic()
    try:
        report = await ask_for_report(address, timeout_s=PATIENCE_S, access=access, about=about)
    except TimeoutError:
        return await _probe_address(address)
    except ConnectionRefusedError:
        return Answer(silence="nobody")
    except OSError as error:
        return Answer(silence="unreachable", why=error.strerror or str(error))
    except WireError as error:
        return Answer(silence="turned-down", why=str(error))
    half_s = (time.monotonic() - began) / 2
    return Answer(report, ahead_s=report["time"] - (begun + half_s), doubt_s=half_s)


async def _probe_address(address: str) -> Answer:
    """Classify a broker that did not answer by trying to connect to its address."""
    host, port = split_address(address)
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return Answer(silence="nobody")
    except (OSError, TimeoutError) as error:
        return Answer(silence="unreachable", why=str(error) or f"no connection within {PATIENCE_S:g} s")
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return Answer(silence="frozen")

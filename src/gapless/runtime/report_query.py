"""How `gapless doctor` and the console ask each broker how it is, and what it learns from one that gives no report.

Silence has causes that an operator has to tell apart. Nobody listens: the process is gone. Somebody accepts connections
and says nothing: the process is frozen, or far too busy. Nothing comes back at all: the way there is broken. Or the
broker answers, and turns the question down.
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
"""Why there is no report; empty if there is one."""


class Answer(msgspec.Struct, frozen=True):
    """Of one broker."""

    report: dict[str, Any] | None = None
    silence: Silence = ""
    why: str = ""
    """In words, where there is more to say."""
    ahead_s: float = 0.0
    """By how much its clock is ahead of ours."""
    doubt_s: float = 0.0
    """By how much that may be wrong: half the time of question and answer."""


async def ask_all(addresses: Mapping[str, str], access: Access) -> dict[str, Answer]:
    """The answers of all brokers."""
    found = await asyncio.gather(*(_ask(address, access) for address in addresses.values()))
    return dict(zip(addresses, found, strict=True))


async def _ask(address: str, access: Access) -> Answer:
    begun, began = time.time(), time.monotonic()
    try:
        report = await ask_for_report(address, timeout_s=PATIENCE_S, access=access)
    except TimeoutError:
        return await _knock(address)
    except ConnectionRefusedError:
        return Answer(silence="nobody")
    except OSError as error:
        return Answer(silence="unreachable", why=error.strerror or str(error))
    except WireError as error:
        return Answer(silence="turned-down", why=str(error))
    half_s = (time.monotonic() - began) / 2
    return Answer(report, ahead_s=report["time"] - (begun + half_s), doubt_s=half_s)


async def _knock(address: str) -> Answer:
    """Whether somebody accepts connections there."""
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

"""Sends an operator's request to all brokers of a network in parallel."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from gapless.errors import ConnectError, WireError

__all__ = ["PATIENCE_S", "Answer", "ask_all", "silent_among"]

PATIENCE_S = 5.0
Answer: TypeAlias = dict[str, object] | None
"""The answer of a broker; None if it did not answer."""


async def _ask(question: Awaitable[dict[str, object]]) -> Answer:
    """Return the answer of one broker."""
    try:
        return await question
    except (OSError, TimeoutError, WireError):
        return None


async def ask_all(
    addresses: Mapping[str, str], question: Callable[[str], Awaitable[dict[str, object]]]
) -> dict[str, Answer]:
    """Return each broker's answer to the request that `question` sends to its address."""
    found = await asyncio.gather(*(_ask(question(address)) for address in addresses.values()))
    return dict(zip(addresses, found, strict=True))


def silent_among(answers: Mapping[str, Answer], addresses: Mapping[str, str]) -> list[str]:
    """Return the brokers that did not answer; raise an error if none did."""
    silent = [name for name, answer in answers.items() if answer is None]
    if len(silent) == len(addresses):
        raise ConnectError(f"no broker could be reached at {', '.join(addresses.values())}; is the network up?")
    return silent

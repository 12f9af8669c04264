"""Taking events from a subscription, with an end if none come."""

import asyncio

from gapless.client import Subscription
from gapless.events import Event

__all__ = ["take"]


async def take(subscription: Subscription, count: int) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await subscription.take(count - len(found))
    return found

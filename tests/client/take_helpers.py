"""Takes events from a subscription with a timeout."""

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

"""The client library: connect, advertise, publish, subscribe.

```python
import asyncio
import gapless

async def main() -> None:
    async with gapless.connect("gapless://127.0.0.1:7400") as client:
        await client.advertise("topic = 'price'")
        subscription = await client.subscribe("topic = 'price' AND amount < 10")
        await client.publish({"topic": "price", "amount": 7}, b"any bytes")
        async for event in subscription:
            print(event.id, event.attributes, event.payload)
            break

asyncio.run(main())
```

`subscribe` returns when the starting cut is fixed: from then on nothing that matches is missed, whatever happens to
brokers. `publish` returns when the event is safe. `gapless.sync` has the same names for programs without an event loop.
"""

from gapless.client.advertisement import Advertisement
from gapless.client.changes import Change, Changes
from gapless.client.client import Client
from gapless.client.confirmations import ConfirmableEvent
from gapless.client.connecting import Connecting, connect
from gapless.client.milestones import Milestones
from gapless.client.positions import Since
from gapless.client.requests import Request, Requests
from gapless.client.standing import Standing
from gapless.client.subscription import ConfirmableSubscription, Subscription, TypedSubscription
from gapless.names import DurableInfo
from gapless.security.credentials import Credentials

__all__ = [
    "Advertisement",
    "Change",
    "Changes",
    "Client",
    "ConfirmableEvent",
    "ConfirmableSubscription",
    "Connecting",
    "Credentials",
    "DurableInfo",
    "Milestones",
    "Request",
    "Requests",
    "Since",
    "Standing",
    "Subscription",
    "TypedSubscription",
    "connect",
]

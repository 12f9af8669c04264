"""The client library: connect, advertise, publish, subscribe.

```python
import asyncio

import gapless


async def main() -> None:
    async with gapless.connect("gapless://127.0.0.1:7400") as client:
        await client.advertise("topic = 'price'")
        async with client.subscribe("topic = 'price' AND amount < 10") as prices:
            await client.publish({"topic": "price", "amount": 7}, b"any bytes")
            async for event in prices:
                print(event.id, event.attributes, event.payload)
                break

asyncio.run(main())
```

`subscribe` returns when the starting cut is fixed: from then on no matching event is missed, even if brokers fail.
`publish` returns when the event is confirmed. `gapless.sync` has the same names for programs without an event loop.
"""

from gapless.client.admin import Admin
from gapless.client.advertisement import Advertisement
from gapless.client.answering import Answer, Answering
from gapless.client.archive_reader import ArchiveReader
from gapless.client.changes import ConnectionChange, ConnectionChanges
from gapless.client.client import Client
from gapless.client.codecs import Codec
from gapless.client.connecting import connect
from gapless.client.durable_event import DurableEvent
from gapless.client.identity import Identity
from gapless.client.middleware import Middleware, Outgoing
from gapless.client.milestones import Milestones
from gapless.client.opening import Opening
from gapless.client.positions import Since
from gapless.client.subscription import DurableSubscription, Subscription
from gapless.names import DurableInfo
from gapless.security.credentials import Credentials

__all__ = [
    "Admin",
    "Advertisement",
    "Answer",
    "Answering",
    "ArchiveReader",
    "Client",
    "Codec",
    "ConnectionChange",
    "ConnectionChanges",
    "Credentials",
    "DurableEvent",
    "DurableInfo",
    "DurableSubscription",
    "Identity",
    "Middleware",
    "Milestones",
    "Opening",
    "Outgoing",
    "Since",
    "Subscription",
    "connect",
]

"""The client library for programs without an event loop: scripts, notebooks, Spark workers.

```python
import gapless.sync

with gapless.sync.connect("gapless://127.0.0.1:7400") as client:
    client.advertise("topic = 'price'")
    with client.subscribe("topic = 'price'") as prices:
        client.publish({"topic": "price", "amount": 7})
        for event in prices:
            print(event)
            break
```
"""

from gapless.client import (
    Codec,
    ConnectionChange,
    DurableInfo,
    Identity,
    Middleware,
    Milestones,
    Outgoing,
    Since,
)
from gapless.client.answering import Answer
from gapless.client.sync_admin import Admin
from gapless.client.sync_advertisement import Advertisement
from gapless.client.sync_answering import Answering
from gapless.client.sync_archive_reader import ArchiveReader
from gapless.client.sync_changes import ConnectionChanges
from gapless.client.sync_client import Client
from gapless.client.sync_connecting import connect
from gapless.client.sync_durable_event import DurableEvent
from gapless.client.sync_subscription import DurableSubscription, Subscription
from gapless.security.credentials import Credentials

__all__ = [
    "Admin", "Advertisement", "Answer", "Answering", "ArchiveReader", "Client", "Codec", "ConnectionChange",
    "ConnectionChanges", "Credentials", "DurableEvent", "DurableInfo", "DurableSubscription", "Identity", "Middleware",
    "Milestones", "Outgoing", "Since", "Subscription", "connect",
]  # fmt: skip

"""The client library for programs without an event loop: scripts, notebooks, Spark workers.

```python
import gapless.sync

with gapless.sync.connect("gapless://127.0.0.1:7400") as client:
    client.advertise("topic = 'price'")
    subscription = client.subscribe("topic = 'price'")
    client.publish({"topic": "price", "amount": 7})
    for event in subscription:
        print(event)
        break
```
"""

from gapless.client import Change, DurableInfo, Milestones, Since, Standing
from gapless.client.sync_client import Advertisement, Client, connect
from gapless.client.sync_subscription import (
    Changes,
    ConfirmableEvent,
    ConfirmableSubscription,
    Request,
    Requests,
    Subscription,
    TypedSubscription,
)
from gapless.security.credentials import Credentials

__all__ = [
    "Advertisement",
    "Change",
    "Changes",
    "Client",
    "ConfirmableEvent",
    "ConfirmableSubscription",
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
]  # fmt: skip

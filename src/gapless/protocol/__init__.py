"""Defines the interface between protocols and the runtimes that drive them.

A protocol supplies two kinds of node, a broker and a client. Both are pure state machines: `step(input, now)` takes one
input and returns its effects, in order. A node reads no clock, draws no random number and uses no socket; time is the
integer number of microseconds that the runtime passes in. It counts from the start of a simulated run, or from 1970,
and never runs backwards.

A runtime guarantees to a node:

- Messages between two nodes arrive in the order sent, each at most once, while their connection lasts. A lost
  connection
  loses an unknown suffix of its messages in flight; both ends receive `Connected` once a new connection exists.
- `Suspected(peer)` is the failure detector's opinion and can be wrong; `Trusted(peer)` revokes it.
- `Resumed` says that the node itself was paused, and that others may have suspected it.
- The tree can change: both ends of a removed link receive `Unlinked`, both ends of a new one `Linked`. Messages in
  flight
  between the two ends at that time are lost. Two brokers that are no longer neighbours can still send to each other, as
  any two can.
- `Place.incarnation` grows each time a broker starts without the memory of its previous incarnation.
- A restarted broker's disk contains everything that was reported as `Persisted`, and of the rest a prefix, `Keep` by
  `Keep`. A disk can also be lost, or replaced by an old copy.
- Each effect is carried out before the next input is given to the same node.

| content | module |
| --- | --- |
| the inputs and the effects of a node | `inputs`, `effects` |
| nodes, and their places in the network | `nodes` |
| a protocol's guarantee, and the construction of its nodes | `spec` |
| the contents of a message: events, or another message | `carrying` |
| the permissions that a client's message needs | `judging` |

The registry (`gapless.registry`) finds a protocol by its name: the product's own, and those that other packages
register as entry points.
"""

from gapless.protocol.effects import (
    Activated,
    Advertised,
    CaughtUp,
    Confirmed,
    CutFixed,
    CutsVoided,
    Deliver,
    DeliverMany,
    Effect,
    Ended,
    Expel,
    Keep,
    PublicationsLost,
    Published,
    PublishedMany,
    Rejected,
    Send,
    SetTimer,
    Skipped,
    Superseded,
)
from gapless.protocol.inputs import (
    NEWEST,
    Advertise,
    Connected,
    Consumed,
    DeleteEvents,
    EndSession,
    Forget,
    Input,
    Linked,
    Persisted,
    Publish,
    PublishMany,
    Ready,
    Received,
    Resumed,
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unlinked,
    Unsubscribe,
)
from gapless.protocol.invariants import InvariantError, Invariants
from gapless.protocol.judging import Demand, Judging
from gapless.protocol.nodes import BrokerNode, BrokerPlace, ClientNode, ClientPlace, Node, Owners
from gapless.protocol.spec import (
    GUARANTEE_NAMES,
    Guarantee,
    ProtocolSpec,
    any_overlay,
    check_overlay,
    convert_options,
    largest_f,
    trees_only,
)

__all__ = [
    "GUARANTEE_NAMES",
    "NEWEST",
    "Activated",
    "Advertise",
    "Advertised",
    "BrokerNode",
    "BrokerPlace",
    "CaughtUp",
    "ClientNode",
    "ClientPlace",
    "Confirmed",
    "Connected",
    "Consumed",
    "CutFixed",
    "CutsVoided",
    "DeleteEvents",
    "Deliver",
    "DeliverMany",
    "Demand",
    "Effect",
    "EndSession",
    "Ended",
    "Expel",
    "Forget",
    "Guarantee",
    "Input",
    "InvariantError",
    "Invariants",
    "Judging",
    "Keep",
    "Linked",
    "Node",
    "Owners",
    "Persisted",
    "ProtocolSpec",
    "PublicationsLost",
    "Publish",
    "PublishMany",
    "Published",
    "PublishedMany",
    "Ready",
    "Received",
    "Rejected",
    "Resumed",
    "Send",
    "SetTimer",
    "Skipped",
    "Start",
    "Subscribe",
    "Superseded",
    "Suspected",
    "TimerFired",
    "Trusted",
    "Unadvertise",
    "Unlinked",
    "Unsubscribe",
    "any_overlay",
    "check_overlay",
    "convert_options",
    "largest_f",
    "trees_only",
]  # fmt: skip

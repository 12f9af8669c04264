"""The interface between protocols and the runtimes that drive them.

A protocol supplies two kinds of node, a broker and a client. Both are pure state machines: `step(input, now)`
takes one input and returns the effects it causes, in order. A node reads no clock, draws no random number and
touches no socket; time is the integer number of microseconds that the runtime passes in. It counts from the
start of a simulated run, or from 1970, and never runs backwards.

What a runtime promises a node:

- Messages between two nodes arrive in the order sent, each at most once, while their connection lasts. A
  connection that is lost takes an unknown suffix of the messages in flight with it; `Connected` is then given to
  both ends once a fresh connection exists.
- `Suspected(peer)` is the failure detector's opinion and may be wrong; `Trusted(peer)` takes it back.
- `Resumed` says that the node itself was paused, and that others may have suspected it.
- The tree may be rearranged: `Unlinked` is given to both ends of a link that goes, `Linked` to both ends of one that
  comes. Messages in flight between the two ends at that moment are lost. Two brokers that are no longer neighbours can
  still send to each other, as any two can.
- `Place.incarnation` grows each time a broker starts without the memory of its earlier life.
- What a disk held when its broker stopped, it holds when the broker starts again: all that was said to be `Persisted`,
  and of the rest what came first, `Keep` by `Keep`. A disk may also be lost, or an old one be put in its place.
- Each effect is carried out before the next input is given to the same node.

| what | file |
| --- | --- |
| what a runtime gives a node, and what that asks of it | `inputs`, `effects` |
| what a node is, and where it stands | `nodes` |
| what a protocol promises, and how its nodes are made | `spec` |
| what a message carries: events, or another message | `carrying` |
| what a client's message asks for, where not everybody may do everything | `judging` |

The registry (`gapless.registry`) finds a protocol by its name: the product's own, and those that other packages offer
as entry points.
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
    HistoryRead,
    Input,
    Linked,
    Persisted,
    Publish,
    PublishMany,
    ReadHistory,
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
    "HistoryRead",
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
    "ReadHistory",
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

"""Scenarios: networks, protocols, clients with their actions, and faults. This is the reference of the file format.

A scenario is a TOML file. All times are milliseconds from the start (fractions allowed). A small one:

```toml
name = "hello"

[network]
shape = "chain"
brokers = 3

[protocol]
name = "gapless"

[[clients]]
name = "alice"
broker = "b0"

[[clients]]
name = "bob"
broker = "b2"

[[actions]]
at_ms = 0
client = "alice"
do = "advertise"
advertisement = "prices"
filter = "topic = 'price'"

[[actions]]
at_ms = 10
client = "bob"
do = "subscribe"
subscription = "cheap"
filter = "topic = 'price' AND amount < 10"

[[actions]]
at_ms = 200
client = "alice"
do = "publish"
attributes = { topic = "price", amount = 7 }
```

`name`, `description`
: optional, at the top.

`[network]`
: `shape` is `binary` (with `depth`), `kary` (`fanout`, `depth`), `chain` or `star` (`brokers`), `random` (`brokers`,
  and optionally `tree_seed` and `max_degree`) or `edges` (`edges = [["b0", "b1"], …]`). Brokers are b0, b1… unless
  edges name them. Graphs with cycles, for protocols that support them, are `ring` (`brokers`), `grid` (`rows`,
  `columns`), `regular` (`brokers`, `degree`, and `tree_seed`), and `edges` that form one. With `bypass = n` each broker
  of a tree is also linked to all at most n + 1 hops away, by links as long as the paths that they bypass. `f` (default
  1) is how many neighbouring failures the protocol must tolerate. `loss` and `duplication` are probabilities, for
  protocols that claim to tolerate them.

`[network.latency]`
: `model` is `constant` (`ms`, default 10), `jitter` (`min_ms`, `max_ms`: drawn for each message) or `per-link`
  (`min_ms`, `max_ms`: drawn once for each link). `links = { "b0-b1" = 25 }` fixes single links. `client_ms` (default 0)
  is the latency between client and broker. Brokers that are not neighbours communicate with the latencies of the links
  between them; with `direct = true` any two have their own link.

`[network.detection]`, `[network.reconnect]`
: `min_ms`, `max_ms`: how long until a failure is detected (default 50 to 150), and how long until two nodes that can
  communicate again have a connection (default 0).

`[network.node_model]`
: `processing_ms` for each message received and `transmission_ms` for each copy sent; kinds of messages in `free` cost
  nothing. See `gapless.simulator.queueing`.

`[network.disks]`
: `min_ms`, `max_ms`: brokers have disks with this sync time. See `gapless.simulator.disks`.

`[protocol]`
: `name`, and `[protocol.options]`, which each protocol defines for itself.

`[[clients]]`
: `name`, `broker`, and optionally `join_ms` (default 0), `latency_ms` (instead of `client_ms`) and `consume_ms`
  (default 0: how long deliveries wait before the application takes them).

`[[actions]]`
: `at_ms`, `client` and `do`: `subscribe` (`subscription`, `filter`, and optionally `ready`: `whole`, or `first`, as the
  papers count; see `protocol.Ready`; `name`, `ack` and `replace` for a durable one, `group` and `redeliver_s` if a
  group shares it, `max_deliveries`), `unsubscribe` (`subscription`); for a durable one with `ack = "manual"`: `ack`
  (`subscription`: all deliveries), `ack_each`, `nack` (and `delay_ms`), `in_progress` (the last delivery); `move`
  (`name`, `filter`, `to`: `earliest`, or `nowhere`, which deletes it), `advertise` (`advertisement`, `filter`),
  `unadvertise` (`advertisement`), `publish` (`attributes`; `count` and `every_ms` repeat it), `leave`. Names of
  subscriptions and advertisements are unique in the whole scenario; to subscribe again, use another name.

`[[replies]]`
: when `client` receives an event (for `subscription`, if given), it publishes one with `attributes`, with `probability`
  (default 1), `at_most` (default 10) times in all, `delay_ms` (default 0) later; it does not answer the first `after`
  (default 0). `"$name"` copies an attribute of the event.

`[[faults]]`
: `at_ms` and `kind`: `crash` (`broker`), `restart` (`broker`, `memory = true` if it was only paused, `disk = "old"`,
  `"lost"` or `"damaged"` if its disk has earlier contents, none, or parts), `cut` and `heal` (`between = ["b0", "b1"]`,
  two brokers or a client and a broker; `one_way = true` if only messages from the first to the second are lost),
  `suspect` and `trust` (`observer`, `target`: a false suspicion and its end), `forget` (`broker`, `via`: an operator
  declares to one broker that another will not return), `delete` (`publisher`, `via`: an operator requests that one
  broker delete a publisher's events from history), `clock` (`broker`, `ahead_ms`, `drift`: its clock is ahead of the
  run's by this much, and gains this fraction of the elapsed time), `relink` (`old = ["b0", "b1"]`, `new = ["b0",
  "b2"]`: a link of the tree is replaced by another that joins the two parts, at once or after `gap_ms`; messages in
  flight on it are lost), for protocols that claim to tolerate it.

`[run]`
: `seed` (default 0), `settle_ms` (default 2000: how long after the last action or fault everything must have arrived),
  `until_ms` (the end; by default when the run has settled), `sample_ms` (how often state sizes are sampled; 0 means at
  the end), `max_steps`, `schedule` (`latency`, or `pct:D`: messages are delivered by priorities of connections; see
  `gapless.simulator.priorities`), `may_lose` (default false: a reported loss of a confirmed event is a violation; true
  if the faults exceed what the protocol tolerates).

`[explore]`
: for `gapless sim explore`: `from_ms` (earlier actions happen first, in the order of their times; default 0), `delays`
  and `ticks` (its bounds), `schedule` (one schedule, which is repeated instead).
"""

from typing import Any, Literal, TypeAlias

import msgspec

from gapless.events import Attributes
from gapless.names import AckMode
from gapless.protocol import Ready
from gapless.simulator.toml_text import toml_text

__all__ = [
    "AckAction",
    "AckEachAction",
    "Action",
    "AdvertiseAction",
    "Client",
    "Crash",
    "Cut",
    "Delay",
    "DeleteEvents",
    "Explore",
    "Fault",
    "Forget",
    "Heal",
    "InProgressAction",
    "LatencySpec",
    "LeaveAction",
    "MoveAction",
    "NackAction",
    "Network",
    "NodeModelSpec",
    "ProtocolChoice",
    "PublishAction",
    "Relink",
    "Reply",
    "Restart",
    "Run",
    "Scenario",
    "SetClock",
    "SubscribeAction",
    "Suspect",
    "Trust",
    "UnadvertiseAction",
    "UnsubscribeAction",
]  # fmt: skip


class LatencySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[network.latency]`: the latencies of messages."""

    model: Literal["constant", "jitter", "per-link"] = "constant"
    ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    links: dict[str, float] = {}
    client_ms: float = 0.0
    direct: bool = False


class Delay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A delay that is drawn between two bounds."""

    min_ms: float
    max_ms: float


class NodeModelSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[network.node_model]`: the cost of messages for brokers."""

    processing_ms: float
    transmission_ms: float
    free: tuple[str, ...] = ()


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[network]`: the tree or graph, and its links."""

    shape: Literal["binary", "kary", "chain", "star", "random", "edges", "ring", "grid", "regular"]
    brokers: int | None = None
    depth: int | None = None
    fanout: int | None = None
    tree_seed: int | None = None
    max_degree: int | None = None
    rows: int | None = None
    columns: int | None = None
    degree: int | None = None
    bypass: int = 0
    edges: tuple[tuple[str, str], ...] | None = None
    f: int = 1
    loss: float = 0.0
    duplication: float = 0.0
    latency: LatencySpec = LatencySpec()
    detection: Delay = Delay(50.0, 150.0)
    reconnect: Delay = Delay(0.0, 0.0)
    node_model: NodeModelSpec | None = None
    disks: Delay | None = None


class ProtocolChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[protocol]`: a protocol with its options."""

    name: str
    options: dict[str, Any] = {}


class Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[clients]]`: a client and its broker."""

    name: str
    broker: str
    join_ms: float = 0.0
    latency_ms: float | None = None
    consume_ms: float = 0.0


class _Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    at_ms: float
    client: str


class SubscribeAction(_Action, frozen=True, tag="subscribe"):
    """An action that subscribes with a filter."""

    subscription: str
    filter: str
    ready: Ready = "whole"
    since_ms: float = -1.0
    """The time from which events are included: 0 is all of history, and below 0 nothing from before the call."""
    until_ms: float = 0.0
    """The end of a subscription with `since_ms`. Below 0 it ends with the last event that was confirmed at its start; 0
    means no end."""
    name: str = ""
    """The name of a durable subscription, which continues after the acknowledged events."""
    ack: AckMode = "auto"
    replace: bool = False
    group: bool = False
    """Whether the subscription is shared: each event is delivered to one member of the group."""
    redeliver_s: float = 30.0
    """In a group, the time after which an unacknowledged event is redelivered to another member."""
    max_deliveries: int = 0
    """For a durable subscription, the number of unacknowledged deliveries after which an event becomes a dead letter. 0
    means never."""


class AckAction(_Action, frozen=True, tag="ack"):
    """An action that acknowledges all deliveries of a durable subscription."""

    subscription: str


class AckEachAction(_Action, frozen=True, tag="ack_each"):
    """An action that acknowledges only the last delivery of a durable subscription."""

    subscription: str


class NackAction(_Action, frozen=True, tag="nack"):
    """An action that returns the last delivery of a durable subscription with `nack`."""

    subscription: str
    delay_ms: float = 0.0


class InProgressAction(_Action, frozen=True, tag="in_progress"):
    """An action that extends the redelivery timeout of the last delivery of a durable subscription."""

    subscription: str


class MoveAction(_Action, frozen=True, tag="move"):
    """An action that moves a durable subscription to another position, or deletes it, whether a client is attached or
    not.
    """

    name: str
    filter: str
    """The filter of the durable subscription. The call is refused if it differs."""
    to: Literal["earliest", "nowhere"]
    """The new position; `nowhere` deletes the subscription."""


class UnsubscribeAction(_Action, frozen=True, tag="unsubscribe"):
    """An action that ends a subscription."""

    subscription: str


class AdvertiseAction(_Action, frozen=True, tag="advertise"):
    """An action that announces future publications."""

    advertisement: str
    filter: str


class UnadvertiseAction(_Action, frozen=True, tag="unadvertise"):
    """An action that withdraws an advertisement."""

    advertisement: str


class PublishAction(_Action, frozen=True, tag="publish"):
    """An action that publishes once, or `count` times."""

    attributes: Attributes
    count: int = 1
    every_ms: float = 0.0


class LeaveAction(_Action, frozen=True, tag="leave"):
    """An action that ends all subscriptions and advertisements of the client."""


Action: TypeAlias = (
    SubscribeAction | UnsubscribeAction | AckAction | AckEachAction | NackAction | InProgressAction | MoveAction
    | AdvertiseAction | UnadvertiseAction | PublishAction | LeaveAction
)  # fmt: skip


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[replies]]`: a rule by which a client answers events."""

    client: str
    attributes: Attributes
    subscription: str | None = None
    probability: float = 1.0
    at_most: int = 10
    delay_ms: float = 0.0
    after: int = 0


class _Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    at_ms: float


class Crash(_Fault, frozen=True, tag="crash"):
    """A fault in which a broker crashes."""

    broker: str


class Restart(_Fault, frozen=True, tag="restart"):
    """The restart of a crashed or paused broker."""

    broker: str
    memory: bool = False
    disk: Literal["kept", "old", "lost", "damaged"] = "kept"
    """The state of the broker's disk, if it has one."""


class Cut(_Fault, frozen=True, tag="cut"):
    """A fault that disconnects two nodes."""

    between: tuple[str, str]
    one_way: bool = False
    """Whether only messages from the first node to the second are lost."""


class Heal(_Fault, frozen=True, tag="heal"):
    """The end of a cut."""

    between: tuple[str, str]


class Suspect(_Fault, frozen=True, tag="suspect"):
    """A false suspicion of one node by another."""

    observer: str
    target: str


class Trust(_Fault, frozen=True, tag="trust"):
    """The end of a false suspicion."""

    observer: str
    target: str


class Relink(_Fault, frozen=True, tag="relink"):
    """The replacement of one link of the tree by another."""

    old: tuple[str, str]
    new: tuple[str, str]
    gap_ms: float = 0.0
    """The time between the removal of the old link and the addition of the new one."""


class Forget(_Fault, frozen=True, tag="forget"):
    """An operator's message to one broker that another will not return."""

    broker: str
    via: str
    """The broker that receives the message."""


class DeleteEvents(_Fault, frozen=True, tag="delete"):
    """An operator's message to one broker to delete the events of a publisher from history."""

    publisher: str
    via: str
    """The broker that receives the message."""


class SetClock(_Fault, frozen=True, tag="clock"):
    """A change of a broker's clock."""

    broker: str
    ahead_ms: float = 0.0
    drift: float = 0.0
    """The drift of the clock, as a fraction of elapsed time."""


Fault: TypeAlias = Crash | Restart | Cut | Heal | Suspect | Trust | Relink | Forget | DeleteEvents | SetClock


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[run]`: the settings of the run."""

    seed: int = 0
    settle_ms: float = 2000.0
    until_ms: float | None = None
    sample_ms: float = 0.0
    max_steps: int = 20_000_000
    schedule: str = "latency"
    """The order of deliveries: by latency, or by priorities of connections that change D - 1 times (`pct:D`)."""
    may_lose: bool = False
    """Whether more brokers may fail than the protocol tolerates, so that confirmed events may be lost and reported."""


class Explore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[explore]`: how `gapless sim explore` explores the scenario."""

    from_ms: float = 0.0
    """The time before which actions happen in their order; later actions happen in any order."""
    delays: int = 1
    ticks: int = 2
    schedule: tuple[str, ...] = ()
    """A schedule to be repeated instead of an exploration."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A complete scenario."""

    network: Network
    protocol: ProtocolChoice
    name: str = "scenario"
    description: str = ""
    run: Run = Run()
    explore: Explore = Explore()
    clients: tuple[Client, ...] = ()
    actions: tuple[Action, ...] = ()
    replies: tuple[Reply, ...] = ()
    faults: tuple[Fault, ...] = ()

    def to_toml(self) -> str:
        """Return the scenario as the text of a file."""
        return toml_text(self)

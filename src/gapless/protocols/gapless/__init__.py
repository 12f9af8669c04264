"""`gapless`: gapless causal delivery with recovery by final positions.

| module | contents |
| --- | --- |
| `identities`, `messages`, `client_messages` | names and incarnations; messages of nodes |
| `journal_messages`, `link_messages`, `membership_messages` | messages by subject |
| `options` | the options |
| `state` | all state of a broker, as plain data |
| `membership_state`, `routing_state`, `journal_state`, `client_state`, `disk_state` | its parts |
| `topology` | the tree, electorates, regions, the contracted tree |
| `channel` | reliable FIFO channels between incarnations |
| `membership`, `sealing` | statuses and suspicions; excluding an incarnation, and agreeing on its journal |
| `disk`, `recovery` | writing to disk before answering; what a restarted broker asks its electorates |
| `journal` | admission, replication to f others, release |
| `routing`, `events` | advertisements, subscriptions, cuts; the path of events |
| `positions` | waves and final positions |
| `handover` | the barrier that replaces a part of the tree |
| `sealed_journals` | fetching sealed journals, and giving up entries that no broker has |
| `losses`, `tombstones` | losses beyond f: detecting them, and reporting them in place of the events |
| `fences`, `calls`, `sessions` | clients: attaching behind a fence, their calls in order, closing |
| `local`, `outbox` | their subscriptions and deliveries |
| `reading`, `history` | reading history, and retaining it |
| `durable` | durable and shared subscriptions |
| `broker`, `client` | the two kinds of nodes |
| `inputs` | dispatch of messages to handlers |
| `client_connection`, `client_publications`, `client_deliveries` | the parts of a client's node |
| `invariants` | invariants that simulated runs check after every step |
"""

from gapless.overlay import Overlay
from gapless.protocol import BrokerNode, BrokerPlace, Invariants, Judging, ProtocolSpec, trees_only
from gapless.protocols.gapless.client import GaplessClient
from gapless.protocols.gapless.client_messages import ANSWERS, CLIENT_MESSAGES
from gapless.protocols.gapless.demands import demand, rewrite
from gapless.protocols.gapless.messages import BROKER_MESSAGES
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.topology import electorates, why_too_small


def _broker(place: BrokerPlace, options: GaplessOptions) -> BrokerNode:
    from gapless.protocols.gapless.broker import GaplessBroker  # a client does not need its sixty modules

    return GaplessBroker(place, options)


def _invariants(overlay: Overlay, f: int, options: GaplessOptions) -> Invariants:
    from gapless.protocols.gapless.invariants import GaplessInvariants

    return GaplessInvariants(overlay, f, options)


def _refuses(overlay: Overlay, f: int, options: GaplessOptions) -> str | None:
    return trees_only(overlay, f, options) or why_too_small(overlay, f, options.history_bytes)


PROTOCOL = ProtocolSpec(
    name="gapless",
    guarantee="gcd",
    summary="gapless causal delivery; clients move behind final positions",
    options=GaplessOptions,
    broker=_broker,
    client=GaplessClient,
    takes_many=True,
    paces=True,
    confirms=True,
    keeps_history=True,
    whole_cuts=True,
    ends_sessions=True,
    keeps_names=True,
    keeps_disks=True,
    forgets=True,
    deletes=True,
    messages=(*BROKER_MESSAGES, *CLIENT_MESSAGES, *ANSWERS),
    client_messages=CLIENT_MESSAGES,
    judging=Judging(demand, rewrite),
    electorates=electorates,
    refuses=_refuses,
    invariants=_invariants,
    copes_with=frozenset({"crash", "restart", "cut", "suspicion", "partition", "disk", "blackout", "clock"}),
)

"""`gapless`, the default: gapless causal delivery while subscribers, publishers and brokers come and go.

A map. `broker` feeds each input to the part whose rule it is; `client` is the other end; what they say is in
`messages`, `name_messages` and `client_messages`. Arrows point down: a part knows those in the lines below it, and
nothing in its own line or above.

    broker      client/       demands      the two ends: which input goes to which part; what clients ask for
    succession  turns       overview       one life after another; which input when; what operators are told
    life        foreseeing                 the parts of one life, put together; what takes long, done before its input
    member_course                          what is heard of who lives, and what follows
    tree_course             backup_course  what travels along the tree; journals that others hold
    event_course            wave_course    how events go their way, and waves
    site        streams                    what lasts through all lives; who is listened to
    names/                     groups/     durable subscriptions: their records; those that a group of clients shares
    recovery/                              going round the dead, and back
    clients/                               sessions, admission, delivery
    history/                               what was admitted, to be read again
    routing/    retention/    members/     who subscribes; what is kept; who lives
    channel     disk                       streams between lives; what is put on a disk
    client_messages                        what clients and brokers say to each other
    name_messages                          what brokers say about durable subscriptions
    messages    options                    what brokers say to each other; what can be set
    lives                                  names of lives
    epochs      pieces                     which session of a client is newer; long work in pieces
    tombstones  parting                    what is lost; two halves that went on
"""

from gapless.overlay import Overlay
from gapless.protocol import Judging, ProtocolSpec, trees_only
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client import GaplessClient
from gapless.protocols.gapless.client_messages import ANSWERS, CLIENT_MESSAGES
from gapless.protocols.gapless.clients.claims import EFFORT_MAX
from gapless.protocols.gapless.demands import demand, rewrite
from gapless.protocols.gapless.members.quorum import why_too_small
from gapless.protocols.gapless.messages import BROKER_MESSAGES
from gapless.protocols.gapless.name_messages import NAME_MESSAGES
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.parts.bounds import TEXT_MAX


def _refuses(overlay: Overlay, f: int, options: GaplessOptions) -> str | None:
    reason = trees_only(overlay, f, options)
    return why_too_small(overlay, f) if reason is None and options.partition == "wait" else reason


PROTOCOL = ProtocolSpec(
    name="gapless",
    guarantee="gcd",
    summary="gapless causal delivery; a covered subscription has its cuts after one round trip to its pivot",
    options=GaplessOptions,
    broker=GaplessBroker,
    client=GaplessClient,
    takes_many=True,
    paces=True,
    confirms=True,
    whole_cuts=True,
    ends_sessions=True,
    forgets=True,
    keeps_history=True,
    keeps_names=True,
    keeps_disks=True,
    messages=(*BROKER_MESSAGES, *NAME_MESSAGES, *CLIENT_MESSAGES, *ANSWERS),
    client_messages=CLIENT_MESSAGES,
    judging=Judging(demand, rewrite, TEXT_MAX, EFFORT_MAX),
    copes_with=frozenset({"crash", "restart", "cut", "suspicion", "disk", "blackout", "partition", "clock"}),
    refuses=_refuses,
)

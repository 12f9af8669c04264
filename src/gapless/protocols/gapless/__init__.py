"""`gapless`, the default: gapless causal delivery while subscribers, publishers and brokers come and go.

A map. `broker` feeds each input to the part whose rule it is; `client` is the other end; `messages` is what they say.
Arrows point down: a part knows those in the lines below it, and nothing in its own line or above.

    broker                     client
    turns       wave_course   overview     which input when; how waves travel; what operators are told
    recovery/                              going round the dead, and back
    clients/                               sessions, admission, delivery
    history/                               what was admitted, to be read again
    routing/    retention/    members/     who subscribes; what is kept; who lives
    channel     messages      options      streams between lives; words; what can be set
    disk                                   what is put on it
    lives       bounds        clock        names of lives; what clients may; time that causality counts in
"""

from gapless.protocol import Judging, ProtocolSpec
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client import GaplessClient
from gapless.protocols.gapless.demands import demand, rewrite
from gapless.protocols.gapless.messages import CLIENT_MESSAGES
from gapless.protocols.gapless.options import GaplessOptions

PROTOCOL = ProtocolSpec(
    name="gapless",
    guarantee="gcd",
    summary="gapless causal delivery; a covered subscription takes one round trip to its pivot at any f",
    options=GaplessOptions,
    broker=GaplessBroker,
    client=GaplessClient,
    takes_many=True,
    paces=True,
    confirms=True,
    whole_cuts=True,
    ends_sessions=True,
    keeps_history=True,
    keeps_disks=True,
    client_messages=CLIENT_MESSAGES,
    judging=Judging(demand, rewrite),
    copes_with=frozenset({"crash", "restart", "cut", "suspicion"}),
)

"""`gapless`, the default: gapless causal delivery while subscribers, publishers and brokers come and go."""

from gapless.protocol import ProtocolSpec
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client import GaplessClient
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
    client_messages=CLIENT_MESSAGES,
    copes_with=frozenset({"crash", "restart", "cut", "suspicion"}),
)

"""LoCaPS, as its paper has it ("LoCaPS: Localized Causal Publish-Subscribe"), with the repairs that make it hold.
"""

from gapless.protocol import ProtocolSpec
from gapless.protocols.locaps.broker import LocapsBroker
from gapless.protocols.locaps.client import LocapsClient
from gapless.protocols.locaps.options import LocapsOptions

PROTOCOL = ProtocolSpec(
    name="locaps",
    guarantee="gcd",
    summary="LoCaPS: a covered subscription takes a round trip to the f-th broker behind its pivot; no broker faults",
    options=LocapsOptions,
    broker=LocapsBroker,
    client=LocapsClient,
)

"""Epidemic."""

from gapless.protocol import ProtocolSpec
from gapless.protocols.epidemic.broker import EpidemicBroker
from gapless.protocols.epidemic.client import EpidemicClient
from gapless.protocols.epidemic.options import EpidemicOptions

PROTOCOL = ProtocolSpec(
    name="epidemic",
    guarantee="best-effort",
    summary="what lossy links swallow is recovered by gossip: push, pull towards subscribers, publishers, or both",
    options=EpidemicOptions,
    broker=EpidemicBroker,
    client=EpidemicClient,
    copes_with=frozenset({"crash", "restart", "cut", "suspicion", "loss", "duplication", "relink"}),
)

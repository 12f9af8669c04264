"""Delta."""

from gapless.protocol import ProtocolSpec
from gapless.protocols.delta.broker import DeltaBroker
from gapless.protocols.delta.client import DeltaClient
from gapless.protocols.delta.messages import (
    Acknowledge,
    Attach,
    ClientOffers,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Detach,
)
from gapless.protocols.delta.options import DeltaOptions

PROTOCOL = ProtocolSpec(
    name="delta",
    guarantee="gfd",
    summary="δ-fault-tolerant: bypasses up to δ failed neighbours; a subscription waits for every broker",
    options=DeltaOptions,
    broker=DeltaBroker,
    client=DeltaClient,
    confirms=True,
    client_messages=(Attach, Detach, ClientSubscribe, ClientUnsubscribe, ClientOffers, ClientPublish, Acknowledge),
    copes_with=frozenset({"crash", "restart"}),
)

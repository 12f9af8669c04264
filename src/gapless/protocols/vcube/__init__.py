"""VCube-PS."""

from gapless.protocol import ClientPlace, ProtocolSpec
from gapless.protocols.vcube.broker import VcubeBroker
from gapless.protocols.vcube.client import TopicClient
from gapless.protocols.vcube.hypercube import refusal
from gapless.protocols.vcube.messages import ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe
from gapless.protocols.vcube.options import VcubeOptions


def _client(place: ClientPlace, options: VcubeOptions) -> TopicClient:
    return TopicClient(place, options.client_window)


PROTOCOL = ProtocolSpec(
    name="vcube",
    guarantee="topic-causal",
    summary="VCube-PS: a tree of its own for each publisher, over a hypercube; topics only; no broker faults",
    options=VcubeOptions,
    broker=VcubeBroker,
    client=_client,
    client_messages=(ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe),
    confirms=True,
    topics_only=True,
    refuses=refusal,
)

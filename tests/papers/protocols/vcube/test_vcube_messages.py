"""Messages between real brokers: encoding, decoding and validation."""

import pytest

from gapless.events import Event
from gapless.registry import find_protocol
from gapless.runtime.codec import Codec, message_types
from gapless_papers.protocols.srpt import messages as srpt
from gapless_papers.protocols.topics.hypercube import BROKERS_MAX
from gapless_papers.protocols.vcube.causal_order import stamp_of
from gapless_papers.protocols.vcube.messages import (
    Ack,
    Answer,
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Pub,
    Ready,
    Refused,
    Sub,
    Taken,
    Uns,
)

EVENT = Event("ann", 3, {"topic": "news", "x": 1.5}, b"\x00\xff")
FROM_CLIENTS = [
    ClientSubscribe(1, "news"), ClientAdvertise(2, "news"), ClientEnd(1, "news"), ClientPublish("news", EVENT),
]  # fmt: skip
TO_CLIENTS = [Ready(1, {"bob": 4}), Refused(2, "no"), Delivery(EVENT, (1, 3)), Taken(3)]
LARGEST = stamp_of(BROKERS_MAX - 1, 2**40)
VCUBE = [
    Sub(1, "news", 5), Uns(1, "news", 6, bytes(range(64))), Pub(1, "news", 7, EVENT, frozenset({9, LARGEST}), b"\x05"),
    Ack(1, "news", 7), Ack(1, "news", 5, Answer(((2, 3, True), (4, 5, False)), {2: LARGEST}, {"bob": 3})),
]  # fmt: skip
SRPT = [srpt.Join("news"), srpt.Joined("news"), srpt.Leave("news"), srpt.ToRoot("news", EVENT), srpt.Pub("news", EVENT)]


@pytest.mark.parametrize(("protocol", "own"), [("vcube", VCUBE), ("srpt", SRPT)])
def test_every_message_travels(protocol: str, own: list[object]) -> None:
    spec = find_protocol(protocol)
    answers = TO_CLIENTS if protocol == "vcube" else [TO_CLIENTS[0], TO_CLIENTS[2]]
    said = [*own, *FROM_CLIENTS, *answers]
    assert {type(message) for message in said} == set(message_types(spec))
    codec = Codec(spec, 1 << 20)
    assert codec.decode(memoryview(codec.frames(said)[1]), is_client=False) == said
    assert codec.decode(memoryview(codec.frames(FROM_CLIENTS)[1]), is_client=True) == FROM_CLIENTS

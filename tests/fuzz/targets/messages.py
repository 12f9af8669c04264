"""Batches of messages from brokers and clients: an accepted batch can be forwarded unchanged."""

from __future__ import annotations

from random import Random

from gapless.errors import WireError
from gapless.registry import find_protocol
from gapless.runtime.codec import Codec, message_types
from gapless.runtime.wire import HEADER
from tests.fuzz.changes import change_packed
from tests.fuzz.shapes import Shapes, pack
from tests.fuzz.target import Target, Unexpected

FRAME_MAX = 1 << 24
EVENT_MAX = 4_096


class _Messages(Target):
    is_client: bool

    def __init__(self) -> None:
        spec = find_protocol("gapless")
        self._codec = Codec(spec, FRAME_MAX, EVENT_MAX)
        self._shapes = Shapes(*(spec.client_messages if self.is_client else message_types(spec)))

    def draw(self, dice: Random) -> bytes:
        return pack([self._shapes.draw(dice) for _ in range(dice.choice((0, 1, 1, 2, 5)))])

    def change(self, data: bytes, dice: Random) -> bytes:
        return change_packed(data, dice)

    def run(self, data: bytes) -> str:
        try:
            messages = self._codec.decode(memoryview(data), is_client=self.is_client)
        except WireError:
            return "refused"
        sent = b"".join(self._codec.frames(messages))[HEADER.size :]
        again = self._codec.decode(memoryview(sent), is_client=self.is_client)
        if b"".join(self._codec.frames(again))[HEADER.size :] != sent:
            raise Unexpected("what was decoded is not what was encoded")
        return "taken"


class ClientMessages(_Messages):
    """The messages from clients to brokers."""

    name = "client-messages"
    about = "batches that clients send"
    is_client = True


class BrokerMessages(_Messages):
    """The messages between brokers, and from brokers to clients."""

    name = "broker-messages"
    about = "batches that brokers send"
    is_client = False

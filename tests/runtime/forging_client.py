"""A malicious client of a network with users."""

from typing import Any

import msgspec

from gapless.protocols.gapless.client_messages import Attach, Ready
from gapless.registry import find_protocol
from gapless.runtime import wire
from gapless.runtime.codec import Codec

from .secure import Secure
from .test_authentication import Raw

__all__ = ["ForgingClient"]


class ForgingClient(Raw):
    """A client that deviates from the protocol as a test requires."""

    name = ""
    _codec = Codec(find_protocol("gapless"), 1 << 24)

    @classmethod
    async def greeted(cls, network: Secure, user: str, name: str, broker: str = "b0") -> "ForgingClient":
        forger = await cls.dial(network, network.certified(user), broker)
        assert isinstance(forger, ForgingClient)
        forger.name = name
        assert isinstance(await forger.greet(name), wire.Welcome)
        return forger

    @classmethod
    async def attach(cls, network: Secure, user: str, broker: str = "b0", name: str = "") -> "ForgingClient":
        """Connect under a name of the user, and open a session."""
        forger = await cls.greeted(network, user, name or f"{user}:liar", broker)
        forger.say(Attach(1, None, 0, 0, 0, 0, 0))
        await forger.next_message(Ready)
        return forger

    def say(self, *messages: Any) -> None:
        self.writer.write(b"".join(self._codec.frames(messages)))

    async def next_message(self, kind: type[Any]) -> Any:
        """Return the next message of this kind, and send heartbeats meanwhile."""
        while True:
            what, body = await self._next()
            if what == wire.DENIED:
                continue
            assert what == wire.MESSAGES, wire.decode_refusal(body) if what == wire.REFUSAL else what
            for message in self._codec.decode(body, is_client=False):
                if isinstance(message, kind):
                    return message

    async def denial(self) -> str:
        while True:
            what, body = await self._next()
            if what == wire.DENIED:
                reason: str = msgspec.msgpack.decode(body)[1]
                return reason
            assert what == wire.MESSAGES, what

    async def refusal(self) -> wire.Refusal:
        while True:
            what, body = await self.read_frame()
            if what == wire.REFUSAL:
                return wire.decode_refusal(body)

    async def _next(self) -> tuple[int, memoryview]:
        self.writer.write(wire.frame(wire.PING))
        return await self.read_frame()

"""A client of a network with users that follows the protocol as far as it likes."""

from typing import Any

import msgspec

from gapless.protocols.gapless.client_messages import Attach, Ready
from gapless.registry import find_protocol
from gapless.runtime import wire
from gapless.runtime.codec import Codec

from .secure import Secure
from .test_authentication import Raw

__all__ = ["Liar"]


class Liar(Raw):
    """A client that follows the protocol as far as it likes."""

    name = ""
    _codec = Codec(find_protocol("gapless"), 1 << 24)

    @classmethod
    async def greeted(cls, network: Secure, user: str, name: str, broker: str = "b0") -> "Liar":
        """Come in under a name of the user's."""
        liar = await cls.dial(network, network.certified(user), broker)
        assert isinstance(liar, Liar)
        liar.name = name
        assert isinstance(await liar.greet(name), wire.Welcome)
        return liar

    @classmethod
    async def attach(cls, network: Secure, user: str, broker: str = "b0", name: str = "") -> "Liar":
        """Come in under a name of the user's, and begin a session."""
        liar = await cls.greeted(network, user, name or f"{user}:liar", broker)
        liar.say(Attach(1, None, 0, 0, 0, 0, 0))
        await liar.hears(Ready)
        return liar

    def say(self, *messages: Any) -> None:
        """A batch."""
        self.writer.write(b"".join(self._codec.frames(messages)))

    async def hears(self, kind: type[Any]) -> Any:
        """The next message of this kind. It says meanwhile that it lives."""
        while True:
            what, body = await self._next()
            if what == wire.DENIED:
                continue
            assert what == wire.MESSAGES, wire.decode_refusal(body) if what == wire.REFUSAL else what
            for message in self._codec.decode(body, is_client=False):
                if isinstance(message, kind):
                    return message

    async def denial(self) -> str:
        """The reason of the next denial."""
        while True:
            what, body = await self._next()
            if what == wire.DENIED:
                reason: str = msgspec.msgpack.decode(body)[1]
                return reason
            assert what == wire.MESSAGES, what

    async def refusal(self) -> wire.Refusal:
        """Why it has to go."""
        while True:
            what, body = await self.hear()
            if what == wire.REFUSAL:
                return wire.decode_refusal(body)

    async def _next(self) -> tuple[int, memoryview]:
        self.writer.write(wire.frame(wire.PING))
        return await self.hear()

"""A message that cannot be encoded ends the client, with an error that says so.

Arguments are checked before they are handed over, so this should not happen. If it does, the message would come up
again with every new connection, and calls would wait for an answer to what never leaves.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gapless.errors import ClosedError, GaplessError, WireError
from gapless.protocol import ProtocolSpec
from gapless.runtime.codec import SMALL, Codec

__all__ = ["GuardedCodec"]


class GuardedCodec(Codec):
    """A codec that tells the client when something cannot be sent."""

    def __init__(self, spec: ProtocolSpec, frame_max: int, fail: Callable[[GaplessError], None]) -> None:
        super().__init__(spec, frame_max)
        self._split_at = SMALL  # a broker counts what is in larger ones
        self._carrying = set()  # what a client says goes to one broker: no bytes of it are kept for others
        self._fail = fail

    def frames(self, messages: Sequence[Any]) -> list[bytes]:
        """The messages as frames."""
        try:
            return super().frames(messages)
        except Exception as error:
            reason = str(error) if isinstance(error, WireError) else repr(error)
            self._fail(ClosedError(f"the client failed, because something cannot be sent: {reason}"))
            raise WireError(reason) from error

"""Ends the client with a clear error if a message cannot be encoded.

Arguments are checked before they are passed on, so this should not happen. If it does, the message would fail again on
every new connection, and calls would wait for an answer to a message that is never sent.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gapless.errors import ClosedError, GaplessError, WireError
from gapless.protocol import ProtocolSpec
from gapless.runtime.codec import SMALL, Codec

__all__ = ["GuardedCodec"]


class GuardedCodec(Codec):
    """A codec that notifies the client if a message cannot be sent."""

    def __init__(self, spec: ProtocolSpec, frame_max: int, fail: Callable[[GaplessError], None]) -> None:
        super().__init__(spec, frame_max)
        self._split_at = SMALL  # a broker limits the contents of larger ones
        self._carrying = frozenset()  # a client's message goes to one broker: its bytes are not cached for others
        self._fail = fail

    def frames(self, messages: Sequence[Any]) -> list[bytes]:
        """Return the messages as frames."""
        try:
            return super().frames(messages)
        except Exception as error:
            reason = str(error) if isinstance(error, WireError) else repr(error)
            self._fail(ClosedError(f"the client failed, because a message cannot be encoded: {reason}"))
            raise WireError(reason) from error

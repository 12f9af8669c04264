"""Bytes in, frames out: the lowest layer, on which everything else is a callback.

Bytes are read straight into one buffer, which all connections of a thread share, and frames are handed up as views into
it: they are valid until the call returns, and the decoder copies them. So a connection that is silent has no buffer.
What cannot be handed up yet, half a frame, or what there is no time for, is kept by the connection. A frame larger than
allowed is refused as soon as its header is there, before any room is made for it.

Writing is `write` of whole frames. The transport says when too much waits (`is_congested`) and when it has drained.

A transport may be closed without a word: the event loop does that if dialling is cancelled just after the connection
was made. The next use of the transport fails, and then the connection is over as if the loop had told its end.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, cast

from gapless.runtime.kernel import has_unread, was_acknowledged_within
from gapless.runtime.refused_connections import RefusedConnections

__all__ = ["FrameStream"]

READ_SIZE = 256 * 1024
"""As much as one read may bring: some thousand events, so that a busy connection pays little for each."""
KEPT_MAX = READ_SIZE // 2
"""A connection that has kept more reads into a buffer of its own: what is kept is not copied at every read."""

_LENGTH = Struct(">I")
_NOTHING = memoryview(b"")


class _Common(threading.local):
    """Where everything is read: between a read and the end of its callback nobody else reads."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_SIZE))


_common = _Common()


class FrameStream(asyncio.BufferedProtocol):
    """One connection as a stream of frames. Subclasses say what becomes of them."""

    def __init__(self, frame_max: int, write_max: int) -> None:
        self._frame_max = frame_max
        self._write_max = write_max
        self._view = _NOTHING
        """Where lies what has come and was not handed up: what is common while a read is looked at, else our own."""
        self._start = 0
        self._end = 0
        self._transport: asyncio.Transport | None = None
        self._is_tls = False
        self.is_congested = False
        self.bytes_in = 0
        self.bytes_out = 0

    # ---- for subclasses -----------------------------------------------------------------------------------

    def opened(self) -> None:
        """The connection is there."""

    def may_go_on(self) -> bool:
        """Whether what came is looked at now. If not, reading is paused, and `go_on` is called later."""
        return True

    def frame_received(self, kind: int, body: memoryview) -> None:
        """A whole frame; the body is valid until this returns."""

    def finish_frame(self) -> None:
        """Go on with what is left of the last frame."""

    @property
    def is_unfinished(self) -> bool:
        """Whether something is left of the last frame; then `go_on` is called later."""
        return False

    def frame_refused(self, length: int) -> None:
        """The peer wants to send a frame that is too large, or no frame at all. Nothing more is read."""

    def drained(self) -> None:
        """What was too much to write has been sent."""

    def closed(self, error: Exception | None) -> None:
        """The connection is over."""

    # ---- writing ------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether there is something to write to."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def peer_address(self) -> str:
        """Where the other end is, for logs."""
        found = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{found[0]}:{found[1]}" if found else "nowhere"

    @property
    def peer_host(self) -> str:
        """The address of the other end without its port, to count connections by."""
        return self.peer_address.rpartition(":")[0]

    @property
    def has_unread(self) -> bool:
        """Whether something has arrived that was not read yet."""
        return has_unread(self._transport)

    def was_acknowledged_within(self, milliseconds: float) -> bool:
        """Whether the other end's kernel acknowledged something so recently."""
        return was_acknowledged_within(self._transport, milliseconds)

    @property
    def peer_certificate(self) -> dict[str, Any]:
        """The certificate of the other end, if it showed one; it was checked in the handshake."""
        found = None if self._transport is None else self._transport.get_extra_info("peercert")
        return found or {}

    def write(self, pieces: Sequence[bytes]) -> None:
        """Send whole frames, in order, after all that was written before."""
        if self._transport is not None:
            self.bytes_out += sum(map(len, pieces))
            try:
                if self._is_tls:
                    self._transport.write(b"".join(pieces))  # each piece would become a record of its own
                else:
                    self._transport.writelines(pieces)
            except RuntimeError:
                self.lose()

    def unsent(self) -> int:
        """How many bytes were written but not sent."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def close(self, last: bytes = b"") -> None:
        """End the connection after what was written has been sent, and this."""
        if self._transport is not None and not self._transport.is_closing():
            try:
                if last:
                    self._transport.write(last)
                self._transport.close()
            except RuntimeError:
                self.lose()

    def dismiss(self, last: bytes, refused_connections: RefusedConnections) -> None:
        """It is over for us at once; the other end is given the time to read what was written, and this."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            with suppress(RuntimeError):
                transport.write(last)
            self._transport = None
            refused_connections.begin(transport)
            asyncio.get_running_loop().call_soon(self.closed, None)

    def lose(self) -> None:
        """The transport is gone, and has not said so, or is of no use any more."""
        if self._transport is not None:
            self.abort()
            self._transport = None
            asyncio.get_running_loop().call_soon(self.closed, None)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            with suppress(RuntimeError):
                self._transport.abort()

    def pause_reading(self) -> None:
        """Let what the peer sends wait at its end."""
        self._set_reading(False)

    def resume_reading(self) -> None:
        """Read on."""
        self._set_reading(True)

    def _set_reading(self, is_reading: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            try:
                if is_reading:
                    self._transport.resume_reading()
                else:
                    self._transport.pause_reading()
            except RuntimeError:
                self.lose()

    # ---- what asyncio calls -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._write_max)
        self._is_tls = transport.get_extra_info("ssl_object") is not None
        self.opened()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.closed(error)

    def pause_writing(self) -> None:
        self.is_congested = True

    def resume_writing(self) -> None:
        self.is_congested = False
        self.drained()

    def eof_received(self) -> bool:
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        left = self._end - self._start
        if left > KEPT_MAX:
            if self._end == len(self._view):
                self._make_room()
            return self._view[self._end :]
        _common.view[:left] = self._view[self._start : self._end]
        return _common.view[left:]

    def buffer_updated(self, count: int) -> None:
        self.bytes_in += count
        left = self._end - self._start
        if left > KEPT_MAX:
            self._end += count
        else:
            self._view, self._start, self._end = _common.view, 0, left + count
        try:
            if self.may_go_on():
                self.go_on()
        finally:
            if self._view is _common.view:
                self._keep()

    def go_on(self) -> None:
        """Hand up the frames that are there, as long as there is time."""
        if self.is_unfinished:
            self.finish_frame()
            if self.is_unfinished or not self.is_open:
                return
        start, end, view = self._start, self._end, self._view
        while end - start >= 4:
            length = _LENGTH.unpack_from(view, start)[0]
            if not 1 <= length <= self._frame_max:
                self.frame_refused(length)
                return
            after = start + 4 + length
            if after > end:
                break
            self.frame_received(view[start + 4], view[start + 5 : after])
            if self._transport is None or self._transport.is_closing():
                return
            start = after
            if self.is_unfinished or (start < end and not self.may_go_on()):
                break
        if start < end:
            self._start = start
        else:
            self._view, self._start, self._end = _NOTHING, 0, 0

    def _keep(self) -> None:
        """Others read now: take away what is left."""
        rest = bytes(self._view[self._start : self._end])
        self._view, self._start, self._end = memoryview(rest), 0, len(rest)
        if len(rest) > KEPT_MAX:
            self._make_room()

    def _make_room(self) -> None:
        """Put what is left into a buffer of our own, at its front, with as much room behind it.

        It grows with what arrives and not with what is announced, so an empty promise costs nothing.
        """
        left = self._end - self._start
        buffer = bytearray(2 * left)
        buffer[:left] = self._view[self._start : self._end]
        self._view, self._start, self._end = memoryview(buffer), 0, left

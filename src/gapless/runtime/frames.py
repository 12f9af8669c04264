"""Splits a byte stream into frames: the lowest layer of a connection.

Bytes are read into one buffer that all connections of a thread share. Frames are passed on as views
into it, which are valid until the call returns; the decoder copies. So an idle connection has no
buffer. The connection keeps what cannot be passed on yet: an incomplete frame, or frames for which
there is no time. A frame larger than allowed is refused when its header arrives, before memory is
allocated for it.

`write` sends whole frames. The transport reports when its buffer is too full (`is_congested`) and
when it has drained.

An event loop closes a transport without notice if dialling is cancelled just after the connection
was made. The next use of the transport fails, and the connection then ends as usual.
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
"""The maximum size of one read in bytes: about a thousand events, so that the cost per event is small."""
KEPT_MAX = READ_SIZE // 2
"""The number of kept bytes above which a connection reads into its own buffer, so that they are not copied at every
read."""

_LENGTH = Struct(">I")
_NOTHING = memoryview(b"")


class _Common(threading.local):
    """The read buffer that connections share. No other connection reads between a read and the end of its callback."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_SIZE))


_common = _Common()


class FrameStream(asyncio.BufferedProtocol):
    """One connection as a stream of frames. Subclasses handle the frames."""

    def __init__(self, frame_max: int, write_max: int) -> None:
        self._frame_max = frame_max
        self._write_max = write_max
        self._view = _NOTHING
        """The bytes that have arrived and are not handled yet: in the shared buffer during a read, otherwise in the
        connection's own."""
        self._start = 0
        self._end = 0
        self._transport: asyncio.Transport | None = None
        self._is_tls = False
        self.is_congested = False
        self.bytes_in = 0
        self.bytes_out = 0

    # ---- overridden by subclasses ---------------------------------------------------------------------------

    def opened(self) -> None:
        """Called when the connection is open."""

    def may_process(self) -> bool:
        """Return whether to handle input now. If not, reading is paused until `process_frames` is called."""
        return True

    def frame_received(self, kind: int, body: memoryview) -> None:
        """Handle a whole frame. `body` is valid until this returns."""

    def finish_frame(self) -> None:
        """Continue with the unprocessed rest of the last frame."""

    @property
    def is_unfinished(self) -> bool:
        """Return whether a part of the last frame is unprocessed, in which case `process_frames` is called later."""
        return False

    def frame_refused(self, length: int) -> None:
        """Handle a frame that is too large, or bytes that are not a frame. Reading has stopped."""

    def drained(self) -> None:
        """Called when the write buffer has drained."""

    def closed(self, error: Exception | None) -> None:
        """Called when the connection has ended, with the error if there was one."""

    # ---- writing ------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Return whether data can be written to the connection."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def peer_address(self) -> str:
        """Return the address of the peer, for logs."""
        found = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{found[0]}:{found[1]}" if found else "nowhere"

    @property
    def peer_host(self) -> str:
        """Return the address of the peer without its port, to count connections by host."""
        return self.peer_address.rpartition(":")[0]

    @property
    def has_unread(self) -> bool:
        """Return whether the kernel has input for this connection that was not read yet."""
        return has_unread(self._transport)

    def was_acknowledged_within(self, milliseconds: float) -> bool:
        """Return whether the peer's kernel acknowledged data within this time."""
        return was_acknowledged_within(self._transport, milliseconds)

    @property
    def peer_certificate(self) -> dict[str, Any]:
        """Return the verified certificate of the peer, or an empty dictionary."""
        found = None if self._transport is None else self._transport.get_extra_info("peercert")
        return found or {}

    def write(self, pieces: Sequence[bytes]) -> None:
        """Send whole frames, in order."""
        if self._transport is not None:
            self.bytes_out += sum(map(len, pieces))
            try:
                if self._is_tls:
                    self._transport.write(b"".join(pieces))  # otherwise each part would become a TLS record
                else:
                    self._transport.writelines(pieces)
            except RuntimeError:
                self.lose()

    def unsent(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def close(self, last: bytes = b"") -> None:
        """Close the connection after everything written, and `last`, has been sent."""
        if self._transport is not None and not self._transport.is_closing():
            try:
                if last:
                    self._transport.write(last)
                self._transport.close()
            except RuntimeError:
                self.lose()

    def dismiss(self, last: bytes, refused_connections: RefusedConnections) -> None:
        """Detach from the connection at once. The peer has time to read everything written, and `last`."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            with suppress(RuntimeError):
                transport.write(last)
            self._transport = None
            refused_connections.begin(transport)
            asyncio.get_running_loop().call_soon(self.closed, None)

    def lose(self) -> None:
        """Handle a transport that failed or disappeared without notice."""
        if self._transport is not None:
            self.abort()
            self._transport = None
            asyncio.get_running_loop().call_soon(self.closed, None)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            with suppress(RuntimeError):
                self._transport.abort()

    def pause_reading(self) -> None:
        """Stop reading, which applies back-pressure to the peer."""
        self._set_reading(False)

    def resume_reading(self) -> None:
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

    # ---- called by asyncio ----------------------------------------------------------------------------------

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
            if self.may_process():
                self.process_frames()
        finally:
            if self._view is _common.view:
                self._keep()

    def process_frames(self) -> None:
        """Handle the frames that have arrived, as long as there is time in this turn."""
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
            if self.is_unfinished or (start < end and not self.may_process()):
                break
        if start < end:
            self._start = start
        else:
            self._view, self._start, self._end = _NOTHING, 0, 0

    def _keep(self) -> None:
        """Copy the remaining bytes from the shared buffer to the connection's own."""
        rest = bytes(self._view[self._start : self._end])
        self._view, self._start, self._end = memoryview(rest), 0, len(rest)
        if len(rest) > KEPT_MAX:
            self._make_room()

    def _make_room(self) -> None:
        """Move the remaining bytes to the front of the connection's own buffer, and resize the buffer to twice their
        length.

        The buffer grows with the bytes that arrive and not with the announced length, so a false announcement costs
        nothing.
        """
        left = self._end - self._start
        buffer = bytearray(2 * left)
        buffer[:left] = self._view[self._start : self._end]
        self._view, self._start, self._end = memoryview(buffer), 0, left

"""A link to one peer of a node, and the connection behind it from greeting to end.

The side that dialled sends `Hello` and waits; the side that listened answers `Welcome` or
`Refusal`. From then on both are equal and exchange batches of messages, pings and goodbyes. Any
other input, and input that is late or too large, ends only this connection, with a `Refusal` that
gives the reason.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

from gapless.errors import WireError
from gapless.runtime.audit_log import Actor
from gapless.runtime.frames import FrameStream
from gapless.runtime.refused_connections import RefusedConnections
from gapless.runtime.settings import RuntimeSettings
from gapless.runtime.silence import Silence
from gapless.runtime.tls import why_dialling_failed
from gapless.runtime.wire import (
    ASK,
    BYE,
    DELETE,
    DENIED,
    END,
    FORGET,
    HELLO,
    MESSAGES,
    PING,
    PROBE,
    REFUSAL,
    REPORT,
    WELCOME,
    Hello,
    Refusal,
    Welcome,
    decode_denial,
    decode_goodbye,
    decode_hello,
    decode_name,
    decode_pace,
    decode_question,
    decode_refusal,
    decode_welcome,
    frame,
)
from gapless.security.identity import Identity

__all__ = ["Absence", "Connection", "ConnectionListener", "Link"]

Absence: TypeAlias = Literal["", "suspected", "left", "lost"]
"""Why a peer is absent, or an empty string if it is present (see `detector`)."""


TLS_RECORD = 0x1603
"""The first two bytes of a TLS handshake."""

HOLD_MIN_S = 0.001
QUESTIONS = {
    ASK: "see the status of brokers",
    END: "end sessions",
    FORGET: "declare that a broker will not return",
    DELETE: "delete events",
}
"""The queries that a probe can send, each with a description of the required permission."""
LOOK_AGAIN_S = 3_600.0
"""The longest wait for an expiry, after which the clock is read again, because clocks are sometimes set."""

HELLO_MAX = 64 * 1024
"""The largest frame in bytes that a listener reads before it has accepted the greeting: room for the longest name and
token. The limit applies to the length in the header, so a larger frame is refused before it is read."""
WELCOME_MAX = 1024 * 1024
"""The largest frame in bytes that the dialling side reads before it is accepted: room for the addresses of ten thousand
brokers."""


class Link:
    """A peer of this node, with its queue of messages and its connection, if there is one.

    The host appends to the outbox in its hot loop. The outbox is sent before the end of the turn of the event loop, if
    there is a connection.
    """

    __slots__ = (
        "absence",
        "address",
        "connection",
        "dialling",
        "established_us",
        "greeting_connection",
        "is_client",
        "name",
        "outbox",
        "pace",
        "refused_connection",
        "seen_in",
        "seen_out",
        "sent_us",
        "silence",
        "was_up",
    )  # fmt: skip

    def __init__(self, name: str, *, is_client: bool, address: str = "", now: int = 0) -> None:
        self.name = name
        self.is_client = is_client
        self.address = address
        """The address to dial; empty if only the peer can dial."""
        self.outbox: list[Any] = []
        self.connection: Connection | None = None
        self.was_up = False
        """Whether there has ever been a connection. Messages wait for the first connection; while a later one is
        missing, they are dropped."""
        self.established_us = 0
        """When the last connection was established; 0 if there was none."""
        self.absence: Absence = ""
        self.refused_connection = ""
        """The reason that the peer gave in its goodbye."""
        self.pace = 1
        """The factor by which pings are less frequent than usual."""
        self.silence = Silence(now)
        """Measures how long the peer has been silent, and computes the limit."""
        self.sent_us = now
        self.seen_in = 0
        self.seen_out = 0
        self.greeting_connection: Connection | None = None
        """A connection that this node dialled and whose greeting is not answered yet."""
        self.dialling: asyncio.Task[None] | None = None


class ConnectionListener(Protocol):
    """Handles the events of connections. `Links` implements it."""

    loop: asyncio.AbstractEventLoop
    refused_connections: RefusedConnections
    denied: Callable[[str, str], None] | None

    def arrived(self, connection: "Connection") -> None: ...

    def asked(self, connection: "Connection", hello: Hello) -> None: ...

    def welcomed(self, connection: "Connection", welcome: Welcome) -> None: ...

    def permits(self, identity: Identity, right: str) -> bool: ...

    def report(self, about: str = "") -> dict[str, Any]: ...

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]: ...

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]: ...

    def delete_events(self, publisher: str, actor: Actor) -> dict[str, Any]: ...

    def is_readable(self, connection: "Connection") -> bool: ...

    def has_time_for(self, connection: "Connection") -> bool: ...

    def received(self, link: Link, connection: "Connection", body: memoryview) -> None: ...

    def take_in(self, link: Link, connection: "Connection", messages: list[Any]) -> None: ...

    def said_goodbye(self, connection: "Connection", reason: str) -> None: ...

    def drained(self, connection: "Connection") -> None: ...

    def refusing(self, connection: "Connection", code: str, reason: str) -> None: ...

    def ended(self, connection: "Connection") -> None: ...


class Connection(FrameStream):
    """One end of a connection. If this end dialled, `target` is the peer and `greeting` is its first message."""

    def __init__(
        self, links: ConnectionListener, settings: RuntimeSettings, target: Link | None = None, greeting: bytes = b""
    ) -> None:
        super().__init__(HELLO_MAX if target is None else WELCOME_MAX, settings.write_max)
        self._settings = settings
        self._links = links
        self._greeting = greeting
        self.target = target
        self._patience: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._holding: asyncio.TimerHandle | None = None
        self.is_held = False
        """Whether reading is paused because the peer's user exceeded a rate limit."""
        self.link: Link | None = None
        """The link that the connection belongs to, once both sides have sent their greetings."""
        self.boot = 0
        """Identifies the start of the peer's process."""
        self.backlog: list[Any] = []
        """Messages of the last frame that are still to be processed."""
        self.hello: Hello | None = None
        self.identity: Identity | None = None
        """The authenticated identity of the side that dialled."""
        self.is_welcome = False
        """Whether the side that dialled was accepted."""
        self.refusal: Refusal | None = None
        self.greeted: asyncio.Future[None] = links.loop.create_future()
        """A future that is done when the greetings have ended, successfully or not."""

    @property
    def is_dialled(self) -> bool:
        """Return whether this end dialled."""
        return self.target is not None

    # ---- greetings ----------------------------------------------------------------------------------------

    def opened(self) -> None:
        self._patience = self._links.loop.call_later(self._settings.hello_ms / 1000, self._on_handshake_timeout)
        if self.target is None:
            self._links.arrived(self)
        elif self.target.connection is not None:
            self.abort()  # the peer closed it first
        else:
            self.target.greeting_connection = self
            self.write((self._greeting,))

    def _on_handshake_timeout(self) -> None:
        if self.target is not None:
            self.abort()
        elif self.link is None:
            self.refuse("silent", "no greeting arrived in time")

    def _end_greeting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if self.target is not None and self.target.greeting_connection is self:
            self.target.greeting_connection = None
        if not self.greeted.done():
            self.greeted.set_result(None)

    def _greet(self, kind: int, body: memoryview) -> None:
        if kind == REFUSAL:
            self.refusal = decode_refusal(body)
            self.abort()
        elif self.target is not None and kind == WELCOME:
            self._links.welcomed(self, decode_welcome(body))
        elif self.target is None and kind == HELLO and self.hello is None:
            self.hello = decode_hello(body)
            self._links.asked(self, self.hello)
        elif kind in QUESTIONS and self.identity is not None and self.hello is not None and self.hello.role == PROBE:
            self._serve_probe(self.identity, kind, body)
        else:
            raise WireError("a connection begins with a greeting")

    def _serve_probe(self, identity: Identity, kind: int, body: memoryview) -> None:
        right = "status" if kind == ASK else "operate"
        actor = Actor(identity, self.peer_address)
        if not self._links.permits(identity, right):
            may_not = f"{identity.text} may not {QUESTIONS[kind]}"
            self.refuse("denied", f"{may_not}; this requires {right} = true in the users file")
        elif kind == ASK:
            self.write((frame(REPORT, self._links.report(decode_question(body))),))
        elif kind == END:
            self.write((frame(REPORT, self._links.end_client(decode_name(body), actor)),))
        elif kind == FORGET:
            self.write((frame(REPORT, self._links.forget_broker(decode_name(body), actor)),))
        else:
            self.write((frame(REPORT, self._links.delete_events(decode_name(body), actor)),))

    def await_expiry(self, identity: Identity) -> None:
        """End the connection when the credentials of its identity expire."""
        left = identity.expires - time.time()
        if left > 0:
            self._expiry = self._links.loop.call_later(min(left, LOOK_AGAIN_S), self.await_expiry, identity)
        elif self.is_open:
            self.refuse("expired", f"your {identity.proof} has expired; connect again with a new one")

    def establish(self, link: Link) -> None:
        """Attach the connection to its link, after the greetings."""
        self._end_greeting()
        self.link = link
        self._frame_max = self._settings.client_frame_max if link.is_client else self._settings.frame_max

    def hold(self, seconds: float) -> None:
        """Pause reading for this time, because the peer's user has exceeded a rate limit."""
        if seconds < HOLD_MIN_S or not self.is_open:
            return
        if self._holding is not None:
            self._holding.cancel()
        self.is_held = True
        self._holding = self._links.loop.call_later(seconds, self._release)
        self.pause_reading()

    def _release(self) -> None:
        self.is_held = False
        if self.is_open:
            if self._links.is_readable(self):
                self.resume_reading()
            if self.may_process():
                self.process_frames()

    # ---- input --------------------------------------------------------------------------------------------

    def may_process(self) -> bool:
        return self.link is None or (not self.is_held and self._links.has_time_for(self))

    def process_frames(self) -> None:
        if not self.is_held:  # otherwise reading resumes when the pause ends
            super().process_frames()

    def finish_frame(self) -> None:
        backlog, self.backlog = self.backlog, []
        if self.link is not None:
            self._links.take_in(self.link, self, backlog)

    @property
    def is_unfinished(self) -> bool:
        return bool(self.backlog)

    def frame_received(self, kind: int, body: memoryview) -> None:
        if not self.is_open:
            return  # the peer was refused: ignore further input
        try:
            if self.link is None:
                self._greet(kind, body)
            elif kind == MESSAGES:
                self._links.received(self.link, self, body)
            elif kind == PING:
                if not self.link.is_client:
                    self.link.pace = decode_pace(body)
            elif kind == BYE:
                self._links.said_goodbye(self, decode_goodbye(body))
            elif kind == REFUSAL:
                self.refusal = decode_refusal(body)
                self.abort()
            elif kind == DENIED and self._links.denied is not None:
                self._links.denied(*decode_denial(body))
            else:
                raise WireError(f"there is no frame of kind {kind}")
        except WireError as error:
            self.refuse(error.code, str(error))

    def frame_refused(self, length: int) -> None:
        self.refuse(
            "malformed",
            "the peer uses TLS, but this port accepts only clear text; write gapless://, or give the "
            "network certificates"
            if self.hello is None and length >> 16 == TLS_RECORD
            else f"a frame of {length:,} bytes is too large (or not a frame); {self._frame_max:,} is the limit",
        )

    def refuse(self, code: str, reason: str) -> None:
        """End the connection with a reason for the peer."""
        self._links.refusing(self, code, reason)
        self.dismiss(frame(REFUSAL, Refusal(code, reason)), self._links.refused_connections)

    # ---- end ----------------------------------------------------------------------------------------------

    def drained(self) -> None:
        self._links.drained(self)

    def closed(self, error: Exception | None) -> None:
        if self.target is not None and self.refusal is None and isinstance(error, ssl.SSLError):
            self.refusal = Refusal("tls", why_dialling_failed(self.target.address, error))
        self._end_greeting()
        for timer in (self._expiry, self._holding):
            if timer is not None:
                timer.cancel()
        self._links.ended(self)

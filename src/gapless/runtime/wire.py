"""The wire format of a connection. `docs/WIRE.md` describes it for authors of clients in other
languages.

A frame is a length (4 bytes, big-endian, of what follows), a kind (1 byte), and a body in
MessagePack. The first frame in each direction is a greeting: `Hello` from the side that dialled,
`Welcome` or `Refusal` from the side that listened. Then follow batches of the protocol's messages,
pings on an idle connection, and at the end a `Refusal` or a goodbye with the reason.

Greetings are arrays that may grow at the end, so that a peer of another version gets a
comprehensible error.
"""

from struct import Struct
from typing import Annotated, Any

import msgspec

from gapless.errors import WireError
from gapless.printable import name_complaint
from gapless.runtime.settings import RuntimeSettings

__all__ = [
    "ASK", "BROKER", "BYE", "CLIENT", "DELETE", "DENIED", "END", "FORGET", "HEADER", "HELLO", "MESSAGES", "PING",
    "PROBE", "REFUSAL", "REPORT", "UNREADABLE", "VERSION", "WELCOME", "Hello", "Refusal", "Welcome",
    "decode_denial", "decode_goodbye", "decode_hello", "decode_name", "decode_pace", "decode_question",
    "decode_refusal",
    "decode_welcome", "frame", "greeting",
]  # fmt: skip

VERSION = 5
MAGIC = "gapless"
TOKEN_MAX = 16_384
PACE_MAX = 1_000
REASON_MAX = 1_000

HEADER = Struct(">IB")

HELLO, WELCOME, REFUSAL, MESSAGES, PING, BYE, ASK, REPORT, END, DENIED, FORGET, DELETE = range(1, 13)
"""The kinds of frames. `ASK` asks a broker for its state, and `REPORT` is the answer. `END` ends a client's session.
`DENIED` refuses a call of a client. `FORGET` declares that a broker will not return. `DELETE` deletes the events of a
publisher from history."""

BROKER, CLIENT, PROBE = "broker", "client", "probe"
"""The roles of the side that dials. A probe asks questions and does not join."""


class _GreetingPrefix(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a greeting, which is the same in every version."""

    magic: str = ""
    version: int = 0


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The greeting of the side that dialled. A probe needs only the `Welcome`."""

    magic: str = ""
    version: int = 0
    role: str = ""
    name: str = ""
    protocol: str = ""
    """The protocol of the network; empty if the client accepts any."""
    network: str = ""
    """The fingerprint of the network's file; empty for a client, which has none."""
    incarnation: int = 0
    boot: int = 0
    """Identifies one start of a process."""
    token: str = ""
    """The token that authenticates a peer without a certificate. It is secret and never shown."""

    def __repr__(self) -> str:
        return f"Hello({self.role!r}, {self.name!r})"


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """The answer of a listener that accepts a peer, with everything that a client needs to know about the network."""

    version: int
    name: str
    protocol: str
    network: str
    """The fingerprint of the network's file."""
    incarnation: int
    boot: int
    is_ready: bool
    """Whether the broker has joined."""
    remembered: int
    """The latest incarnation of the peer that the listener has seen, or -1 if none."""
    network_name: str
    f: int
    brokers: int
    options: dict[str, Any]
    settings: RuntimeSettings
    contacts: list[str]
    """The brokers that a client can use: the listener first, then the others by distance."""
    addresses: dict[str, str]
    trace: str = ""
    """The directory in which clients on the same machine are asked to write their part of the trace."""
    user: str = ""
    """The user of the client, with whose name the client's name must begin. Empty in a network without users."""
    time_s: float = 0.0
    """The time of day at the listener's host, in seconds since 1970; 0 if unknown."""


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """The last message to a peer, with the reason why its connection ends."""

    code: str
    """A code for the reason: version, network, protocol, name, full, not-ready, duplicate, stale, malformed, silent,
    ended, tls, denied, expired, changed or limit."""
    reason: str


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of decoding. `msgspec` raises the last two for text that is not UTF-8 and for unlimited nesting."""

_encode = msgspec.msgpack.Encoder().encode
_beginning = msgspec.msgpack.Decoder(_GreetingPrefix)
_hello = msgspec.msgpack.Decoder(Hello)
_welcome = msgspec.msgpack.Decoder(Welcome)
_refusal = msgspec.msgpack.Decoder(Refusal)
_pace = msgspec.msgpack.Decoder(Annotated[int, msgspec.Meta(ge=1, le=PACE_MAX)])
_name = msgspec.msgpack.Decoder(str)
_denial = msgspec.msgpack.Decoder(tuple[str, str])


def frame(kind: int, body: Any = None) -> bytes:
    """Return one whole frame. The codec creates frames with messages itself, without copying them."""
    content = b"" if body is None else _encode(body)
    return HEADER.pack(len(content) + 1, kind) + content


def greeting(
    role: str,
    name: str,
    *,
    protocol: str = "",
    network: str = "",
    incarnation: int = 0,
    boot: int = 0,
    token: str = "",
) -> bytes:
    """Return the first frame of the side that dials."""
    hello = Hello(MAGIC, VERSION, role, name, protocol, network, incarnation, boot, token)
    # Without a token, the greeting is the same as in earlier versions.
    return frame(HELLO, hello if token else msgspec.structs.astuple(hello)[:-1])


def decode_hello(body: memoryview) -> Hello:
    """Return the decoded greeting. Raise a `WireError` with a message for the sender if it is malformed."""
    try:
        beginning = _beginning.decode(body)
    except UNREADABLE:
        raise WireError("this is not a greeting; a Gapless broker listens here") from None
    if beginning.magic != MAGIC:
        raise WireError("this is not a greeting; a Gapless broker listens here")
    if beginning.version != VERSION:
        message = (
            f"the peer uses version {beginning.version} of the wire format, but this broker uses version {VERSION}"
        )
        raise WireError(message, "version")
    try:
        hello = _hello.decode(body)
    except UNREADABLE as error:
        raise WireError(f"the greeting is malformed: {error}") from None
    if hello.role not in (BROKER, CLIENT, PROBE):
        raise WireError(f"unknown role {hello.role!r}; use broker, client or probe")
    _check_name(hello.name)
    if len(hello.token) > TOKEN_MAX:
        raise WireError(f"a token has at most {TOKEN_MAX} characters")
    return hello


def decode_welcome(body: memoryview) -> Welcome:
    """Return the decoded welcome. Raise a `WireError` if it is malformed."""
    try:
        return _welcome.decode(body)
    except UNREADABLE as error:
        message = f"the listener is not a Gapless broker of version {VERSION}: {error}"
        raise WireError(message, "version") from None


def decode_pace(body: memoryview) -> int:
    """Return the factor by which the broker pings less frequently from now on."""
    try:
        return _pace.decode(body) if body else 1
    except UNREADABLE:
        raise WireError(f"the pace of pings is a number from 1 to {PACE_MAX:,}") from None


def decode_name(body: memoryview) -> str:
    """Return the name of a client or broker in a frame."""
    try:
        name = _name.decode(body)
    except UNREADABLE:
        raise WireError("a client or broker is named by a string") from None
    _check_name(name)
    return name


def decode_question(body: memoryview) -> str:
    """Return the subject of a probe's question; empty for the status report."""
    try:
        return _name.decode(body) if len(body) else ""
    except UNREADABLE:
        raise WireError("a question is a string") from None


def _check_name(name: str) -> None:
    complaint = name_complaint("the name of a client or broker", name)
    if complaint:
        raise WireError(complaint)


def decode_goodbye(body: memoryview) -> str:
    """Return the reason in a broker's goodbye; empty if it was asked to stop."""
    try:
        return _name.decode(body)[:REASON_MAX] if len(body) else ""
    except UNREADABLE:
        raise WireError("a goodbye has a reason as a string, or none") from None


def decode_denial(body: memoryview) -> tuple[str, str]:
    """Return the name of a refused subscription or advertisement, and the reason."""
    try:
        return _denial.decode(body)
    except UNREADABLE:
        raise WireError("a denial is a name and a reason") from None


def decode_refusal(body: memoryview) -> Refusal:
    """Return the reason why the peer ends the connection."""
    try:
        return _refusal.decode(body)
    except UNREADABLE:
        return Refusal("malformed", "the connection was refused with an unreadable reason")

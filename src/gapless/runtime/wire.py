"""What travels on a connection. `docs/WIRE.md` describes it for authors of clients in other languages.

A frame is a length (4 bytes, big-endian, of what follows), a kind (1 byte), and a body in MessagePack. The first frame
each way is a greeting: `Hello` from the side that dialled, `Welcome` or `Refusal` from the side that listened. After
that come batches of the protocol's messages, pings where there is nothing to say, and at the end a `Refusal` or a
goodbye, which tell the other side that silence follows, and why.

Greetings are arrays that may grow at the end, so that another version can be told what is the matter.
"""

from struct import Struct
from typing import Annotated, Any

import msgspec

from gapless.errors import WireError
from gapless.printable import name_complaint
from gapless.runtime.settings import RuntimeSettings

__all__ = [
    "ASK", "BROKER", "BYE", "CLIENT", "DENIED", "END", "FORGET", "HEADER", "HELLO", "MESSAGES", "PING", "PROBE",
    "REFUSAL", "REPORT", "UNREADABLE", "VERSION", "WELCOME", "Hello", "Refusal", "Welcome", "decode_denial",
    "decode_goodbye", "decode_hello", "decode_name", "decode_pace", "decode_refusal", "decode_welcome", "frame",
    "greeting",
]  # fmt: skip

VERSION = 3
MAGIC = "gapless"
TOKEN_MAX = 16_384
PACE_MAX = 1_000
REASON_MAX = 1_000

HEADER = Struct(">IB")

HELLO, WELCOME, REFUSAL, MESSAGES, PING, BYE, ASK, REPORT, END, DENIED, FORGET = range(1, 12)
"""The kinds of frames. `ASK` asks a broker for its state, `REPORT` is the answer; `END` ends a client's session;
`DENIED` tells a client that a call of it is refused; `FORGET` tells a broker that another will not return."""

BROKER, CLIENT, PROBE = "broker", "client", "probe"
"""Who dials. A probe asks, and takes no part."""


class _Beginning(msgspec.Struct, frozen=True, array_like=True):
    """The part of a hello that is the same in every version."""

    magic: str = ""
    version: int = 0


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """Who dialled. A probe only wants to see the `Welcome`."""

    magic: str = ""
    version: int = 0
    role: str = ""
    name: str = ""
    protocol: str = ""
    """Empty if the client takes any."""
    network: str = ""
    """Fingerprint of the network's file; a client, who has none, leaves it empty."""
    incarnation: int = 0
    boot: int = 0
    """Tells one start of a process from another."""
    token: str = ""
    """What proves who dials, if no certificate does. It is secret, and shown nowhere."""

    def __repr__(self) -> str:
        return f"Hello({self.role!r}, {self.name!r})"


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """The listener, and all that a client needs to know of the network."""

    version: int
    name: str
    protocol: str
    network: str
    """Fingerprint of the network's file."""
    incarnation: int
    boot: int
    is_ready: bool
    """Whether the broker takes part yet."""
    remembered: int
    """The last incarnation of who dialled that the listener has met; -1 if none."""
    network_name: str
    f: int
    brokers: int
    options: dict[str, Any]
    settings: RuntimeSettings
    contacts: list[str]
    """Brokers that a client of this one may turn to: itself first, then by distance."""
    addresses: dict[str, str]
    trace: str = ""
    """Where clients on the same machine are asked to write their part of the trace."""
    user: str = ""
    """Whom the broker takes the client for: the client's name has to begin so. Empty where nobody is asked."""
    time_s: float = 0.0
    """The time of day at the listener's host, in seconds since 1970; 0 if it does not say."""


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """The end of a connection, with the reason."""

    code: str
    """One word: version, network, protocol, name, full, not-ready, duplicate, stale, malformed, silent, ended, tls,
    denied, expired, changed, limit."""
    reason: str


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: of the last two, for text that is no UTF-8 and for what nests without end, `msgspec` makes no
error of its own."""

_encode = msgspec.msgpack.Encoder().encode
_beginning = msgspec.msgpack.Decoder(_Beginning)
_hello = msgspec.msgpack.Decoder(Hello)
_welcome = msgspec.msgpack.Decoder(Welcome)
_refusal = msgspec.msgpack.Decoder(Refusal)
_pace = msgspec.msgpack.Decoder(Annotated[int, msgspec.Meta(ge=1, le=PACE_MAX)])
_name = msgspec.msgpack.Decoder(str)
_denial = msgspec.msgpack.Decoder(tuple[str, str])


def frame(kind: int, body: Any = None) -> bytes:
    """One whole frame. Batches of messages are made by the codec, which does not copy them."""
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
    """The first frame of the side that dials."""
    hello = Hello(MAGIC, VERSION, role, name, protocol, network, incarnation, boot, token)
    # Who has nothing to prove says what it always said.
    return frame(HELLO, hello if token else msgspec.structs.astuple(hello)[:-1])


def decode_hello(body: memoryview) -> Hello:
    """The hello, or a `WireError` that can be told to the sender."""
    try:
        beginning = _beginning.decode(body)
    except UNREADABLE:
        raise WireError("this is no greeting; a Gapless broker listens here") from None
    if beginning.magic != MAGIC:
        raise WireError("this is no greeting; a Gapless broker listens here")
    if beginning.version != VERSION:
        told = f"you speak version {beginning.version} of the wire format, but this broker speaks {VERSION}"
        raise WireError(told, "version")
    try:
        hello = _hello.decode(body)
    except UNREADABLE as error:
        raise WireError(f"the greeting is malformed: {error}") from None
    if hello.role not in (BROKER, CLIENT, PROBE):
        raise WireError(f"there is no role {hello.role!r}; it is broker, client or probe")
    _check_name(hello.name)
    if len(hello.token) > TOKEN_MAX:
        raise WireError(f"a token has at most {TOKEN_MAX} characters")
    return hello


def decode_welcome(body: memoryview) -> Welcome:
    """The welcome, or a `WireError`."""
    try:
        return _welcome.decode(body)
    except UNREADABLE as error:
        told = f"whoever listens there is no Gapless broker of version {VERSION}: {error}"
        raise WireError(told, "version") from None


def decode_pace(body: memoryview) -> int:
    """How many times more seldom than usual the broker pings from now on."""
    try:
        return _pace.decode(body) if body else 1
    except UNREADABLE:
        raise WireError(f"the pace of pings is a number from 1 to {PACE_MAX:,}") from None


def decode_name(body: memoryview) -> str:
    """The name of a client, or of a broker."""
    try:
        name = _name.decode(body)
    except UNREADABLE:
        raise WireError("a client or broker is named by a string") from None
    _check_name(name)
    return name


def _check_name(name: str) -> None:
    complaint = name_complaint("the name of a client or broker", name)
    if complaint:
        raise WireError(complaint)


def decode_goodbye(body: memoryview) -> str:
    """Why a broker leaves; empty if it is told to."""
    try:
        return _name.decode(body)[:REASON_MAX] if len(body) else ""
    except UNREADABLE:
        raise WireError("a goodbye has a reason, in words, or none") from None


def decode_denial(body: memoryview) -> tuple[str, str]:
    """The name of a subscription or advertisement that we do not get, and why."""
    try:
        return _denial.decode(body)
    except UNREADABLE:
        raise WireError("a denial is a name and a reason") from None


def decode_refusal(body: memoryview) -> Refusal:
    """Why the peer ends the connection."""
    try:
        return _refusal.decode(body)
    except UNREADABLE:
        return Refusal("malformed", "the connection was refused, in words that cannot be read")

"""Frames, greetings and batches: valid data is decoded, and invalid data raises a clear error."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from gapless.errors import ProtocolError, WireError
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocol import ProtocolSpec
from gapless.protocols.gapless import client_messages
from gapless.protocols.gapless import messages as gapless_messages
from gapless.protocols.gapless.identities import Status
from gapless.protocols.gapless.link_messages import LinkMessage, Publication
from gapless.registry import find_protocol, protocols
from gapless.runtime import frames, wire
from gapless.runtime.codec import Codec, message_types
from gapless.runtime.settings import RuntimeSettings

FRAME_MAX = 1_000_000


class Taken(frames.FrameStream):
    def __init__(self) -> None:
        super().__init__(FRAME_MAX, 1 << 20)
        self._transport = cast(asyncio.Transport, _Open())
        self.taken: list[tuple[int, bytes]] = []
        self.refused: list[int] = []

    def frame_received(self, kind: int, body: memoryview) -> None:
        self.taken.append((kind, bytes(body)))

    def frame_refused(self, length: int) -> None:
        self.refused.append(length)

    def feed(self, data: bytes, step: int) -> None:
        while data:
            room = self.get_buffer(-1)
            size = min(step, len(room), len(data))
            room[:size] = data[:size]
            del room
            self.buffer_updated(size)
            data = data[size:]


class _Open:
    def is_closing(self) -> bool:
        return False


def framed(kind: int, body: bytes) -> bytes:
    return wire.HEADER.pack(len(body) + 1, kind) + body


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 64, 100_000, 10_000_000])
def test_frames_are_complete_however_their_bytes_arrive(step: int) -> None:
    bodies = [b"", b"a", b"bc" * 50, bytes(range(256)) * 3, b"x" * 5] * 3
    if step >= 100_000:
        bodies += [b"y" * 300_000, b"z" * 700_000, b"", b"w" * 262_139, b"v" * 262_138]
    stream = Taken()
    stream.feed(b"".join(framed(kind % 9, body) for kind, body in enumerate(bodies)), step)
    assert stream.taken == [(kind % 9, body) for kind, body in enumerate(bodies)]
    assert not stream.refused
    assert len(stream.get_buffer(-1)) == frames.READ_SIZE, "a large frame leaves no large buffer behind"


@pytest.mark.parametrize("length", [0, FRAME_MAX + 1, 0xFFFFFFFF])
def test_a_frame_too_large_or_empty_is_refused_at_its_header(length: int) -> None:
    stream = Taken()
    stream.feed(framed(4, b"fine") + length.to_bytes(4, "big"), 3)
    assert stream.taken == [(4, b"fine")]
    assert stream.refused == [length]


def test_an_announced_frame_that_does_not_come_costs_nothing() -> None:
    stream = Taken()
    stream.feed((FRAME_MAX - 1).to_bytes(4, "big") + b"half", 100)
    assert len(stream._view) == len(b"half") + 4


def test_streams_of_a_thread_share_one_buffer_and_keep_their_halves_apart() -> None:
    first, second = Taken(), Taken()
    one, two = framed(4, b"one" * 1000), framed(4, b"two" * 80_000)
    for place in range(0, len(two), 999):
        first.feed(one[place : place + 999], 999)
        second.feed(two[place : place + 999], 999)
    assert first.taken == [(4, b"one" * 1000)]
    assert second.taken == [(4, b"two" * 80_000)]
    assert [len(first._view), len(second._view)] == [0, 0], "who has handed up everything keeps nothing"


# ---- greetings --------------------------------------------------------------------------------------------


def body_of(data: bytes) -> memoryview:
    return memoryview(data)[5:]


def test_a_hello_names_the_dialling_side() -> None:
    hello = wire.decode_hello(body_of(wire.greeting("broker", "b3", protocol="gapless", network="n", boot=7)))
    assert (hello.role, hello.name, hello.protocol, hello.network, hello.boot) == ("broker", "b3", "gapless", "n", 7)


@pytest.mark.parametrize(
    ("hello", "complaint"),
    [
        (["gapless", 99, "client", "c", {"another": "shape"}], "version 99"),
        (["other", wire.VERSION, "client", "c"], "not a greeting"),
        ([], "not a greeting"),
        ({"not": "an array"}, "not a greeting"),
        (["gapless", wire.VERSION, "king", "c"], "unknown role 'king'"),
        (["gapless", wire.VERSION, "client", ""], "1 to 200"),
        (["gapless", wire.VERSION, "client", "c" * 201], "1 to 200"),
    ],
)
def test_a_hello_that_is_none_gets_a_sentence(hello: Any, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        wire.decode_hello(memoryview(msgspec.msgpack.encode(hello)))


def test_a_later_version_may_add_to_greetings() -> None:
    longer = msgspec.msgpack.encode(["gapless", wire.VERSION, "client", "c", "", "", 0, 0, "something new"])
    assert wire.decode_hello(memoryview(longer)).name == "c"


# ---- batches ----------------------------------------------------------------------------------------------


def codec(frame_max: int = FRAME_MAX) -> Codec:
    return Codec(find_protocol("gapless"), frame_max)


def bodies(pieces: list[bytes]) -> list[memoryview]:
    assert [len(body) + 1 for body in pieces[1::2]] == [wire.HEADER.unpack(head)[0] for head in pieces[::2]]
    return [memoryview(body) for body in pieces[1::2]]


def test_a_batch_comes_back_as_it_was() -> None:
    event = Event("p", 7, {"name": "x", "price": 2.5, "count": -(2**63), "sold": True}, b"\x00\xff")
    sent = [
        gapless_messages.Frame(0, 0, 1, 0, 0, LinkMessage(0, Publication(EventRun.of([event])))),
        client_messages.Delivery(1, 2, EventRun.of([event]), ["s"]),
        gapless_messages.Ack(1, 2, 3),
    ]
    [body] = bodies(codec().frames(sent))
    assert codec().decode(body, is_client=False) == sent


def test_a_batch_that_would_be_too_large_is_split() -> None:
    sent = [client_messages.ClientPublish(1, EventRun.of([Event("p", seq, {}, b"x" * 1000)])) for seq in range(1, 101)]
    found = bodies(codec(frame_max=10_000).frames(sent))
    assert len(found) > 10
    assert all(len(body) < 10_000 for body in found)
    assert [message for body in found for message in codec().decode(body, is_client=True)] == sent


def test_a_message_that_fits_into_no_frame_is_named() -> None:
    with pytest.raises(WireError, match=r"a ClientPublish of .* does not fit into a frame of 1,000; raise frame_max"):
        codec(frame_max=1_000).frames([client_messages.ClientPublish(1, EventRun.of([Event("p", 1, {}, b"x" * 1000)]))])


@pytest.mark.parametrize(
    "body",
    [
        b"\xc1",
        b"\x91",
        msgspec.msgpack.encode({"a": 1}),
        msgspec.msgpack.encode([["NoSuchMessage", 1]]),
        msgspec.msgpack.encode([["ClientPublish", 1, ["p", 1, [1, {"x": None}, {}, b"\x91\xc4\x00"], 0, []]]]),
        msgspec.msgpack.encode([["ClientPublish", 1, ["p", 1, [1, {}, {"x": b"\x91\x90"}, b"\x91\xc4\x00"], 0, []]]]),
        msgspec.msgpack.encode([["ClientPublish", 1, ["p", 1, [2, {}, {"x": b"\x91\x01"}, b"\x91\xc4\x00"], 0, []]]]),
        msgspec.msgpack.encode([["ClientPublish", 1, ["p", 1, [0, {}, {}, b"\x90"], 0, []]]]),
        msgspec.msgpack.encode([["ClientGot", "one", 1]]),
    ],
)
def test_messages_invalid_in_the_protocol_never_reach_a_node(body: bytes) -> None:
    with pytest.raises(WireError, match="a batch of messages is malformed"):
        codec().decode(memoryview(body), is_client=True)


def test_a_client_cannot_send_as_a_broker() -> None:
    [body] = bodies(codec().frames([gapless_messages.Excluded({"b0": Status(1)})]))
    assert codec().decode(body, is_client=False)
    with pytest.raises(WireError, match="malformed"):
        codec().decode(body, is_client=True)


@pytest.mark.parametrize("name", protocols())
def test_the_messages_of_every_protocol_can_travel(name: str) -> None:
    spec = find_protocol(name)
    assert message_types(spec)
    Codec(spec, FRAME_MAX)


def test_messages_that_cannot_travel_are_named() -> None:
    class Loose(msgspec.Struct, frozen=True):
        number: int

    spec = msgspec.structs.replace(find_protocol("gapless"), messages=(Loose,))
    with pytest.raises(ProtocolError, match="Loose of protocol 'gapless' cannot be encoded"):
        message_types(spec)

    def nowhere(place: Any, options: Any) -> Any:
        raise NotImplementedError

    lost: ProtocolSpec = msgspec.structs.replace(find_protocol("gapless"), broker=nowhere, messages=())
    with pytest.raises(ProtocolError, match="does not list the messages that it sends"):
        message_types(lost)


# ---- settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda: RuntimeSettings(heartbeat_ms=0), "heartbeat_ms must be positive"),
        (lambda: RuntimeSettings(heartbeat_ms=100, suspect_ms=150), "at least twice heartbeat_ms"),
        (lambda: RuntimeSettings(event_max=1000, frame_max=2000), "must hold 2048 events of event_max"),
    ],
)
def test_settings_that_cannot_work_are_refused(change: Callable[[], RuntimeSettings], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        change()

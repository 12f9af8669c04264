"""Whole connections to a real broker: greetings, messages, goodbyes and whatever else, in pieces of any size."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec

from gapless.registry import find_protocol
from gapless.runtime import wire
from gapless.runtime.wire import HEADER
from tests.fuzz.changes import change_packed, changed_bytes
from tests.fuzz.real_broker import RealBroker
from tests.fuzz.shapes import Shapes, pack
from tests.fuzz.target import Target, Unexpected
from tests.fuzz.transport import Transport

FRESH = 500
"""The number of inputs after which a new broker is started: sessions are kept for a minute, and inputs arrive much
faster."""


class Connections(Target):
    """Inputs are arrays of frames, each a kind and a body; or bytes, which are sent unchanged."""

    name = "connections"
    about = "connections to a real broker, from the greeting on"

    def __init__(self) -> None:
        self._shapes = Shapes(*find_protocol("gapless").client_messages)
        self._real = RealBroker()
        self._count = 0

    def draw(self, dice: Random) -> bytes:
        name = dice.choice(("ann", "bob", "cid"))
        role = dice.choice(("client", "client", "client", "probe", "broker"))
        frames: list[list[object]] = [[wire.HELLO, pack(["gapless", wire.VERSION, role, name, "gapless", "", 0, 0])]]
        if role == "client":
            attempt = dice.randrange(1, 1_000)
            begin = [["Attach", attempt, "", [], {}, [], 1, 0], ["Attach", attempt + 1, "b0/0", [], {}, [], 1, 0]]
            frames.append([wire.MESSAGES, pack(begin)])
            calls = [self._call(dice, name, attempt + 1) for _ in range(dice.choice((0, 1, 3, 6)))]
            frames.append([wire.MESSAGES, pack(calls)])
        for _ in range(dice.choice((0, 0, 1, 2))):
            kind = dice.choice((wire.PING, wire.BYE, wire.ASK, wire.END, wire.REFUSAL, wire.WELCOME, wire.REPORT, 77))
            frames.append([kind, dice.choice((b"", b"\xa3ann", pack(["full", "x"])))])
        return pack(frames)

    def _call(self, dice: Random, name: str, attempt: int) -> list[object]:
        if dice.random() < 0.2:
            drawn: list[object] = self._shapes.draw(dice)
            return drawn
        own, number = f"{name}/{dice.choice(('s1', 's2', 'a1'))}", dice.choice((1, 2, 3))
        likely: tuple[list[object], ...] = (
            ["ClientSubscribe", attempt, own, dice.choice(("TRUE", "x = 1", "x LIKE 'a%'"))],
            ["ClientAdvertise", attempt, own, "TRUE", number],
            ["ClientPublish", attempt, [name, number, [1, {"x": number}, {}, pack([b""])], 0, []]],
            ["ClientPublish", attempt, [name, number, [2, {}, {"x": pack([1, "a"])}, pack([b"", b""])], 0, []]],
            ["ClientUnadvertise", attempt, own],
            ["ClientUnsubscribe", attempt, own],
        )
        return dice.choice(likely)

    def change(self, data: bytes, dice: Random) -> bytes:
        try:
            frames = msgspec.msgpack.decode(data, type=list[tuple[int, bytes]])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return change_packed(data, dice)
        if not frames or dice.random() < 0.2:
            return change_packed(data, dice)
        place = dice.randrange(len(frames))
        kind, body = frames[place]
        frames[place] = (kind, change_packed(body, dice))
        return pack(frames)

    def run(self, data: bytes) -> str:
        self._count += 1
        if self._count % FRESH == 0:
            self._real.close()
            self._real = RealBroker()
        transport = Transport()
        self._real.wait(self._connect(_bytes_of(data), transport))
        self._real.check()
        return _outcome(bytes(transport.written))

    async def _connect(self, data: bytes, transport: Transport) -> None:
        connection = self._real.broker.links.new_connection(None, b"")
        connection.connection_made(transport)
        size = 1 + len(data) % 1_000
        while data and connection.is_open:
            room = connection.get_buffer(-1)
            count = min(len(room), len(data), size)
            room[:count] = data[:count]
            data = data[count:]
            connection.buffer_updated(count)
        for _ in range(3):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        await asyncio.sleep(0)

    def close(self) -> None:
        self._real.close()


def _bytes_of(data: bytes) -> bytes:
    try:
        frames = msgspec.msgpack.decode(data, type=list[tuple[int, bytes]])
        return b"".join(HEADER.pack(len(body) + 1, kind % 256) + body for kind, body in frames)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return changed_bytes(data, Random(len(data))) if len(data) % 2 else data


def _outcome(written: bytes) -> str:
    kinds = []
    while written:
        length, kind = HEADER.unpack_from(written)
        if len(written) < 4 + length:
            raise Unexpected("half a frame was written")
        kinds.append(kind)
        written = written[4 + length :]
    names = {wire.WELCOME: "welcome", wire.REFUSAL: "refused", wire.MESSAGES: "answered", wire.REPORT: "report"}
    return names.get(kinds[-1], str(kinds[-1])) if kinds else "silence"

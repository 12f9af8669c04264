"""The first frames in each direction: hello, welcome, refusal, the name of a client, the denial of a call."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from gapless.errors import WireError
from gapless.runtime import wire
from gapless.runtime.settings import RuntimeSettings
from gapless.runtime.wire import Refusal, Welcome
from tests.fuzz.changes import change_packed
from tests.fuzz.target import Target

_DECODERS = (wire.decode_hello, wire.decode_welcome, wire.decode_refusal, wire.decode_name, wire.decode_denial)


class Greetings(Target):
    """The first byte of an input selects the kind of frame."""

    name = "greetings"
    about = "hello, welcome, refusal, denial"

    def __init__(self) -> None:
        welcome = Welcome(
            version=wire.VERSION, name="b0", protocol="gapless", network="f00", incarnation=0, boot=1, is_ready=True,
            remembered=-1, network_name="shop", f=1, brokers=3, options={"window": 7}, settings=RuntimeSettings(),
            contacts=["b0", "b1"], addresses={"b0": "127.0.0.1:7400"},
        )  # fmt: skip
        self._drawn: tuple[list[Any], ...] = (
            [["gapless", wire.VERSION, role, "ann", "gapless", "", 0, 0] for role in ("client", "broker", "probe")],
            [msgspec.msgpack.decode(msgspec.msgpack.encode(welcome))],
            [msgspec.msgpack.decode(msgspec.msgpack.encode(Refusal("full", "try another")))],
            ["ann"],
            [["ann/s1", "user 'ann' may not"]],
        )

    def draw(self, dice: Random) -> bytes:
        kind = dice.randrange(len(_DECODERS))
        return bytes((kind,)) + msgspec.msgpack.encode(dice.choice(self._drawn[kind]))

    def change(self, data: bytes, dice: Random) -> bytes:
        return data[:1] + change_packed(data[1:], dice)

    def run(self, data: bytes) -> str:
        try:
            _DECODERS[data[0] % len(_DECODERS) if data else 0](memoryview(data)[1:])
        except WireError as error:
            return "refused" if str(error) else "refused without a reason"
        return "taken"

"""Two brokers and malicious clients: correct clients continue to work.

The brokers are the real state machines. All messages are encoded and decoded as over TCP.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from gapless.errors import GaplessError
from tests.fuzz.changes import change_packed, changed_tree
from tests.fuzz.shapes import Shapes, pack
from tests.fuzz.target import Target, Unexpected
from tests.protocols.gapless.bench import SPEC, Bench

FORGERS = ("ann", "bob")
BROKERS = ("b0", "b1")
PAUSE_S = 0.25
"""The time after each batch: a wave and some timers."""


class Sessions(Target):
    """Inputs are arrays of [malicious client, broker, batch]."""

    name = "sessions"
    about = "clients that lie to two brokers"

    def __init__(self) -> None:
        self._shapes = Shapes(*SPEC.client_messages)

    def draw(self, dice: Random) -> bytes:
        said: list[list[Any]] = []
        for forger in range(dice.choice((1, 1, 2))):
            broker = dice.randrange(2)
            said.append([forger, broker, [["Attach", 1, None, 0, 0, 0, 0, 0]]])
            for _ in range(dice.choice((1, 2, 5))):
                session = dice.choice((1, 1, 1, 1, 2))
                said.append([forger, broker, [self._call(dice, FORGERS[forger], session)]])
        return pack(said)

    def _call(self, dice: Random, client: str, session: int) -> list[Any]:
        own, number = f"{client}/{dice.choice(('s1', 's2', 'a1'))}", dice.choice((1, 1, 2, 3))
        text = dice.choice(("TRUE", "x = 1", "price < 10", "x LIKE 'a%'", "topic = 'honest'"))
        one = [client, number, [1, {"x": 1}, {}, pack([b""])], 0, []]
        columns = {"x": pack(dice.choice(([1, 2], [1.0, None], ["a"], [[], {}], [1 << 63, 1])))}
        two = [client, number, [2, {"y": 1}, columns, pack([b"", b"x"])], 0, dice.choice(([], [], [number, 9]))]
        home = dice.choice((None, ["b0", 0], ["b1", 0], ["b0", 1_000], ["b1", 1_000]))
        likely: tuple[list[Any], ...] = (
            ["ClientSubscribe", session, own, text],
            ["ClientSubscribe", session, own, text, dice.choice((0, 5, 1 << 53)), dice.choice((0, 9, 1 << 53))],
            ["ClientSubscribe", session, own, text, 0, 0, True, b""],
            ["ClientAdvertise", session, own, text],
            ["ClientPublish", session, one],
            ["ClientPublish", session, two],
            ["ClientUnadvertise", session, own],
            ["ClientUnsubscribe", session, own],
            ["ClientGot", session, number],
            ["Detach", session],
            ["Attach", session + 1, home, dice.choice((0, session)), number, dice.choice((0, 1 << 50)), number, 1],
            ["ClientAttach", session, own, "name", text, False, dice.choice((False, True)), 1_000, 0, "line"],
            ["ClientAck", session, own, "name", number, number, number, {"honest": number}, 0, 0],
            ["ClientMove", session, own, "name", text, dice.choice((-1, 0, 1 << 50))],
            ["ClientList", session, number],
            ["ClientGroupReport", session, own, "name", ["Report", "line", number, [], [number], [[number, 0]], [1]]],
        )
        call: list[Any] = dice.choice(likely)
        return call if dice.random() < 0.8 else self._shapes.draw(dice)

    def change(self, data: bytes, dice: Random) -> bytes:
        try:
            said = msgspec.msgpack.decode(data, type=list[tuple[int, int, Any]])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.draw(dice)
        if not said or dice.random() < 0.05:
            return change_packed(data, dice)
        place, kind = dice.randrange(len(said)), dice.randrange(8)
        forger, broker, batch = said[place]
        if kind == 0:
            said.insert(place, (forger, broker, [self._call(dice, FORGERS[forger % 2], dice.choice((1, 2)))]))
        elif kind == 1:
            del said[place]
        elif kind == 2:
            other = dice.randrange(len(said))
            said[place], said[other] = said[other], said[place]
        elif kind == 3:
            said[place] = (forger, 1 - broker % 2, batch)
        else:
            said[place] = (forger, broker, changed_tree(batch, dice))
        try:
            return pack(said)
        except (TypeError, ValueError, OverflowError):
            return data

    def run(self, data: bytes) -> str:
        try:
            said = msgspec.msgpack.decode(data, type=list[tuple[int, int, msgspec.Raw]])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "nothing said"
        bench = Bench()
        bench.begin_honest()
        is_malformed = False
        for forger, broker, batch in said[:30]:
            try:
                bench.say_bytes(FORGERS[forger % 2], BROKERS[broker % 2], bytes(batch))
            except GaplessError:
                is_malformed = True
                bench.expelled.setdefault(FORGERS[forger % 2], "malformed")
            bench.pass_time(PAUSE_S)
        try:
            bench.check_honest()
        except AssertionError as error:
            raise Unexpected(str(error)) from error
        return "some refused" if is_malformed or bench.expelled else "all taken"

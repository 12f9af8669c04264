"""docs/WIRE.md agrees with the code: bytes, kinds, codes and the network file."""

import re
from pathlib import Path

from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.protocols.gapless.client_messages import ClientGot, ClientPublish
from gapless.registry import find_protocol
from gapless.runtime import wire
from gapless.runtime.codec import Codec
from gapless.runtime.network_file import parse_network
from gapless.runtime.settings import RuntimeSettings
from gapless.runtime.wire import Refusal, Welcome

TEXT = (Path(__file__).parents[2] / "docs" / "WIRE.md").read_text(encoding="utf-8")


def test_the_bytes() -> None:
    blocks = re.findall(r"```hex\n(.*?)```", TEXT, re.DOTALL)
    shown = bytes.fromhex("".join(blocks))
    name = "ann-1f2e3d4c"
    messages = [ClientPublish(2, EventRun.of([Event(name, 1, {"topic": "price"}, b"hi")])), ClientGot(2, 7)]
    run = EventRun(name, 2, EventTable.of([{"topic": "price", "n": n} for n in (1, 2)], [b"hi", b"ho"]))
    codec = Codec(find_protocol("gapless"), 1 << 20)
    assert shown == b"".join([
        wire.frame(wire.PING),
        wire.frame(wire.REFUSAL, Refusal("full", "broker 'b0' has 10000 clients; try another")),
        wire.greeting("client", name, protocol="gapless"),
        *codec.frames(messages),
        *codec.frames([ClientPublish(2, run)]),
    ])  # fmt: skip


def test_the_kinds() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (\w+) \|", TEXT, re.MULTILINE))
    kinds = {"hello": wire.HELLO, "welcome": wire.WELCOME, "refusal": wire.REFUSAL, "messages": wire.MESSAGES,
             "ping": wire.PING, "goodbye": wire.BYE, "ask": wire.ASK, "report": wire.REPORT,
             "end": wire.END, "denial": wire.DENIED, "forget": wire.FORGET, "delete": wire.DELETE}  # fmt: skip
    assert {int(number): kinds[name] for number, name in rows.items()} == {number: number for number in range(1, 13)}
    assert f"version {wire.VERSION} of the wire format" in TEXT


def test_the_greetings() -> None:
    hello = re.search(r'`\["gapless", (.*?)\]`', TEXT)
    assert hello is not None
    assert hello[1].split(", ") == list(wire.Hello.__struct_fields__[1:])
    welcome = re.search(r"\*\*welcome\*\*:\s`\[(.*?)\]`", TEXT, re.DOTALL)
    assert welcome is not None
    assert welcome[1].replace("\n", " ").split(", ") == list(Welcome.__struct_fields__)


def test_the_codes_are_those_in_use() -> None:
    source = Path(wire.__file__).parent
    used = set(
        re.findall(
            r'(?:Refusal|refuse|expel|end_session)\((?:link, |client, )?\s*"([a-z-]+)"',
            "".join(p.read_text() for p in source.glob("*.py")),
        )
    )
    used |= {"version", "malformed"}
    documented = set(re.findall(r"`([a-z-]+)`", TEXT.split("| code | |")[1].split("## Messages")[0]))
    assert used == documented


def test_the_settings_and_the_file() -> None:
    bounds = TEXT.split("## Bounds")[1].split("## The network file")[0]
    for name in re.findall(r"\| `(\w+)`", bounds):
        assert name in RuntimeSettings.__struct_fields__
    assert parse_network(re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[0]).network.name == "shop"

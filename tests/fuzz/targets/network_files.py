"""Network files: an invalid one is rejected with the place of the error, and a valid one survives writing and
reading."""

from __future__ import annotations

from random import Random

from gapless.errors import ConfigError
from gapless.runtime.network_file import parse_network
from tests.fuzz.changes import changed_text
from tests.fuzz.target import Target, Unexpected

_FILE = """\
[network]
name = "shop"
f = 1
edges = [["b0", "b1"], ["b0", "b2"]]

[[brokers]]
name = "b0"
address = "10.0.0.1:7400"

[[brokers]]
name = "b1"
address = "[::1]:7400"
http = "127.0.0.1:8400"

[[brokers]]
name = "b2"
address = "broker2.example:7400"
listen = "0.0.0.0:7400"

[protocol]
name = "gapless"

[protocol.options]
window = 7

[runtime]
suspect_ms = 2000
"""
KNOWN = (
    "[network]", "[[brokers]]", "[brokers]", "[protocol]", "[protocol.options]", "[runtime]", "name", "address", "f",
    "edges", "listen", "http", "delay_ms", "frame_max", '"b0"', '"b1"', '"gapless"', '"delta"', '"nothing"', "=", ".",
    ",", "[", "]", "{", "}", "[]", "{}", "0", "1", "-1", "7", "1e400", "nan", "inf", "true", "99999999999999999999",
    '":"', '"x:99999"', '"x:0"', "1979-05-27", '[["b0","b0"]]', '[["b0"]]', "[[]]", "'''", '""', '"', "#", "\n", " ",
    '"\\ud800"', '"\\u0000"',
)  # fmt: skip


class NetworkFiles(Target):
    """Inputs are texts of network files, in UTF-8."""

    name = "network-files"
    about = "the file of a network"

    def draw(self, dice: Random) -> bytes:
        return _FILE.encode()

    def change(self, data: bytes, dice: Random) -> bytes:
        return changed_text(data.decode(errors="replace"), dice, KNOWN).encode(errors="replace")

    def run(self, data: bytes) -> str:
        try:
            config = parse_network(data.decode(errors="replace"))
        except ConfigError as error:
            return "refused" if str(error) else "refused without a reason"
        if parse_network(config.to_toml()) != config:
            raise Unexpected("the file reads differently when it is written and read again")
        return "taken"

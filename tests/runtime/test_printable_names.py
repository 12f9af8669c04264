"""Names that could forge a log line or control a terminal are refused; other external text is escaped in output."""

import asyncio
import json

import pytest

from gapless.cli import terminal
from gapless.cli.event_lines import event_line
from gapless.cli.terminal import output_console, print_json, print_text
from gapless.client import connect
from gapless.errors import CallError, GaplessError, WireError
from gapless.events import Event
from gapless.printable import name_complaint, printable, printable_json, printable_lines
from gapless.protocols.gapless.durable.claims import check_durable_call
from gapless.protocols.gapless.durable.client_messages import ClientAttach, ClientMove
from gapless.runtime.event_loop import run
from gapless.runtime.wire import FORGET, decode_hello, decode_name, frame, greeting

from .local import local

BAD = "eve\x1b]0;x\x07\x9b31m\u202e\nb0: all is well"
SHOWN = r"eve\x1b]0;x\x07\x9b31m\u202e\nb0: all is well"


def test_a_name_is_accepted_or_refused_by_one_rule() -> None:
    assert name_complaint("a name", "Bestellungen für Jürgen/2") == ""
    assert (
        name_complaint("a name", BAD) == f"a name is '{SHOWN}', but must contain only printable characters on one line"
    )
    assert name_complaint("a name", "") == "a name has 1 to 200 characters, but this one has 0"
    assert name_complaint("a name", "x" * 201) == "a name has 1 to 200 characters, but this one has 201"


def test_a_broker_refuses_such_a_name_wherever_a_client_can_give_one() -> None:
    calls = (
        ClientAttach(session=1, subscription="c/s", name=BAD, filter="TRUE", line="l"),
        ClientMove(session=1, request="c/r", name=BAD, filter="TRUE", position=0),
    )
    for call in calls:
        with pytest.raises(CallError, match="must contain only printable") as caught:
            check_durable_call("c", call)
        assert str(caught.value).isprintable()
    for give in (lambda: decode_hello(memoryview(greeting("client", BAD)[5:])),
                 lambda: decode_name(memoryview(frame(FORGET, BAD)[5:]))):  # fmt: skip
        with pytest.raises(WireError, match="must contain only printable") as raised:
            give()
        assert str(raised.value).isprintable()


def test_a_client_refuses_such_a_name_before_anything_is_sent() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            with pytest.raises(GaplessError, match=r"a client's name is .* must contain only printable"):
                await connect(network.at("b0"), name=BAD)
            async with connect(network.at("b0")) as client:
                with pytest.raises(
                    GaplessError, match=r"the name of a durable subscription is .* must contain only printable"
                ):
                    await asyncio.wait_for(client.durable(BAD, "TRUE"), 30)

    run(main())


def test_foreign_text_is_escaped_in_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(f"{BAD} is over")
    output_console().print(BAD)
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    assert "\\x1b]0;x\\x07\\x9b31m\\u202e" in out


def test_colours_of_our_own_stay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal.output_console().print("[red]wrong[/red] \x1b[0m")
    out = capsys.readouterr().out
    assert "\x1b[31mwrong\x1b[0m" in out
    assert "\\x1b[0m" in out


def test_json_that_is_printed_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": BAD, "who": "Jürgen"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"name": BAD, "who": "Jürgen"}
    assert all(line.isprintable() for line in out.splitlines())
    assert "Jürgen" in out
    line = event_line(Event("ann:1", 1, {"text": BAD, "who": "Jürgen", "del": "\x7f"}, b"")).decode()
    assert line.rstrip("\n").isprintable()
    assert json.loads(line)["attributes"] == {"text": BAD, "who": "Jürgen", "del": "\x7f"}


def test_every_character_survives_or_is_escaped() -> None:
    everything = "".join(map(chr, [*range(0x3000), 0xFEFF, 0x1F600, 0xE0001]))
    assert printable(everything).isprintable()
    assert json.loads(printable_json(json.dumps(everything, ensure_ascii=False))) == everything
    assert printable_lines("one\ntwo\x1b") == "one\ntwo\\x1b"

"""The progress line on a terminal moves while Spark starts, and is erased before anything else is printed."""

import re
import sys
from pathlib import Path

from tests.cli.screen import on_a_terminal, screen_of

TURNED_AWAY = """
import os, time
from gapless.cli.terminal import output_console, spinner

with spinner("starting") as tell:
    kept = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # as a session of Spark does while it starts
    time.sleep(2.5)
    os.dup2(kept, 2)
    tell("judging")
    time.sleep(0.3)
output_console().print("the verdict")
"""


def test_the_progress_line_continues_while_standard_error_is_redirected(tmp_path: Path) -> None:
    ran = on_a_terminal([sys.executable, "-c", TURNED_AWAY])
    assert ran.code == 0
    assert re.search("starting.*0:00:01", ran.written)
    assert "judging" in ran.written
    assert [line for line in ran.lines if line] == ["the verdict"]


def test_output_goes_to_the_right_stream(tmp_path: Path) -> None:
    ran = on_a_terminal([sys.executable, "-c", TURNED_AWAY], out=tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "the verdict\n"
    assert [line for line in ran.lines if line] == []


def test_the_screen_of_these_tests_drops_erased_text() -> None:
    assert screen_of("one\r\ntwo\r\x1b[2Kthree\r\n\x1b[1A\x1b[2Kfour\r\n", 80) == ["one", "four", ""]
    assert screen_of("\x1b[1mabcdef\x1b[0m", 4) == ["abcd", "ef"]

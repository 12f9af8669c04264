"""Events as JSON lines."""

import pytest

from gapless.cli.event_lines import read_line
from gapless.errors import EventError


@pytest.mark.parametrize(
    "line",
    [
        rb'{"a": "\ud800"}',
        rb'{"a": "\ud800 and more"}',
        rb'{"a": "\udc00"}',
        rb'{"a": "\ud800\u0041"}',
        rb'{"\uD83D": 1}',
    ],
)
def test_half_a_character_is_reported_as_such(line: bytes) -> None:
    with pytest.raises(EventError, match="line 3: a string contains half of a surrogate pair"):
        read_line(line, "line 3")


@pytest.mark.parametrize(
    "line", [rb'{"a": "\ud83d\ude00', rb'{"a": "\ud800', b'{"a": "x', b'{"a": "\xff"}', rb'{"a": "\ud8"}', b"[" * 9_999]
)
def test_invalid_json_is_refused(line: bytes) -> None:
    with pytest.raises(EventError, match=r"line 3: (this|the JSON) is n"):
        read_line(line, "line 3")


def test_a_character_of_several_bytes_is_read() -> None:
    assert read_line(rb'{"a": "\ud83d\ude00"}', "line 3") == ({"a": "\U0001f600"}, b"")

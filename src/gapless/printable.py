"""Text from elsewhere, made safe to print: nothing of it begins a line, moves a cursor or reverses what follows."""

import re

__all__ = ["as_value", "printable"]

_PLAIN = re.compile(r"[^\s\"'=\\]+")


def printable(text: str) -> str:
    """The text, with an escape sequence for each character that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def as_value(value: object) -> str:
    """As the value in `key=value`: in quotation marks if a part of it could be taken for another key or value."""
    text = printable(str(value))
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

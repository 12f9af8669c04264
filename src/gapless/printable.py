"""Validates names, and makes text from untrusted sources safe to print.

A name appears in logs, terminals and files. So every place that accepts the name of a client or a subscription, at a
client or at a broker, calls `name_complaint`: a name must not start a line, move a cursor or reverse the text after it.
Other text from outside, such as a broker's report or an event, is escaped where it is printed or logged.
"""

import json
import re

__all__ = ["NAME_MAX", "as_value", "name_complaint", "printable", "printable_json", "printable_lines"]

NAME_MAX = 200
SHOWN_MAX = 100
_PLAIN = re.compile(r"[^\s\"'=\\]+")


def name_complaint(what: str, name: str, most: int = NAME_MAX) -> str:
    """Return why a text cannot be a name, as a sentence about `what`, or an empty string if it can."""
    if not 1 <= len(name) <= most:
        return f"{what} has 1 to {most} characters, but this one has {len(name):,}"
    if not name.isprintable():
        shown = printable(name[:SHOWN_MAX]) + ("…" if len(name) > SHOWN_MAX else "")
        return f"{what} is '{shown}', but must contain only printable characters on one line"
    return ""


def printable(text: str) -> str:
    """Return the text on one line, with an escape sequence for each character that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """Return text of several lines with the same escapes, keeping its line breaks."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """Return an equivalent JSON document that can be printed."""
    return text if text.isprintable() else "".join(map(_in_json, text))


def _in_json(character: str) -> str:
    if character == "\n" or character.isprintable():
        return character
    return json.dumps(character)[1:-1]


def as_value(value: object) -> str:
    """Return the text as the value in `key=value`, in quotation marks if it could be misread."""
    text = printable(str(value))
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

"""Names that are accepted, and text from elsewhere that is made safe to print.

A name reaches logs, terminals and files. So every place that accepts one, of a client or of a subscription, at a
client or at a broker, asks `name_complaint`: nothing in a name begins a line, moves a cursor or reverses what follows.
Whatever else comes from outside, such as what a broker reports or an event holds, is escaped where it is printed or
logged.
"""

import json
import re

__all__ = ["NAME_MAX", "as_value", "name_complaint", "printable", "printable_json", "printable_lines"]

NAME_MAX = 200
SHOWN_MAX = 100
_PLAIN = re.compile(r"[^\s\"'=\\]+")


def name_complaint(what: str, name: str, most: int = NAME_MAX) -> str:
    """Why this cannot be a name, as a sentence about `what`; nothing if it can."""
    if not 1 <= len(name) <= most:
        return f"{what} has 1 to {most} characters, but this one has {len(name):,}"
    if not name.isprintable():
        shown = printable(name[:SHOWN_MAX]) + ("…" if len(name) > SHOWN_MAX else "")
        return f"{what} is '{shown}', but only what can be printed on a line may be in it"
    return ""


def printable(text: str) -> str:
    """The text on one line, with an escape sequence for each character that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines, which stay lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """A JSON document that can be printed and means the same."""
    return text if text.isprintable() else "".join(map(_in_json, text))


def _in_json(character: str) -> str:
    if character == "\n" or character.isprintable():
        return character
    return json.dumps(character)[1:-1]


def as_value(value: object) -> str:
    """As the value in `key=value`: in quotation marks if a part of it could be taken for another key or value."""
    text = printable(str(value))
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

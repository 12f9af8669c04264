"""`gapless filter check`: parses a filter, evaluates it for an event, or compares it with another filter."""

from typing import Any

from rich.table import Table
from rich.text import Text

from gapless.cli.event_lines import read_argument
from gapless.cli.exit_codes import INVALID, UNKNOWN, VALID
from gapless.cli.normal_form_text import disjunction_lines
from gapless.cli.terminal import output_console, print_json
from gapless.events import Attributes
from gapless.filters import Filter, filter_hints, parse

__all__ = ["check_filter"]


def check_filter(text: str, event: str | None, against: str | None, *, as_json: bool) -> int:
    """Print the result and return the exit code: with an event, whether it matches."""
    subject = parse(text)
    other = None if against is None else parse(against)
    attributes = None if event is None else read_argument(event, "--event")[0]
    matches = None if attributes is None else subject.evaluate(attributes)
    code = VALID if attributes is None else _answer(matches)[2]
    if as_json:
        print_json(_document(subject, attributes, matches, other))
        return code
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("filter", Text(text))
    lines = disjunction_lines(subject.disjunction)
    table.add_row("matches if", Text("\nor ".join(lines) if lines else "never"))
    if other is not None:
        table.add_row("covers it", "yes" if subject.covers(other) else "no, or not certainly")
        table.add_row("overlaps it", "yes, or possibly" if subject.overlaps(other) else "no")
    if attributes is not None:
        answer, style, _ = _answer(matches)
        table.add_row("event", Text(answer, style))
    for hint in filter_hints(text):
        table.add_row("hint", Text(hint, "yellow"))
    output_console().print(table)
    return code


def _answer(matches: bool | None) -> tuple[str, str, int]:
    """Return the answer as text, its colour, and the exit code."""
    if matches is None:
        return "unknown, so it does not match", "bold yellow", UNKNOWN
    return ("matches", "bold green", VALID) if matches else ("does not match", "bold red", INVALID)


def _document(subject: Filter, attributes: Attributes | None, matches: bool | None, other: Filter | None) -> Any:
    document: dict[str, Any] = {"filter": subject.text, "normal_form": disjunction_lines(subject.disjunction)}
    if hints := filter_hints(subject.text):
        document["hints"] = hints
    if attributes is not None:
        document |= {"event": attributes, "matches": matches}
    if other is not None:
        document |= {"against": other.text, "covers": subject.covers(other), "overlaps": subject.overlaps(other)}
    return document

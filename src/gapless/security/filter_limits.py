"""Limits the filters in one message of a client, before and while they are parsed.

An `Attach` can contain thousands of filters. Their text is bounded before any of it is parsed, and
the steps of the parser are counted, so a client that sends too much is refused after a fifth of a
second of work, and before its filters are compared with those of its user.
"""

from collections.abc import Generator

from gapless.errors import CallError
from gapless.filters import Filter, parse

__all__ = ["check_text", "understand"]


def check_text(client: str, texts: list[tuple[str, str]], most: int) -> None:
    """Raise an error, before parsing, if a client sends more text than allowed."""
    size = sum(len(name) + len(text) for name, text in texts)
    if size > most:
        raise CallError(
            f"the subscriptions and advertisements of {client!r} have {size:,} characters, but {most:,} is the limit; "
            "end some of them, or use a further client"
        )


def understand(client: str, texts: list[tuple[str, str]], most: int) -> Generator[None, None, list[Filter]]:
    """Parse the filters, yielding after each part. Raise an error as soon as that takes too many steps."""
    effort = 0
    found: list[Filter] = []
    for _, text in texts:
        found.append(parse(text))
        effort += found[-1].effort
        if effort > most:
            raise CallError(
                f"the filters of {client!r} take more than {most:,} steps to be parsed; simplify them, or "
                "use a further client"
            )
        yield
    return found

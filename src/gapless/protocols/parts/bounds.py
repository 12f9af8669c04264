"""Limits on a client's registrations. The client rejects calls that exceed them; a broker disconnects a client that
does."""

from collections.abc import Iterable

from gapless.errors import CallError

__all__ = ["READINGS_MAX", "TEXT_MAX", "check_readings", "check_texts"]

TEXT_MAX = 1 << 20
"""The maximum number of characters in the names and filters of one client: 20,000 subscriptions of 50 characters."""

READINGS_MAX = 16
"""The maximum number of subscriptions of one client that read history at a time. A broker keeps some pages for each."""


def check_texts(client: str, named: Iterable[tuple[str, str]]) -> None:
    """Raise an error if the names and filters of a client's subscriptions and advertisements exceed `TEXT_MAX` in
    total."""
    size = sum(len(name) + len(text) for name, text in named)
    if size > TEXT_MAX:
        raise CallError(
            f"the subscriptions and advertisements of {client!r} have {size:,} characters, but {TEXT_MAX:,} is the "
            "limit; end some of them, or use a further client"
        )


def check_readings(client: str, count: int) -> None:
    """Raise an error if too many of a client's subscriptions read history at a time."""
    if count > READINGS_MAX:
        raise CallError(
            f"{client!r} reads history with more than {READINGS_MAX} subscriptions at a time; wait "
            "until some end or become live, or use a further client"
        )

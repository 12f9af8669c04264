"""What both ends of a client's connection keep to: the client refuses a call, the broker whoever made it anyway."""

from collections.abc import Iterable

from gapless.errors import CallError

__all__ = ["TEXT_MAX", "check_texts"]

TEXT_MAX = 1 << 20
"""Characters in the names and filters of one client: 20,000 subscriptions of 50 characters."""


def check_texts(client: str, named: Iterable[tuple[str, str]]) -> None:
    """All that a client asks for and offers, by name and filter, is not too much."""
    size = sum(len(name) + len(text) for name, text in named)
    if size > TEXT_MAX:
        raise CallError(
            f"the subscriptions and advertisements of {client!r} have {size:,} characters, but {TEXT_MAX:,} is the "
            "limit; end some of them, or use a further client"
        )

"""Bounds on the numbers and names in clients' messages."""

from gapless.errors import CallError
from gapless.printable import name_complaint

__all__ = ["NAME_MAX", "NUMBER_MAX", "check_name", "check_numbers"]

NUMBER_MAX = 1 << 53
"""The maximum number: one million per second for 285 years."""
NAME_MAX = 500
"""The maximum length of the name of a subscription or advertisement, including the client's name at its beginning."""


def check_numbers(client: str, *numbers: int) -> None:
    """Reject numbers that cannot be counts."""
    for number in numbers:
        if not 0 <= number <= NUMBER_MAX:
            raise CallError(f"{client!r} names number {number}, but numbers are from 0 to {NUMBER_MAX}")


def check_name(client: str, name: str) -> None:
    """Reject the name of a subscription or advertisement if it belongs to another client or is not printable."""
    owner, slash, _ = name.rpartition("/")
    if slash and owner != client:
        raise CallError(f"{client!r} cannot use the name {name[:200]!r}, which belongs to {owner[:100]!r}")
    complaint = name_complaint("what a client calls its own", name, NAME_MAX)
    if complaint:
        raise CallError(f"{client!r} made a call that no client may make: {complaint}")

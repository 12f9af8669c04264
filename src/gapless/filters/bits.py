"""Positions of the set bits of a large integer."""

from __future__ import annotations

_SHORT = 8192
"""Taking off a bit copies the integer: below this length that costs less than halving."""


def positions(bits: int) -> list[int]:
    """Positions of the set bits, in no particular order."""
    found: list[int] = []
    parts = [(bits, 0)]
    while parts:
        part, base = parts.pop()
        length = part.bit_length()
        if length > _SHORT:
            half = length >> 1
            upper = part >> half
            parts.append((upper, base + half))
            parts.append((part ^ (upper << half), base))
            continue
        while part:
            top = part.bit_length() - 1
            found.append(base + top)
            part ^= 1 << top
    return found

"""Positions of the set bits of a large integer.

Taking bits off one by one copies the whole integer for each. So an integer is halved until its parts are short: a part
without bits is dropped at once, and bits are taken off short parts.
"""

from __future__ import annotations

_SHORT = 1024


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
            lower = part ^ (upper << half)
            if lower:
                parts.append((lower, base))
            continue
        while part:
            top = part.bit_length() - 1
            found.append(base + top)
            part ^= 1 << top
    return found

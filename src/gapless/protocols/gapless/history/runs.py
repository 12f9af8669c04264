"""A run: what a client published in one message, as it was admitted."""

import msgspec

__all__ = ["Run"]


class Run(msgspec.Struct, frozen=True, order=True, gc=False):
    """It has one stamp, and is kept as the bytes it has on the wire."""

    stamp: int
    publisher: str
    first: int
    last: int
    events: bytes

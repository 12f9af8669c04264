"""How much work an input is: what waits while its broker is busy is taken a bounded amount at a time."""

from gapless.protocol import Input

__all__ = ["weigh"]

HANDLED = 4
"""Units of work for a message that carries no event."""


def weigh(item: Input) -> int:
    """How much work an input is, in units (see `recovery.pieces`): that of the events in it, mostly."""
    units = HANDLED
    message = getattr(item, "message", None)
    while message is not None:
        units += len(getattr(message, "events", ()))
        message = getattr(message, "body", None)
    return units

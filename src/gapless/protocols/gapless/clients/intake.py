"""How much work an input is: what waits while its broker is busy is taken a bounded amount at a time."""

from gapless.protocol import Input, Received
from gapless.protocol.carrying import events_of, layers_of

__all__ = ["weigh"]

HANDLED = 4
"""Units of work for a message that carries no event."""


def weigh(item: Input) -> int:
    """How much work an input is, in units (see `recovery.pieces`): that of the events in it, mostly."""
    carried = layers_of(item.message) if isinstance(item, Received) else ()
    return HANDLED + sum(len(events_of(layer)) for layer in carried)

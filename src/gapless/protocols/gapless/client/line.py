"""What the parts of a client's node say: to the broker that is asked, and to whoever runs the node."""

from typing import Any

from gapless.protocol import Effect, Send

__all__ = ["Line"]


class Line:
    """The broker that holds the session, or is asked for it; the attempt; and what this step has caused so far."""

    def __init__(self, broker: str) -> None:
        self.broker = broker
        self.attempt = 0
        self.now = 0
        """In microseconds."""
        self.is_attached = False
        """Whether that broker holds the session, and has said so."""
        self.effects: list[Effect] = []

    def send(self, message: Any) -> None:
        """To the broker asked last: it comes after the `Attach`, and counts if that is granted."""
        self.effects.append(Send(self.broker, message))

    def emit(self, effect: Effect) -> None:
        """The runtime does it, or tells the application."""
        self.effects.append(effect)

"""The state that a process needs to take over as the client of another process, which has ended.

Brokers identify a client by its name, and accept only its latest attempt. So a process that continues with a larger
attempt number is the client from then on. Brokers ignore further messages of the previous process, and never accept a
publication number twice. The client relies on the same rule when its connection breaks. If the previous process still
runs, its calls and subscriptions end with a `ClosedError`.
"""

import msgspec

__all__ = ["Identity"]

LATER = 1_000_000
"""How much the attempt number grows from one process to the next: more than the attempts that one process can make."""


class Identity(msgspec.Struct, frozen=True):
    """The state that a process needs to take over a client. `client.identity` returns it."""

    name: str
    home: str
    """The name of the broker that last held the client's session."""
    attempt: int
    seq: int
    """The number of the client's last event."""

    def later(self) -> "Identity":
        """Return the identity for the next process. Store it before that process connects, so that no later process
        uses the same one.

        Example: `file.write_bytes(msgspec.json.encode(client.identity.later()))`
        """
        return msgspec.structs.replace(self, attempt=self.attempt + LATER)

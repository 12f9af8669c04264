"""The state that a process needs to continue as the client of another process, which has ended.

Brokers identify a client by its name, and accept only its latest attempt. So a process that continues with a larger
attempt is the client from then on: messages of the previous process that no broker has accepted are ignored, and an
accepted number is not accepted again. The client relies on the same rule when its connection breaks. If the previous
process still runs, its calls and subscriptions end with a `ClosedError`.
"""

import msgspec

__all__ = ["Identity"]

LATER = 1_000_000
"""The difference between the attempts of two processes: more than one process can make."""


class Identity(msgspec.Struct, frozen=True):
    """The identity of one client at one time."""

    name: str
    home: str
    """The broker that last held its session."""
    attempt: int
    seq: int
    """The number of its last event."""

    def later(self) -> "Identity":
        """Return the identity of the next process. Store it before that process connects, so that none after it begins
        with the same.

        Example: `file.write_bytes(msgspec.json.encode(client.identity.later()))`
        """
        return msgspec.structs.replace(self, attempt=self.attempt + LATER)

"""The state that a process needs to continue as the client of another process, which has ended.

Brokers know a client by its name, and listen to its latest attempt alone. So whoever goes on with a larger one is the
client from then on: what the process before had sent, and no broker has taken, counts no more, and a number that
a broker has taken is not taken again. That is what a client relies on when its connection breaks, too. If the process
before still runs, a `ClosedError` ends its calls and its subscriptions.
"""

import msgspec

__all__ = ["Identity"]

LATER = 1_000_000
"""By so much the attempts of a process exceed those of the one before: more than it can have made."""


class Identity(msgspec.Struct, frozen=True):
    """Of one client, at one moment."""

    name: str
    home: str
    """The broker that held its session last."""
    attempt: int
    seq: int
    """The number of its last event."""

    def later(self) -> "Identity":
        """Return that of the next process. Store it before that one connects, so that none after it begins with the
        same.

        Example: `file.write_bytes(msgspec.json.encode(client.identity.later()))`
        """
        return msgspec.structs.replace(self, attempt=self.attempt + LATER)

"""Generated from `gapless.client.admin` by `scripts/generate_sync_client.py`. Edit that file instead."""

from typing import TypeAlias

from gapless.client.positions import Since
from gapless.client.synchronous import Synchronous
from gapless.names import DurableInfo

__all__ = ["Admin"]
Durables: TypeAlias = list[DurableInfo]


class Admin(Synchronous):
    """Manages the durable subscriptions and clients of a network. `client.admin` is an instance."""

    def list(self) -> Durables:
        """Return the durable subscriptions of the network, sorted by name.

        Example: `print([each.lag_s for each in client.admin.list()])`
        """
        found: Durables = self._loop.run(self._inner.list())
        return found

    def move(self, name: str, to: Since) -> None:
        """Move a durable subscription to another position, from which it continues. An attached client is detached.

        Parameters:
            name: the name of the durable subscription.
            to: a position, a time, an age, "earliest" or "now".

        Example: `client.admin.move("billing", "10m")`
        """
        self._loop.run(self._inner.move(name, to))

    def delete(self, name: str) -> None:
        """Delete a durable subscription. An attached client is detached.

        Parameters:
            name: the name of the durable subscription.

        Example: `client.admin.delete("billing")`
        """
        self._loop.run(self._inner.delete(name))

    def end(self, client: str) -> None:
        """End the session of a client, connected or not, with its subscriptions and advertisements. In a network with
        users this needs an operator's rights.

        Parameters:
            client: the full name of the client (`client.name`), as `gapless status` shows it.

        Example: `client.admin.end("shop-1a2b3c4d")`
        """
        self._loop.run(self._inner.end(client))

"""Generated from `gapless.client.admin` by `scripts/generate_sync_client.py`. Edit that file instead."""

from typing import Any, TypeAlias

from gapless.client import admin
from gapless.client.loop_thread import LoopThread
from gapless.client.positions import Since
from gapless.names import DurableInfo

__all__ = ["Admin"]
Durables: TypeAlias = list[DurableInfo]


class Admin:
    """Administration of a network, reached as `client.admin`."""

    def __init__(self, loop: LoopThread, inner: admin.Admin) -> None:
        self._loop = loop
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    def list(self) -> Durables:
        """Return the durable subscriptions of the network, sorted by name.

        Example: `print([each.lag_s for each in client.admin.list()])`
        """
        call: Any = self._inner.list
        found: Durables = self._loop.run(call())
        return found

    def move(self, name: str, to: Since) -> None:
        """Let a durable subscription continue from another position. An attached client is detached.

        Parameters:
            name: the name of the durable subscription.
            to: a position, a time, an age, "earliest" or "now".

        Example: `client.admin.move("billing", "10m")`
        """
        call: Any = self._inner.move
        self._loop.run(call(name, to))

    def delete(self, name: str) -> None:
        """Delete a durable subscription. An attached client is detached.

        Parameters:
            name: the name of the durable subscription.

        Example: `client.admin.delete("billing")`
        """
        call: Any = self._inner.delete
        self._loop.run(call(name))

    def end(self, client: str) -> None:
        """End the session of a client, whether it is connected or away: its subscriptions and advertisements are gone.
        In a network with users this needs an operator's rights.

        Parameters:
            client: the full name of the client (`client.name`), as `gapless status` shows it.

        Example: `client.admin.end("shop-1a2b3c4d")`
        """
        call: Any = self._inner.end
        self._loop.run(call(client))

"""The asynchronous client of a network.

Its calls are in `subscribing_calls` and `publishing_calls`; `connection_manager` keeps the node and its connections.
"""

from types import TracebackType
from typing import Self

from gapless.client.changes import ConnectionChanges
from gapless.client.identity import Identity
from gapless.client.publishing_calls import PublishingCalls
from gapless.client.subscribing_calls import SubscribingCalls

__all__ = ["Client"]


class Client(SubscribingCalls, PublishingCalls):
    """A client of a network, returned by `connect`.

    It belongs to the event loop in which it was connected. Calls can be made at any time and wait while no broker is
    connected; use `asyncio.timeout` to bound the wait.

    Example: `async with gapless.connect("gapless://127.0.0.1:7400") as client:`
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of network {self.network}, {self._connection_manager.state}>"

    async def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, withdraw all advertisements, and disconnect.

        Parameters:
            leave: False only disconnects; brokers keep the session for a while, as if the client were away.

        Example: `await client.close()`
        """
        await self._connection_manager.close(leave=leave)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def connection_changes(self) -> ConnectionChanges:
        """Return an iterator over the changes of this client's connection; the first is the current state.

        Example: `async for change in client.connection_changes(): print(change.kind, change.broker)`
        """
        self._connection_manager.own_loop.check()
        return self._connection_manager.changes()

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected to a broker."""
        return self._connection_manager.is_connected

    @property
    def broker(self) -> str:
        """The name of the broker that serves this client, or that it is trying to reach. Empty if the protocol does not
        report it.
        """
        return self._connection_manager.broker

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of the network's brokers by name, as reported when the client first connected."""
        return dict(self._connection_manager.addresses)

    @property
    def blocked_reason(self) -> str:
        """Why this client's publications are not being confirmed, and since when. Empty if they are, and in protocols
        without confirmations.
        """
        return self._connection_manager.blocked

    @property
    def identity(self) -> Identity:
        """The state that another process needs to take over this client's identity."""
        return self._connection_manager.identity

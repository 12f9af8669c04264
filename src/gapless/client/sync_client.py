"""Generated from `gapless.client.client` by `scripts/generate_sync_client.py`. Edit that file instead."""

from types import TracebackType
from typing import Self

from gapless.client.identity import Identity
from gapless.client.sync_changes import ConnectionChanges
from gapless.client.sync_publishing_calls import PublishingCalls
from gapless.client.sync_subscribing_calls import SubscribingCalls

__all__ = ["Client"]


class Client(SubscribingCalls, PublishingCalls):
    """A client of a network, returned by `connect`.

    It belongs to the event loop in which it was connected. Calls can be made at any time and wait while no broker is
    connected; use a thread to bound the wait.

    Example: `with gapless.sync.connect("gapless://127.0.0.1:7400") as client:`
    """

    def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, withdraw all advertisements, and disconnect.

        Parameters:
            leave: False only disconnects; brokers keep the session for a while, as if the client were away.

        Example: `client.close()`
        """
        self._close(leave=leave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connection_changes(self) -> ConnectionChanges:
        """Return an iterator over the changes of this client's connection; the first is the current state.

        Example: `for change in client.connection_changes(): print(change.kind, change.broker)`
        """
        return ConnectionChanges(self._loop, self._loop.call(lambda: self._inner.connection_changes()))

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected to a broker."""
        found: bool = self._inner.is_connected
        return found

    @property
    def broker(self) -> str:
        """The name of the broker that serves this client, or that it is trying to reach. Empty if the protocol does not
        report it.
        """
        found: str = self._inner.broker
        return found

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of the network's brokers by name, as reported when the client first connected."""
        found: dict[str, str] = dict(self._inner.addresses)
        return found

    @property
    def blocked_reason(self) -> str:
        """Why this client's publications are not being confirmed, and since when. Empty if they are, and in protocols
        without confirmations.
        """
        found: str = self._inner.blocked_reason
        return found

    @property
    def identity(self) -> Identity:
        """The state that another process needs to take over this client's identity."""
        found: Identity = self._inner.identity
        return found

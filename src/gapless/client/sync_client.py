"""Generated from `gapless.client.client` by `scripts/generate_sync_client.py`. Edit that file instead."""

from types import TracebackType
from typing import Self

from gapless.client.identity import Identity
from gapless.client.sync_changes import ConnectionChanges
from gapless.client.sync_publishing_calls import PublishingCalls
from gapless.client.sync_subscribing_calls import SubscribingCalls

__all__ = ["Client"]


class Client(SubscribingCalls, PublishingCalls):
    """One client of a network. Made by `connect`.

    Calls can be made at any time and from any thread; they wait for a broker where none is connected.

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
        """Whether a broker is connected now."""
        found: bool = self._inner.is_connected
        return found

    @property
    def broker(self) -> str:
        """The broker that serves this client, or that it is trying to reach; empty if the protocol does not
        report it."""
        found: str = self._inner.broker
        return found

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of the network's brokers by name, as of the first connection."""
        found: dict[str, str] = dict(self._inner.addresses)
        return found

    @property
    def blocked_reason(self) -> str:
        """The reason why this client's publications wait, and for how long, if none has been confirmed for seconds.
        Empty otherwise, and if the protocol confirms nothing."""
        found: str = self._inner.blocked_reason
        return found

    @property
    def identity(self) -> Identity:
        """The state that another process needs to take over this client's identity."""
        found: Identity = self._inner.identity
        return found

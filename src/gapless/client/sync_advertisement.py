"""Generated from `gapless.client.advertisement` by `scripts/generate_sync_client.py`. Edit that file instead."""

from gapless.client.synchronous import Synchronous

__all__ = ["Advertisement"]


class Advertisement(Synchronous):
    """A declaration of the events that this client may publish. `Client.advertise` returns it."""

    @property
    def id(self) -> str:
        """Identifies this advertisement of this client in the network, in logs and traces."""
        found: str = self._inner.id
        return found

    @property
    def filter(self) -> str:
        """The filter."""
        found: str = self._inner.filter
        return found

    def close(self) -> None:
        """Withdraw the advertisement: later publications cannot rely on it.

        Example: `advertisement.close()`
        """
        self._loop.run(self._inner.close())

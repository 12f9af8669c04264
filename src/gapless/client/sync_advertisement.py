"""Generated from `gapless.client.advertisement` by `scripts/generate_sync_client.py`. Edit that file instead."""

from gapless.client.synchronous import Synchronous

__all__ = ["Advertisement"]


class Advertisement(Synchronous):
    """A declaration of the events that this client can publish, returned by `Client.advertise`."""

    @property
    def id(self) -> str:
        """The identifier of this advertisement in the network, in logs and in traces."""
        found: str = self._inner.id
        return found

    @property
    def filter(self) -> str:
        """The filter that matches all events published under this advertisement."""
        found: str = self._inner.filter
        return found

    def close(self) -> None:
        """Withdraw the advertisement: later publications need another one that matches them.

        Example: `advertisement.close()`
        """
        self._loop.run(self._inner.close())

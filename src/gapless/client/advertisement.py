"""An advertisement, as its application sees it."""

from typing import Protocol

__all__ = ["Advertisement"]


class _Client(Protocol):
    """The client of the advertisement."""

    async def unadvertise(self, advertisement: "Advertisement") -> None: ...


class Advertisement:
    """A declaration of the events that this client may publish. `Client.advertise` returns it."""

    def __init__(self, client: _Client, id: str, text: str) -> None:
        self.id: str = id
        """Identifies this advertisement of this client in the network, in logs and traces."""
        self.filter: str = text
        """The filter."""
        self._client = client

    def __repr__(self) -> str:
        return f"<Advertisement {self.id} of {self.filter!r}>"

    async def close(self) -> None:
        """Withdraw the advertisement: later publications cannot rely on it.

        Example: `await advertisement.close()`
        """
        await self._client.unadvertise(self)

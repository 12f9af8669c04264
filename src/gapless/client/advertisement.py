"""The handle that an application gets for one of its advertisements."""

from typing import Protocol

__all__ = ["Advertisement"]


class _Client(Protocol):
    async def unadvertise(self, advertisement: "Advertisement") -> None: ...


class Advertisement:
    """A declaration of the events that this client can publish, returned by `Client.advertise`."""

    def __init__(self, client: _Client, id: str, text: str) -> None:
        self.id: str = id
        """The identifier of this advertisement in the network, in logs and in traces."""
        self.filter: str = text
        """The filter that matches all events published under this advertisement."""
        self._client = client

    def __repr__(self) -> str:
        return f"<Advertisement {self.id} of {self.filter!r}>"

    async def close(self) -> None:
        """Withdraw the advertisement: later publications need another one that matches them.

        Example: `await advertisement.close()`
        """
        await self._client.unadvertise(self)

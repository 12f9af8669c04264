"""An advertisement, as its application sees it."""

from typing import Protocol

__all__ = ["Advertisement"]


class _Client(Protocol):
    """Who advertised."""

    async def unadvertise(self, advertisement: "Advertisement") -> None: ...


class Advertisement:
    """What this client may publish. Made by `Client.advertise`."""

    def __init__(self, client: _Client, name: str, text: str) -> None:
        self.name = name
        self.filter = text
        self._client = client

    def __repr__(self) -> str:
        return f"<Advertisement {self.name} of {self.filter!r}>"

    async def close(self) -> None:
        """Take it back: nothing published from now on relies on it."""
        await self._client.unadvertise(self)

"""Generated from `gapless.client.advertisement` by `scripts/generate_sync_client.py`. Edit that file instead."""

from typing import Any

from gapless.client import advertisement
from gapless.client.loop_thread import LoopThread

__all__ = ["Advertisement"]


class Advertisement:
    """A declaration of the events that this client may publish. `Client.advertise` returns it."""

    def __init__(self, loop: LoopThread, inner: advertisement.Advertisement) -> None:
        self._loop = loop
        self._inner = inner
        self.id: str = inner.id
        self.filter: str = inner.filter

    def __repr__(self) -> str:
        return repr(self._inner)

    def close(self) -> None:
        """Withdraw it: nothing published from now on relies on it."""
        call: Any = self._inner.close
        self._loop.run(call())

"""Generated from `gapless.client.answering` by `scripts/generate_sync_client.py`. Edit that file instead."""

from types import TracebackType
from typing import Self

from gapless.client.answering_side import AnsweringSide

__all__ = ["Answering"]


class Answering(AnsweringSide):
    """Calls a handler with each request that matches a filter and publishes the results. `Client.answer` returns it.

    It answers until it is closed; use it in `with`, or call `wait()`.
    """

    @property
    def filter(self) -> str:
        """The filter that requests match."""
        found: str = self._inner.filter
        return found

    @property
    def name(self) -> str:
        """The name of the group that shares the requests; empty without a group."""
        found: str = self._inner.name
        return found

    def wait(self) -> None:
        """Wait until this object is closed. Raise an error if the network ended its subscription.

        Example: `answering.wait()`
        """
        self._loop.run(self._inner.wait())

    def close(self) -> None:
        """Stop answering. Requests whose handler is running stay unfinished: in a group, another worker gets them.

        Example: `answering.close()`
        """
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

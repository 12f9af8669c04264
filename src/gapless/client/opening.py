"""The return type of calls that can be awaited or used in `async with`."""

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gapless.errors import CallError

__all__ = ["Opening"]


class _Closable(Protocol):
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


C = TypeVar("C", bound=_Closable)


class Opening(Coroutine[Any, Any, C]):
    """An object that is still to be opened, such as a client or a subscription. `connect`, `subscribe` and similar
    calls return it.

    `subscription = await client.subscribe(filter)` opens it; `async with client.subscribe(filter) as subscription:`
    opens it and closes it at the end of the block. It can be used once.
    """

    def __init__(self, opening: Coroutine[Any, Any, C], call: str, kind: type[C]) -> None:
        self._opening = opening
        self._call = call
        """The call as source code, for messages."""
        self._kind = kind
        self._opened: C | None = None

    def __repr__(self) -> str:
        return f"<{self._call}, not awaited>"

    def __await__(self) -> Generator[Any, None, C]:
        return self._opening.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine. The event loop calls this."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine. The event loop calls this."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """Close the coroutine without opening anything."""
        self._opening.close()

    async def __aenter__(self) -> C:
        self._opened = await self._opening
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.__aexit__(kind, error, trace)

    if not TYPE_CHECKING:  # type checkers must not find the methods of the result here

        def __getattr__(self, name: str) -> Any:
            """Raise an error that explains that `await` or `async with` is missing."""
            if name.startswith("_") or not hasattr(self._kind, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise self._not_awaited(f"use {name}")

        def __aiter__(self) -> Any:
            """Raise an error that explains that `await` or `async with` is missing in a loop."""
            raise self._not_awaited("iterate")

        def _not_awaited(self, what: str) -> CallError:
            self._opening.close()
            return CallError(
                f"{self._call} was not awaited, so you cannot {what} yet: write await {self._call}, or async with "
                f"{self._call} as {self._kind.__name__.lower()}"
            )

"""The interface of middleware: code of the application that runs for each published, delivered or acknowledged event.

`connect(…, middleware=[…])` takes any number. They are called in this order, in the event loop of the client, and must
not block. An exception in `publish` ends that call; those in `deliver` and `ack` are logged. `gapless.otel` uses only
this interface.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gapless.errors import CallError
from gapless.events import Event

__all__ = ["Deliver", "Middleware", "Middlewares", "Outcome", "Outgoing"]

Outcome: TypeAlias = Literal["ack", "nack"]
Deliver: TypeAlias = Callable[[Event, str, bool], None]

_logger = logging.getLogger("gapless.client")


@dataclass
class Outgoing:
    """An event that is about to be published, as changed by earlier middleware."""

    attributes: dict[str, Any]
    payload: bytes = b""
    state: dict[str, Any] = field(default_factory=dict)
    """Data for later middleware."""


class Middleware:
    """Base class of middleware. A subclass overrides the methods that it needs.

    Example: `async with gapless.connect(url, middleware=[Counting()]) as client:`
    """

    def publish(self, outgoing: Outgoing) -> AbstractContextManager[Any]:
        """Return a context manager that surrounds a publication. `publish` leaves it when the event is confirmed, or
        with the error that it raises; `publish_many`, `publish_nowait` and `request` leave it when the event is about
        to be sent.

        Parameters:
            outgoing: the event; entering the context can change its attributes and its payload.

        Example: `return self.timed(outgoing.attributes["topic"])`
        """
        return nullcontext()

    def deliver(self, event: Event, subscription: str, *, is_durable: bool) -> None:
        """Called when the application takes an event.

        Parameters:
            event: the delivered event.
            subscription: the name of the durable subscription, or the filter.
            is_durable: whether it is a durable subscription, so that `ack` follows.

        Example: `self.delivered[subscription] += 1`
        """

    def ack(self, event: Event, outcome: Outcome) -> None:
        """Called when the application has acknowledged an event of a durable subscription, or returned it with `nack`.

        Parameters:
            event: the event delivered before.
            outcome: "ack" or "nack".

        Example: `self.failed += outcome == "nack"`
        """


class Middlewares:
    """Calls all middleware of one client, in order."""

    def __init__(self, found: Sequence[Middleware] = ()) -> None:
        is_list = isinstance(found, Sequence)
        for each in found if is_list else [found]:
            if not isinstance(each, Middleware) or not is_list:
                raise CallError(f"middleware is a list of gapless.Middleware, but this is {type(each).__name__}")
        self._found = tuple(found)

    def __bool__(self) -> bool:
        return bool(self._found)

    @contextmanager
    def publishing(self, outgoing: Outgoing) -> Iterator[Outgoing]:
        """Enter the `publish` contexts of all middleware, nested in order."""
        with ExitStack() as stack:
            for each in self._found:
                stack.enter_context(each.publish(outgoing))
            yield outgoing

    @property
    def deliver(self) -> Deliver | None:
        """Return the function to call with each delivered event, or None if no middleware needs it."""
        return self._deliver if self._wants("deliver") else None

    @property
    def settle(self) -> Callable[[Event, Outcome], None] | None:
        """Return the function to call with each acknowledged or returned event, or None if no middleware needs it."""
        return self._settle if self._wants("ack") else None

    def _wants(self, name: str) -> bool:
        return any(getattr(type(each), name) is not getattr(Middleware, name) for each in self._found)

    def _deliver(self, event: Event, subscription: str, is_durable: bool) -> None:
        for each in self._found:
            try:
                each.deliver(event, subscription, is_durable=is_durable)
            except Exception:
                _logger.exception(
                    f"the middleware {type(each).__name__} failed on the delivery of {event.id}",
                    extra={"event": "middleware.failed"},
                )

    def _settle(self, event: Event, outcome: Outcome) -> None:
        for each in self._found:
            try:
                each.ack(event, outcome)
            except Exception:
                _logger.exception(
                    f"the middleware {type(each).__name__} failed on the {outcome} of {event.id}",
                    extra={"event": "middleware.failed"},
                )

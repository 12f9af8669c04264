"""Subscriptions, requests and changes for programs without an event loop: iterate over them.

Events are fetched in batches, so a loop over a subscription does not cross threads for each. Several threads may take
from the same subscription; each event is taken by one of them.
"""

import threading
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from gapless.client import changes, requests, subscription
from gapless.client.arguments import check_count
from gapless.client.changes import Change
from gapless.client.confirmations import Confirmations, not_confirmable
from gapless.client.loop_thread import LoopThread
from gapless.client.publications import EventLike, Payload
from gapless.events import Event, PublishedEvent
from gapless.positions import Position

__all__ = [
    "BaseSubscription", "Changes", "ConfirmableEvent", "ConfirmableSubscription", "Request", "Requests", "Subscription",
    "TypedSubscription",
]  # fmt: skip

FETCH = 256

T = TypeVar("T")


class ConfirmableEvent(Event, frozen=True, dict=True, gc=True, eq=False):
    """An event of a named subscription. It equals the event that was published; a copy cannot be confirmed."""

    redelivered: bool = False
    """Whether it may have been delivered before, to this client or to another, and was not confirmed. False is certain;
    after a crash, events published up to ten seconds later are marked, too."""
    _confirmations: ClassVar[Confirmations | None] = None
    """Each has its own beside its fields, so that it is shown, copied and encoded without."""

    def confirm(self) -> None:
        """Confirm it, and all that came before it. Returns when it will not come again."""
        if self._confirmations is None:
            raise not_confirmable(self)
        self._confirmations.run(self._confirmations.confirm(self))


class BaseSubscription(Generic[T]):
    """What all subscriptions have in common."""

    def __init__(self, loop: LoopThread, inner: subscription.BaseSubscription[Any]) -> None:
        self._loop = loop
        self._inner = inner
        self._fetched: deque[T] = deque()
        self._has_history = False
        """Whether what is fetched is history."""
        self._drained = threading.Condition()
        self.name = inner.name
        self.title = inner.title
        self.filter = inner.filter
        self._at_once = FETCH if inner._confirmations is None else 1
        """What is fetched is taken, and what is taken of a named subscription does not come again."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} to {self.filter!r}>"

    @property
    def cuts(self) -> dict[str, int]:
        """The starting cut: for each publisher, the number of the first event that counts."""
        return dict(self._inner.cuts)

    @property
    def last(self) -> dict[str, int] | None:
        """The ending cut, once it is over."""
        return self._inner.last

    @property
    def position(self) -> Position:
        """You have taken everything up to this position, so another subscription can go on from there.

        It moves while history is read. A subscription without `since` or a name has none, and raises a `CallError`.
        """
        return self._inner.position

    @property
    def is_live(self) -> bool:
        """Whether it gets what is published; not while it reads what was published before."""
        return self._inner.is_live

    @property
    def seam(self) -> Position | None:
        """If it began in an archive: the position up to which it was read there, once brokers have taken over."""
        return self._inner.seam

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes in. What is there can still be taken."""
        return self._inner.is_over

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while True:
            with suppress(IndexError):  # another thread may have taken it
                item = self._fetched.popleft()
                self._note_drained()
                return item
            if not self._loop.run(self._fetch(self._at_once, None)):
                raise StopIteration

    def take(self, most: int = FETCH, *, timeout_s: float | None = None) -> list[T]:
        """The next events, at least one and as many as are there; empty when the subscription is over.

        With a timeout, a `NoEventError` if none comes in time.
        """
        check_count("most", most)
        while True:
            events: list[T] = []
            with suppress(IndexError):
                while len(events) < most:
                    events.append(self._fetched.popleft())
            self._note_drained()
            if events or not self._loop.run(self._fetch(most, timeout_s)):
                return events

    async def _fetch(self, most: int, timeout_s: float | None) -> int:
        """Lay events in where the caller takes them: a caller that is interrupted meanwhile loses none."""
        was_caught_up = self._inner.is_caught_up
        events = await self._inner.take(most, timeout_s=timeout_s)
        with self._drained:
            self._has_history = self._has_history or (bool(events) and not was_caught_up)
            self._fetched.extend(map(self._wrap, events))
        return len(events)

    def _note_drained(self) -> None:
        if self._has_history:
            with self._drained:
                if not self._fetched:
                    self._has_history = False
                    self._drained.notify_all()

    @property
    def is_caught_up(self) -> bool:
        """Whether the application has taken all of the history that was asked for, and what comes now is live. In a
        group always False, as no member sees all of it."""
        return self._inner.is_caught_up and not self._has_history

    def caught_up(self) -> None:
        """Returns when the application has taken all of the history that was asked for: what comes after was published
        since. It takes nothing itself, so another thread has to."""
        self._loop.run(self._inner.caught_up())
        with self._drained:
            self._drained.wait_for(lambda: not self._has_history)

    def _wrap(self, item: Any) -> T:
        """What the application gets of what the asynchronous subscription gave."""
        wrapped: T = item
        return wrapped

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. Without a broker, this waits for the ending cut for 5 s at most; the subscription ends later."""
        self._loop.run(self._inner.__aexit__(kind, error, trace))

    def close(self) -> None:
        """End it, with an exact ending cut. What was delivered before can still be taken."""
        self._loop.run(self._inner.close())

    def confirm(self, upto: Event | Position | None = None) -> None:
        """Of a named subscription: confirm all that you took, or all up to an event, or up to a position."""
        self._loop.run(self._inner.confirm(upto))

    def resubscribe(self) -> Self:
        """After its end, begin anew: the same filter from a new starting cut on. What lies between is not delivered."""
        return type(self)(self._loop, self._loop.run(self._inner.resubscribe()))


class Subscription(BaseSubscription[Event]):
    """Iterate over it: `for event in subscription`. Made by `Client.subscribe`."""


class ConfirmableSubscription(BaseSubscription[ConfirmableEvent]):
    """A named subscription: `for event in subscription`. Made by `Client.subscribe` with a `name`."""


class TypedSubscription(BaseSubscription[T]):
    """A subscription whose events are made into values of a type. Made by `Client.subscribe` with a `type`.

    An event that does not fit is raised as a `MisfitError`, in its place; the next call goes on after it.
    """


class Request:
    """A question, as the answering side sees it."""

    def __init__(self, loop: LoopThread, inner: requests.Request) -> None:
        self._loop = loop
        self._inner = inner
        self.event = inner.event
        self.redelivered = inner.redelivered
        self.attributes = inner.attributes
        self.payload = inner.payload

    def __repr__(self) -> str:
        return repr(self._inner)

    def reply(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Answer it. Returns when the answer is safe; it has to be advertised like all that is published."""
        return self._loop.run(self._inner.reply(attributes, payload))

    def dismiss(self) -> None:
        """Leave it without a reply; in a group, no other worker gets it."""

        async def dismiss() -> None:
            self._inner.dismiss()

        self._loop.run(dismiss())


class Requests(BaseSubscription[Request]):
    """Iterate over it: `for request in requests`. Made by `Client.answer`."""

    def _wrap(self, item: Any) -> Request:
        return Request(self._loop, item)


class Changes:
    """Iterate over it: `for change in client.changes()`. It begins with how things are, and ends with the client."""

    def __init__(self, loop: LoopThread, inner: changes.Changes) -> None:
        self._loop = loop
        self._inner = inner

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        change = self._loop.run(self._next())
        if change is None:
            raise StopIteration
        return change

    async def _next(self) -> Change | None:
        return await anext(self._inner, None)

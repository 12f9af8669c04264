"""The asking side of request and reply: publishes a request and waits for the reply.

A request is an event with its own number (`request.id`); a reply is an event that names the client it is for
(`reply.to`) and that number (`reply.id`). Both are published and routed like all others, so a third party can subscribe
to them, too, and gets the request before the reply.

No reply is missed, because the client subscribes to its replies *before* it publishes the request. A reply is published
after its request, so after that subscription has started: it is delivered exactly once, even if brokers fail. No
request is repeated, and no answerer receives one twice. The subscription stays for later requests with the same filter
for replies, so only the first request waits for a starting cut.

Events that the answerer published before its reply, as far as the client subscribes to them, are delivered before it,
because causes come before effects. A client that requests a change and gets an answer has seen the events of that
change.

The answering side is in `gapless.client.answering`.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from gapless.client.codecs import Codec
from gapless.client.opening import Opening
from gapless.client.publications import EventLike, Payload, parts_of
from gapless.client.publishing import Publishing
from gapless.client.subscription import Subscription
from gapless.errors import (
    CallError,
    ClosedError,
    DeniedError,
    EventError,
    GaplessError,
    NoReplyError,
    RequestFailedError,
    SubscriptionEndedError,
)
from gapless.events import Event, PublishedEvent

__all__ = ["ANSWERABLE", "REPLY_TO", "Replies", "deadline_of", "failure_of", "reply_parts"]

REQUEST_ID, REQUEST_TIMEOUT = "request.id", "request.timeout_s"
REPLY_TO, REPLY_ID, REPLY_ERROR = "reply.to", "reply.id", "reply.error"
OURS = (REQUEST_ID, REQUEST_TIMEOUT, REPLY_TO, REPLY_ID, REPLY_ERROR)

ANSWERABLE = f"{REQUEST_ID} IS NOT NULL"
"""A filter that matches all requests."""

MAILBOXES_MAX = 64
"""The maximum number of subscriptions to replies. There is one for each different filter for replies."""
ERROR_MAX = 1_000
"""The maximum length in characters of a handler's error in a reply."""


class _Asker(Protocol):
    name: str

    def subscribe(self, filter: str) -> Opening[Subscription[Event]]: ...


def reply_parts(
    request: Event, attributes: EventLike, payload: Payload, codec: Codec | None
) -> tuple[Mapping[str, Any], bytes]:
    """Return the attributes and payload of a reply to this request, addressed to its caller."""
    return _with(attributes, payload, _address(request), codec)


def failure_of(request: Event, error: Exception) -> dict[str, Any]:
    """Return the attributes of a reply which reports that the handler failed."""
    return {**_address(request), REPLY_ERROR: f"{type(error).__name__}: {error}"[:ERROR_MAX]}


def deadline_of(request: Event) -> float | None:
    """Return the time at which the caller of a request stops waiting, in seconds since 1970 by the network's clock.
    None if it waits without a limit.
    """
    timeout_s = request.number(REQUEST_TIMEOUT, None)
    return None if timeout_s is None else request.stamp / 1e6 + timeout_s


def _address(request: Event) -> dict[str, Any]:
    number = request.attributes.get(REQUEST_ID)
    if number is None:
        raise CallError(f"event {request.id} is not a request, so no client waits for a reply to it; use publish()")
    return {REPLY_TO: request.publisher, REPLY_ID: number}


def _with(
    attributes: EventLike, payload: Payload, ours: dict[str, Any], codec: Codec | None
) -> tuple[Mapping[str, Any], bytes]:
    """Return the application's attributes and payload, with the attributes `ours` added."""
    theirs, content = parts_of((attributes, payload), codec)
    for name in OURS:
        if name in theirs:
            raise EventError(f"attribute {name!r} is reserved for request and reply; choose another name")
    return {**theirs, **ours}, content


class _Mailbox:
    """A subscription to replies, and the calls that wait for one."""

    def __init__(self) -> None:
        self.subscription: Subscription[Event] | None = None
        self.opening: asyncio.Task[None] | None = None
        self.pumping: asyncio.Task[None] | None = None
        self.waiting: dict[int, asyncio.Future[Event]] = {}
        self.users = 0


class Replies:
    """Sends the requests of one client, and passes each reply to the call that waits for it."""

    def __init__(self, client: _Asker, publishing: Publishing) -> None:
        self._client = client
        self._publishing = publishing
        self._to_us = "{} = '{}'".format(REPLY_TO, client.name.replace("'", "''"))
        self._mailboxes: dict[str, _Mailbox] = {}
        self._serial = 0

    async def ask(self, attributes: EventLike, payload: Payload, reply: str, timeout_s: float | None) -> Event:
        """Publish the request, and return the first reply to it."""
        self._serial += 1
        number = self._serial
        ours = {REQUEST_ID: number} if timeout_s is None else {REQUEST_ID: number, REQUEST_TIMEOUT: float(timeout_s)}
        checked = self._publishing.check(_with(attributes, payload, ours, self._publishing.codec))
        mailbox = self._mailbox(reply)
        mailbox.users += 1
        event: PublishedEvent | None = None
        try:
            async with asyncio.timeout(timeout_s):
                await self._open(mailbox, reply)
                answer = mailbox.waiting[number] = asyncio.get_running_loop().create_future()
                event = await self._publishing.publish(checked)
                found: Event = await answer
        except TimeoutError:
            raise NoReplyError(self._complaint(event, reply, timeout_s), event) from None
        finally:
            mailbox.users -= 1
            mailbox.waiting.pop(number, None)
        failure = found.text(REPLY_ERROR, None)
        if failure is not None:
            raise RequestFailedError(f"request {event.id} failed at {found.publisher}: {failure}", found)
        return found

    def _complaint(self, event: PublishedEvent | None, reply: str, timeout_s: float | None) -> str:
        if event is None:
            return (
                f"the request could not be published within {timeout_s:g} s; is the network up, or are "
                "publications blocked?"
            )
        if not self._publishing.is_safe(event):
            return f"request {event.id} was sent, but was neither confirmed nor answered within {timeout_s:g} s"
        return (
            f"request {event.id} is confirmed, but no reply that matches {reply!r} arrived within "
            f"{timeout_s:g} s; does a client answer such requests, and advertise such replies?"
        )

    # ---- subscriptions to replies -------------------------------------------------------------------------

    def _mailbox(self, reply: str) -> _Mailbox:
        mailbox = self._mailboxes.pop(reply, None)
        if mailbox is None:
            self._make_room()
            mailbox = _Mailbox()
        self._mailboxes[reply] = mailbox  # moves it to the end, so that the first is the least recently used
        return mailbox

    def _make_room(self) -> None:
        if len(self._mailboxes) < MAILBOXES_MAX:
            return
        for reply, mailbox in self._mailboxes.items():
            if not mailbox.users and mailbox.subscription is not None:
                del self._mailboxes[reply]
                closing = asyncio.ensure_future(mailbox.subscription.close())
                closing.add_done_callback(_look_at)
                return
        raise CallError(
            f"{MAILBOXES_MAX} requests with different filters for their replies are unfinished, which is the maximum; "
            "use fewer filters"
        )

    async def _open(self, mailbox: _Mailbox, reply: str) -> None:
        """Wait for the starting cut of a mailbox. If a caller stops waiting, the others still get it."""
        if mailbox.subscription is not None:
            return
        if mailbox.opening is None:
            mailbox.opening = asyncio.ensure_future(self._begin(mailbox, reply))
            mailbox.opening.add_done_callback(_look_at)
        await asyncio.shield(mailbox.opening)

    async def _begin(self, mailbox: _Mailbox, reply: str) -> None:
        try:
            mailbox.subscription = await self._subscribe(reply)
        except BaseException:
            self._forget(reply, mailbox)
            raise
        mailbox.pumping = asyncio.ensure_future(self._pump(mailbox, reply))

    async def _subscribe(self, reply: str) -> Subscription[Event]:
        """Subscribe to these replies. Errors of handlers are included if the client is permitted to see them."""
        if reply == "TRUE":
            return await self._client.subscribe(self._to_us)
        try:
            return await self._client.subscribe(f"(({reply}) OR {REPLY_ERROR} IS NOT NULL) AND {self._to_us}")
        except DeniedError:
            return await self._client.subscribe(f"({reply}) AND {self._to_us}")

    async def _pump(self, mailbox: _Mailbox, reply: str) -> None:
        assert mailbox.subscription is not None
        error: GaplessError = ClosedError("the client is closed")
        try:
            async for event in mailbox.subscription:
                number = event.attributes.get(REPLY_ID)
                answer = mailbox.waiting.get(number) if isinstance(number, int) else None
                if answer is not None and not answer.done():
                    answer.set_result(event)
        except SubscriptionEndedError as ended:
            error = SubscriptionEndedError(f"the reply may have been missed: {ended}", ended.ending_cut)
        except GaplessError as caught:
            error = caught
        self._forget(reply, mailbox)
        for answer in mailbox.waiting.values():
            if not answer.done():
                answer.set_exception(error)
                answer.exception()

    def _forget(self, reply: str, mailbox: _Mailbox) -> None:
        if self._mailboxes.get(reply) is mailbox:
            del self._mailboxes[reply]


def _look_at(task: "asyncio.Task[None]") -> None:
    """Retrieve the task's error, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()

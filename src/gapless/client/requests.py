"""Request and reply: one call that publishes a question and returns its answer.

A request is an event with a number of its own (`request.id`); a reply is an event that names the client it is for
(`reply.to`) and that number (`reply.id`). Both are published and routed like all others, so a third party that
subscribes sees them, too, the request before the reply.

Why no reply is missed: the client subscribes to its replies *before* it publishes the request. A reply is published
after its request, which is after the return of that subscription, so it is delivered; once, whatever fails. Nothing has
to be asked twice, and no answerer sees a request twice. The subscription stays for later requests that name the same
filter for replies, so only the first waits for a starting cut.

**Workers share requests** if they answer as a group: that is a shared durable subscription, so each request goes to one
of them. A request is confirmed when it is settled, by a reply or by `dismiss`, together with all that its worker took
before it and has settled. What a worker has not settled when it leaves, dies or takes too long goes to another.

And what the answerer published before its reply, as far as the client subscribes to it, was delivered before it: causes
come before effects. Whoever asks for a change and gets an answer need not ask whether the news of it has arrived.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from gapless.client.publications import EventLike, Payload, parts_of
from gapless.client.publishing import Publishing
from gapless.client.subscription import BaseSubscription, OnFull, Subscriber, Subscription
from gapless.errors import CallError, ClosedError, EventError, GaplessError, NoReplyError, SubscriptionEndedError
from gapless.events import Event, PublishedEvent

__all__ = ["ANSWERABLE", "Replies", "Request", "Requests"]

REQUEST_ID, REPLY_TO, REPLY_ID = "request.id", "reply.to", "reply.id"
OURS = (REQUEST_ID, REPLY_TO, REPLY_ID)

ANSWERABLE = f"{REQUEST_ID} IS NOT NULL"
"""What a request looks like to who answers."""

MAILBOXES_MAX = 64
"""Subscriptions to replies that are kept, one for each filter that was asked with."""


class _Answerer(Subscriber, Protocol):
    """The client that answers."""

    async def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent: ...


class _Asker(Protocol):
    """The client that asks."""

    name: str

    async def subscribe(self, filter: str) -> Subscription: ...  # noqa: A002 - the client's word for it


class Request:
    """A question, as the answering side sees it."""

    def __init__(
        self, client: _Answerer, event: Event, settle: Callable[[Event], None] | None = None, *,
        redelivered: bool = False,
    ) -> None:  # fmt: skip
        self.event = event
        self.redelivered = redelivered
        """Of a group: whether it may have been delivered before, to this worker or to another, without a reply."""
        self.attributes = event.attributes
        self.payload = event.payload
        self._client = client
        self._settle = settle
        self._is_answered = False

    def __repr__(self) -> str:
        return f"<Request {self.event.id} {self.attributes}>"

    async def reply(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Answer it. Returns when the answer is safe; it has to be advertised like all that is published."""
        self._check_unanswered()
        ours = {REPLY_TO: self.event.publisher, REPLY_ID: self.event.attributes[REQUEST_ID]}
        replying = self._client.publish(*_with(attributes, payload, ours))
        self._is_answered = True
        try:
            reply = await replying
        except EventError:
            self._is_answered = False
            raise
        if self._settle is not None:
            self._settle(self.event)
        return reply

    def dismiss(self) -> None:
        """Leave it without a reply; in a group, no other worker gets it."""
        self._check_unanswered()
        self._is_answered = True
        if self._settle is not None:
            self._settle(self.event)

    def _check_unanswered(self) -> None:
        if self._is_answered:
            raise CallError(f"request {self.event.id} is answered already, or dismissed; a request has one reply")


class Requests(BaseSubscription[Request]):
    """Iterate over it: `async for request in requests`. Made by `Client.answer`."""

    def __init__(
        self,
        client: _Answerer,
        took: Callable[[], None],
        name: str,
        text: str,
        on_full: OnFull,
        queue: int,
        again: Callable[[], Awaitable["Requests"]],
    ) -> None:
        super().__init__(client, took, name, text, on_full, queue, again)
        self._answerer = client

    def _pop(self, most: int) -> list[Request]:
        found = self._confirmations
        if found is None:
            return [Request(self._answerer, event) for event in self._pop_events(most)]
        return [
            Request(self._answerer, event, found.settle, redelivered=found.is_redelivered(event))
            for event in self._pop_events(most)
        ]


def _with(attributes: EventLike, payload: Payload, ours: dict[str, Any]) -> tuple[Mapping[str, Any], bytes]:
    """The application's attributes and payload, and our attributes beside them."""
    theirs, content = parts_of((attributes, payload))
    for name in OURS:
        if name in theirs:
            raise EventError(f"attribute {name!r} is set by request and reply; choose another name for yours")
    return {**theirs, **ours}, content


class _Mailbox:
    """A subscription to replies, and who waits for one."""

    def __init__(self) -> None:
        self.subscription: Subscription | None = None
        self.opening: asyncio.Task[None] | None = None
        self.pumping: asyncio.Task[None] | None = None
        self.waiting: dict[int, asyncio.Future[Event]] = {}
        self.users = 0


class Replies:
    """The asking side of one client."""

    def __init__(self, client: _Asker, publishing: Publishing) -> None:
        self._client = client
        self._publishing = publishing
        self._to_us = "{} = '{}'".format(REPLY_TO, client.name.replace("'", "''"))
        self._mailboxes: dict[str, _Mailbox] = {}
        self._serial = 0

    async def ask(self, attributes: EventLike, payload: Payload, reply: str, timeout_s: float | None) -> Event:
        """Publish the request and wait for its reply."""
        self._serial += 1
        number = self._serial
        checked = self._publishing.check(_with(attributes, payload, {REQUEST_ID: number}))
        mailbox = self._mailbox(reply)
        mailbox.users += 1
        event: PublishedEvent | None = None
        try:
            async with asyncio.timeout(timeout_s):
                await self._open(mailbox, reply)
                answer = mailbox.waiting[number] = asyncio.get_running_loop().create_future()
                event = await self._publishing.publish(checked)
                found: Event = await answer
                return found
        except TimeoutError:
            raise NoReplyError(self._complaint(event, reply, timeout_s), event) from None
        finally:
            mailbox.users -= 1
            mailbox.waiting.pop(number, None)

    def _complaint(self, event: PublishedEvent | None, reply: str, timeout_s: float | None) -> str:
        if event is None:
            return f"the request could not be published within {timeout_s:g} s; is the network up, or is it held back?"
        if not self._publishing.is_safe(event):
            return f"request {event.id} was sent, but not known to be safe within {timeout_s:g} s, nor answered"
        return (
            f"request {event.id} is safe, but no reply that matches {reply!r} came within {timeout_s:g} s; does "
            "somebody answer such requests, and advertise such replies?"
        )

    # ---- subscriptions to replies -------------------------------------------------------------------------

    def _mailbox(self, reply: str) -> _Mailbox:
        mailbox = self._mailboxes.pop(reply, None)
        if mailbox is None:
            self._make_room()
            mailbox = _Mailbox()
        self._mailboxes[reply] = mailbox  # the one used last stands last
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
        raise CallError(f"requests with {MAILBOXES_MAX} different filters for their replies are under way; use fewer")

    async def _open(self, mailbox: _Mailbox, reply: str) -> None:
        """Until the subscription has its starting cut; whoever gives up leaves it to the others."""
        if mailbox.subscription is not None:
            return
        if mailbox.opening is None:
            mailbox.opening = asyncio.ensure_future(self._begin(mailbox, reply))
            mailbox.opening.add_done_callback(_look_at)
        await asyncio.shield(mailbox.opening)

    async def _begin(self, mailbox: _Mailbox, reply: str) -> None:
        text = self._to_us if reply == "TRUE" else f"({reply}) AND {self._to_us}"
        try:
            mailbox.subscription = await self._client.subscribe(text)
        except BaseException:
            self._forget(reply, mailbox)
            raise
        mailbox.pumping = asyncio.ensure_future(self._pump(mailbox, reply))

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
            error = SubscriptionEndedError(f"the reply may have been missed: {ended}", ended.last)
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
    """So that nobody complains about an error that nobody waited for."""
    if not task.cancelled():
        task.exception()

"""Request and reply as one call: exact, even when brokers fail, and with an error if no reply arrives."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from gapless.client import Answer, Answering, Client, connect
from gapless.client.requests import MAILBOXES_MAX
from gapless.errors import (
    CallError,
    ClosedError,
    ConversionError,
    EventError,
    FilterError,
    NoReplyError,
    RequestFailedError,
    SubscriptionEndedError,
)
from gapless.events import Event
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.local import local


@dataclass
class Square:
    n: int
    square: int


async def _serve(client: Client, seen: list[int] | None = None) -> Answering:
    async def square(request: Event) -> Answer:
        n = request.integer("n")
        if seen is not None:
            seen.append(n)
        return {"topic": "square", "n": n, "square": n * n}, request.payload

    return await client.answer("topic = 'ask'", square)


@asynccontextmanager
async def _pair(first: str, second: str) -> AsyncIterator[tuple[Client, Client]]:
    async with connect(first, name="ann") as ann, connect(second, name="bob") as bob, asyncio.timeout(60):
        await ann.advertise("topic = 'ask'")
        yield ann, bob


def test_a_request_returns_its_reply() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, _pair(network.at("b0"), network.at("b2")) as (ann, bob):
            _serving = await _serve(bob)
            reply = await ann.request({"topic": "ask", "n": 7}, b"any bytes", reply="topic = 'square'")
            assert reply.publisher == bob.name
            assert (reply.attributes["square"], reply.payload) == (49, b"any bytes")
            assert reply.attributes["reply.to"] == ann.name
            assert await ann.request({"topic": "ask", "n": 8}, type=Square) == Square(8, 64)
            squares = await asyncio.gather(
                *(ann.request({"topic": "ask", "n": n}, reply="topic = 'square'", type=Square) for n in range(200))
            )
            assert squares == [Square(n, n * n) for n in range(200)]
            replies = [
                each
                for each in ann._connection_manager.registrations.subscriptions.values()
                if "reply.to" in each.filter
            ]
            assert len(replies) == 2, "one for each filter of replies, however many requests"
            with pytest.raises(ConversionError, match="does not fit Misfit: it has no attribute 'cube'"):
                await ann.request({"topic": "ask", "n": 1}, type=Misfit)

    run(main())


@dataclass
class Misfit:
    cube: int


def test_the_news_of_a_change_is_there_when_the_reply_is() -> None:
    """The answering client publishes an event before its reply, so the event arrives first."""

    async def main() -> None:
        async with local(chain(3)) as network, _pair(network.at("b0"), network.at("b2")) as (ann, bob):
            await bob.advertise("topic = 'news'")
            news = await ann.subscribe("topic = 'news'")

            async def change(request: Event) -> Answer:
                await bob.publish({"topic": "news", "n": request.attributes["n"]})
                return {"topic": "done"}

            async with bob.answer("topic = 'ask'", change):
                for n in range(20):
                    await ann.request({"topic": "ask", "n": n}, reply="topic = 'done'")
                    assert [event.attributes["n"] for event in await news.take(timeout_s=0)] == [n]

    run(main())


@pytest.mark.parametrize("victim", ["b0", "b3"], ids=["the asking side's", "the answering side's"])
def test_requests_are_answered_once_each_while_a_broker_dies(victim: str) -> None:
    async def main() -> None:
        opening = local(chain(4))
        async with opening as network, _pair(network.at("b0"), network.at("b3")) as (ann, bob):
            seen: list[int] = []
            _serving = await _serve(bob, seen)
            crashing: asyncio.Task[None] | None = None
            for n in range(60):
                if n == 20:
                    crashing = asyncio.create_task(network.crash(victim))
                square = await ann.request(
                    {"topic": "ask", "n": n}, reply="topic = 'square'", type=Square, timeout_s=30
                )
                assert square == Square(n, n * n)
            assert crashing is not None
            await crashing
            assert seen == list(range(60))

    run(main())


def test_a_request_without_a_reply_reports_what_is_known_of_it() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):
            complaint = rf"request {ann.name}:1 is confirmed, but no reply that matches 'n > 0' arrived within 0.3 s"
            with pytest.raises(NoReplyError, match=complaint) as raised:
                await ann.request({"topic": "ask"}, reply="n > 0", timeout_s=0.3)
            assert isinstance(raised.value, TimeoutError)
            assert raised.value.event is not None
            assert raised.value.event.attributes["topic"] == "ask"
            requests = await bob.subscribe("topic = 'ask'")
            await bob.advertise("TRUE")
            with pytest.raises(NoReplyError):
                await ann.request({"topic": "ask", "n": 1}, timeout_s=0.1)
            [late] = await requests.take(timeout_s=20)
            asking = asyncio.create_task(ann.request({"topic": "ask", "n": 2}, timeout_s=30))
            [next_one] = await requests.take(timeout_s=20)
            await bob.reply(late, {"n": 1})
            await bob.reply(next_one, {"n": 2})
            assert (await asking).attributes["n"] == 2, "the late reply to another request is no reply to this one"
            await network.stop()
            with pytest.raises(NoReplyError, match=r"was sent, but was neither confirmed nor answered within 0.1 s"):
                await ann.request({"topic": "ask"}, timeout_s=0.1)
            with pytest.raises(NoReplyError, match=r"could not be published within 0.1 s; is the network up"):
                await ann.request({"topic": "ask"}, reply="n = 7", timeout_s=0.1)
            for client in (ann, bob):
                await client.close(leave=False)  # no broker is left to say goodbye to

    run(main())


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "not advertised": (lambda c: c.request({"topic": "other"}), EventError, "none of your advertisements"),
    "a filter that cannot be read": (lambda c: c.request({"topic": "ask"}, reply="n >"), FilterError, "n >"),
    "no filter": (lambda c: c.request({"topic": "ask"}, reply=None), CallError, "a filter must be text"),
    "an attribute of ours": (
        lambda c: c.request({"topic": "ask", "request.id": 1}), EventError, "'request.id' is reserved for request",
    ),
    "no attributes": (lambda c: c.request(None), EventError, "attributes must be a dictionary"),
    "no time": (lambda c: c.request({"topic": "ask"}, timeout_s=-1), CallError, "timeout_s must be 0 or more"),
    "no type": (lambda c: c.request({"topic": "ask"}, type=dict), CallError, "which dict is not"),
    "no handler": (lambda c: c.answer("TRUE", None), CallError, "requests must be an asynchronous function"),
    "no worker at all": (lambda c: c.answer("TRUE", print, concurrency=0), CallError, "concurrency must be positive"),
    "answering what cannot be read": (lambda c: c.answer("n >", print), FilterError, "n >"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_request_gets_a_sentence_and_harms_nothing(mistake: str) -> None:
    act, kind, complaint = MISTAKES[mistake]

    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):
            _serving = await _serve(bob)
            with pytest.raises(kind, match=re.escape(complaint)):
                await act(ann)
            assert await ann.request({"topic": "ask", "n": 3}, type=Square) == Square(3, 9)

    run(main())


def test_any_event_that_is_a_request_can_be_replied_to() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):
            await bob.advertise("topic = 'square'")
            requests = await bob.durable("squares", "topic = 'ask'", group=True, ack="manual")
            asking = asyncio.create_task(ann.request({"topic": "ask", "n": 1}))
            request = await anext(requests)
            with pytest.raises(EventError, match="none of your advertisements"):
                await bob.reply(request, {"topic": "other"})
            with pytest.raises(EventError, match=r"attribute 'reply.to' is reserved for request and reply"):
                await bob.reply(request, {"topic": "square", "reply.to": "me"})
            sent = await bob.reply(request, {"topic": "square"})
            assert await asking == sent
            await request.ack()
            await ann.publish({"topic": "ask", "n": 2})
            with pytest.raises(CallError, match="is not a request, so no client waits for a reply"):
                await bob.reply(await anext(requests), {"topic": "square"})

    run(main())


def test_plain_events_are_no_requests() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):
            seen: list[int] = []
            async with await _serve(bob, seen):
                await ann.publish({"topic": "ask", "n": 1})
                await ann.request({"topic": "ask", "n": 2})
            assert seen == [2]

    run(main())


def test_errors_of_a_handler_travel_to_the_caller() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):

            async def fail(request: Event) -> Answer:
                if request.integer("n") == 1:
                    raise KeyError("ACME")
                if request.integer("n") == 2:
                    return {"topic": ["no", "attribute"]}
                return {"topic": "square"}

            async with bob.answer("topic = 'ask'", fail):
                with pytest.raises(RequestFailedError, match=rf"failed at {bob.name}: KeyError: 'ACME'") as raised:
                    await ann.request({"topic": "ask", "n": 1}, reply="topic = 'square'")
                assert raised.value.event.publisher == bob.name
                with pytest.raises(RequestFailedError, match="EventError: attribute 'topic' is of type list"):
                    await ann.request({"topic": "ask", "n": 2})
                await ann.request({"topic": "ask", "n": 3}, reply="topic = 'square'")
            no_coroutine: Any = lambda request: {"topic": "square"}  # noqa: E731
            async with bob.answer("topic = 'ask'", no_coroutine):
                with pytest.raises(
                    RequestFailedError, match="must be an asynchronous function, but its result is of type dict"
                ):
                    await ann.request({"topic": "ask", "n": 4})

    run(main())


def test_a_handler_is_cancelled_or_not_called_when_its_caller_has_given_up() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):
            called: list[int] = []
            ended = asyncio.Event()

            async def stall(request: Event) -> Answer:
                called.append(request.integer("n"))
                if called == [1]:
                    try:
                        await asyncio.Event().wait()
                    finally:
                        ended.set()
                return {"topic": "square"}

            async with bob.answer("topic = 'ask'", stall):
                impatient = [
                    asyncio.create_task(ann.request({"topic": "ask", "n": n}, timeout_s=timeout_s))
                    for n, timeout_s in ((1, 2.0), (2, 1.5), (3, 1.5))
                ]
                await ended.wait()
                for each in impatient:
                    with pytest.raises(NoReplyError):
                        await each
                assert (await ann.request({"topic": "ask", "n": 4}, timeout_s=60)).text("topic") == "square"
                assert called == [1, 4], "the second and third came too late"

    run(main())


def test_requests_that_wait_end_with_the_client_or_with_the_session() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, _pair(network.at("b0"), network.at("b1")) as (ann, _):
            asking = asyncio.create_task(ann.request({"topic": "ask"}, timeout_s=None))
            while not ann.is_all_confirmed or not ann._publishing.unsafe.published:
                await asyncio.sleep(0.01)
            await ann.subscribe("TRUE")
            replies = next(iter(ann._replies._mailboxes.values())).subscription
            assert replies is not None
            replies._end(SubscriptionEndedError("the network ended the subscription: away too long"))
            with pytest.raises(SubscriptionEndedError, match="the reply may have been missed: the network ended"):
                await asking
            assert ann._replies._mailboxes == {}
            asking = asyncio.create_task(ann.request({"topic": "ask"}, timeout_s=None))
            await asyncio.sleep(0.1)
            await ann.close()
            with pytest.raises(ClosedError):
                await asking

    run(main())


def test_filters_of_replies_are_kept_up_to_a_bound() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, _pair(network.url, network.url) as (ann, bob):
            _serving = await _serve(bob)
            for n in range(MAILBOXES_MAX + 3):
                assert await ann.request({"topic": "ask", "n": n}, reply=f"n = {n}", type=Square) == Square(n, n * n)
            assert len(ann._replies._mailboxes) == MAILBOXES_MAX
            while len(ann._connection_manager.registrations.subscriptions) > MAILBOXES_MAX:
                await asyncio.sleep(0.01)
            await _serving.close()
            waiting = [
                asyncio.create_task(ann.request({"topic": "ask", "n": -1}, reply=f"n = -{n}", timeout_s=None))
                for n in range(MAILBOXES_MAX)
            ]
            await asyncio.sleep(0)
            with pytest.raises(CallError, match="64 requests with different filters for their replies"):
                await ann.request({"topic": "ask", "n": -1}, reply="n = 1000")
            for task in waiting:
                task.cancel()

    run(main())

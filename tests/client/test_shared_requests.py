"""Workers that answer as a group: each request goes to one of them, and to another if that one fails."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from gapless import sync
from gapless.client import Answer, Client, DurableEvent, connect
from gapless.client.acks import AckCall, Acks
from gapless.errors import CallError, RequestFailedError
from gapless.events import Event
from gapless.names import AcknowledgeEach
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from tests.client.take_helpers import take
from tests.runtime.local import QUICK, local


def square_by(who: str) -> Callable[[Event], Awaitable[Answer]]:
    async def square(request: Event) -> Answer:
        n = request.integer("n")
        return {"topic": "square", "square": n * n, "worker": who}

    return square


async def ask(client: Client, n: int) -> Event:
    return await client.request({"topic": "ask", "n": n}, reply="topic = 'square'", timeout_s=60)


def test_each_request_goes_to_one_worker() -> None:
    async def main() -> None:
        async with (
            local(chain(2)) as network,
            connect(network.at("b0")) as ann,
            connect(network.at("b0")) as bob,
            connect(network.at("b1")) as cat,
            asyncio.timeout(120),
        ):
            await ann.advertise("topic = 'ask'")
            replies = await ann.subscribe("topic = 'square'")
            for each in (bob, cat):
                await each.answer("topic = 'ask'", square_by(each.name), group="workers")
            answers = await asyncio.gather(*(ask(ann, n) for n in range(20)))
            assert [each.integer("square") for each in answers] == [n * n for n in range(20)]
            assert {each.text("worker") for each in answers} == {bob.name, cat.name}, "they take turns"
            seen = await take(replies, 20)
            assert len({each.integer("reply.id") for each in seen}) == 20, "no request was answered twice"

    run(main())


def test_unanswered_requests_go_to_another_worker_and_are_marked() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann, asyncio.timeout(120):
            await ann.advertise("topic = 'ask'")
            asking: list[asyncio.Task[Event]] = []
            seen: list[tuple[int, bool]] = []

            async def all_but_one(request: Event) -> Answer:
                if request.integer("n") == 1:
                    await asyncio.Event().wait()
                return await square_by("bob")(request)

            async def note(request: Event) -> Answer:
                assert isinstance(request, DurableEvent)
                seen.append((request.integer("n"), request.redelivered))
                return await square_by("cat")(request)

            bob = connect(network.url)
            async with bob as one, one.answer("topic = 'ask'", all_but_one, group="workers", concurrency=2):
                asking = [asyncio.create_task(ask(ann, n)) for n in range(3)]
                assert [(await asking[n]).text("worker") for n in (0, 2)] == ["bob", "bob"]
            async with connect(network.url) as cat:
                await cat.answer("topic = 'ask'", note, group="workers")
                assert (await asking[1]).text("worker") == "cat"
                assert seen[0] == (1, True)

    run(main())


def test_an_unanswered_request_goes_to_no_other_handler() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann, asyncio.timeout(120):
            await ann.advertise("topic = 'ask'")
            seen: asyncio.Queue[int] = asyncio.Queue()

            async def drop(request: Event) -> Answer:
                await seen.put(request.integer("n"))
                return None

            async with connect(network.url) as bob:
                async with bob.answer("topic = 'ask'", drop, group="workers"):
                    await ann.publish_many({"topic": "ask", "n": n, "request.id": n} for n in range(2))
                    assert [await seen.get() for _ in range(2)] == [0, 1]
                    await ann.publish({"topic": "ask", "n": 2, "request.id": 2})
                    assert await seen.get() == 2
                await ann.publish({"topic": "ask", "n": 3, "request.id": 3})
            async with connect(network.url) as cat, cat.answer("topic = 'ask'", drop, group="workers"):
                assert await seen.get() == 3

    run(main())


def test_each_event_is_acknowledged_when_it_is_finished() -> None:
    said: list[AckCall] = []

    async def main() -> None:
        found = Acks("s", said.append, is_manual=True, is_shared=True)
        events = [found.wrap(number, Event("p", number, {})) for number in (1, 2)]
        for number, event in enumerate(events, 1):
            found.took(number, event)
        found.finish(events[1])
        found.finish(events[1])

    run(main())
    assert said == [AcknowledgeEach("s", [2], is_urgent=False)]


def test_how_it_is_shared_has_to_make_sense() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            with pytest.raises(CallError, match="redeliver_s is for subscriptions that a group shares; add group="):
                await client.answer("TRUE", square_by("bob"), redeliver_s=5)
            with pytest.raises(CallError, match="redeliver_s must be between"):
                await client.answer("TRUE", square_by("bob"), group="workers", redeliver_s=0)
            with pytest.raises(CallError, match="the name of a durable subscription is empty"):
                await client.answer("TRUE", square_by("bob"), group="")

    run(main())


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with Fleet(local_network(chain(1), f=0, runtime=QUICK), tmp_path) as fleet:
        fleet.start_all()
        sync.connect(fleet.config.url, timeout_s=60).close()
        yield fleet.config.url


def test_without_an_event_loop_workers_share_requests_too(url: str) -> None:
    def square(request: Event) -> Answer:
        n = request.integer("n")
        if n == 0:
            raise ValueError("not zero")
        return {"topic": "square", "square": n * n, "thread": threading.current_thread().name}

    with sync.connect(url) as ann, sync.connect(url) as bob, sync.connect(url) as cat:
        ann.advertise("topic = 'ask'")
        with (
            bob.answer("topic = 'ask'", square, group="workers", concurrency=2),
            cat.answer("topic = 'ask'", square, group="workers"),
        ):
            answers = [ann.request({"topic": "ask", "n": n}, timeout_s=60) for n in range(1, 6)]
            assert [each.integer("square") for each in answers] == [1, 4, 9, 16, 25]
            assert {each.publisher for each in answers} == {bob.name, cat.name}
            assert all(each.text("thread").startswith("gapless-answer") for each in answers)
            with pytest.raises(RequestFailedError, match="ValueError: not zero"):
                ann.request({"topic": "ask", "n": 0}, timeout_s=60)

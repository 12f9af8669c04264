"""Workers that answer as a group: each request goes to one of them, and to another if that one does not answer."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless import sync
from gapless.client import Client, Request, Requests, connect
from gapless.client.confirmations import Confirmations
from gapless.errors import CallError
from gapless.events import Event
from gapless.names import Acknowledge
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from tests.client.taking import take
from tests.runtime.local import QUICK, local


async def worker(client: Client) -> Requests:
    """Ready to answer as one of the group."""
    await client.advertise("topic = 'square'")
    return await client.answer("topic = 'ask'", group="workers")


async def reply(request: Request, who: str) -> None:
    n = request.event.integer("n")
    await request.reply({"topic": "square", "square": n * n, "worker": who})


async def serve(requests: Requests, who: str) -> None:
    async for request in requests:
        await reply(request, who)


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
            serving = [asyncio.create_task(serve(await worker(each), each.name)) for each in (bob, cat)]
            answers = await asyncio.gather(*(ask(ann, n) for n in range(20)))
            assert [each.integer("square") for each in answers] == [n * n for n in range(20)]
            assert {each.text("worker") for each in answers} == {bob.name, cat.name}, "they take turns"
            seen = await take(replies, 20)
            assert len({each.integer("reply.id") for each in seen}) == 20, "no request was answered twice"
            del serving

    run(main())


def test_what_a_worker_leaves_unanswered_goes_to_another_and_says_so() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann, asyncio.timeout(120):
            await ann.advertise("topic = 'ask'")
            async with connect(network.url) as bob:
                requests = await worker(bob)
                asking = [asyncio.create_task(ask(ann, n)) for n in range(3)]
                first, _, last = [await anext(requests) for _ in range(3)]
                assert not first.redelivered
                await reply(first, "bob")
                await reply(last, "bob")  # but not the second, which was taken before
                assert (await asking[0]).text("worker") == "bob"
            async with connect(network.url) as cat:
                requests = await worker(cat)
                second = await anext(requests)
                assert (second.event.integer("n"), second.redelivered) == (1, True)
                await reply(second, "cat")
                assert [(await each).text("worker") for each in asking] == ["bob", "cat", "bob"]

    run(main())


def test_what_is_dismissed_goes_to_nobody_else() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann, asyncio.timeout(120):
            await ann.advertise("topic = 'ask'")
            async with connect(network.url) as bob:
                requests = await worker(bob)
                await ann.publish_many({"topic": "ask", "n": n, "request.id": n} for n in range(3))
                taken = [await anext(requests) for _ in range(3)]
                for request in taken[:2]:
                    request.dismiss()
                with pytest.raises(CallError, match="is answered already, or dismissed"):
                    await reply(taken[0], "bob")
            async with connect(network.url) as cat:
                assert (await anext(await worker(cat))).event.integer("n") == 2

    run(main())


def test_only_what_nothing_unsettled_was_taken_before_is_confirmed() -> None:
    said: list[Acknowledge] = []
    found = Confirmations("s", said.append, is_manual=True, is_shared=True)
    events = [Event("p", seq, {}) for seq in range(1, 6)]
    for number, event in enumerate(events, 11):
        found.took(number, event)
    found.settle(events[1])
    found.settle(events[2])
    assert said == []
    found.settle(events[0])
    assert [each.count for each in said] == [13]
    found.settle(events[4])
    found.revoke([14])
    assert [each.count for each in said] == [13, 15], "the fourth is another's, and holds up nothing"
    found.settle(events[4])
    assert len(said) == 2


def test_how_it_is_shared_has_to_make_sense() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            with pytest.raises(CallError, match="redeliver_s is for requests that a group shares: say group="):
                await client.answer("TRUE", redeliver_s=5)
            with pytest.raises(CallError, match="redeliver_s goes from"):
                await client.answer("TRUE", group="workers", redeliver_s=0)
            with pytest.raises(CallError, match="the name of a subscription is empty"):
                await client.answer("TRUE", group="")

    run(main())


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A network of its own process."""
    with Fleet(local_network(chain(1), f=0, runtime=QUICK), tmp_path) as fleet:
        fleet.start_all()
        sync.connect(fleet.config.url, timeout_s=60).close()
        yield fleet.config.url


def test_without_an_event_loop_workers_share_requests_too(url: str) -> None:
    with sync.connect(url) as ann, sync.connect(url) as bob:
        ann.advertise("topic = 'ask'")
        bob.advertise("topic = 'square'")
        with bob.answer("topic = 'ask'", group="workers") as requests:
            ann.publish_many({"topic": "ask", "n": n, "request.id": n} for n in range(3))
            first, second = next(requests), next(requests)
            assert (first.redelivered, second.redelivered) == (False, False)
            first.dismiss()
            second.reply({"topic": "square", "square": 1})
        with bob.answer("topic = 'ask'", group="workers") as requests:
            last = next(requests)
            assert last.event.integer("n") == 2

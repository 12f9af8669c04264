"""A client that is used in another event loop raises a clear error instead of one of asyncio."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gapless
from gapless.errors import CallError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from tests.runtime.local import QUICK, local


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = local_network(chain(2), runtime=QUICK)
    with Fleet(config, tmp_path_factory.mktemp("fleet")) as fleet:
        fleet.start_all()
        gapless.sync.connect(config.url, timeout_s=60).close()
        yield config.url


async def _call(call: Callable[[], Any]) -> None:
    call()


def _request(client: gapless.Client) -> gapless.Event:
    return gapless.Event(client.name, 1, {"request.id": 1})


async def _nothing(request: gapless.Event) -> None:
    pass


CALLS: dict[str, Callable[[gapless.Client, gapless.DurableSubscription], Any]] = {
    "advertise": lambda client, _: client.advertise("TRUE"),
    "subscribe": lambda client, _: client.subscribe("TRUE"),
    "read": lambda client, _: client.read("TRUE"),
    "answer": lambda client, _: client.answer("TRUE", _nothing),
    "publish": lambda client, _: client.publish({"n": 1}),
    "publish many": lambda client, _: client.publish_many([{"n": 1}]),
    "request": lambda client, _: client.request({"n": 1}),
    "durable subscriptions": lambda client, _: client.admin.list(),
    "move": lambda client, _: client.admin.move("work", "now"),
    "end": lambda client, _: client.admin.end("nobody"),
    "position": lambda client, _: client.position(),
    "milestones": lambda client, _: client.milestones("TRUE"),
    "flush": lambda client, _: client.flush(),
    "publish nowait": lambda client, _: _call(lambda: client.publish_nowait({"n": 1})),
    "changes": lambda client, _: _call(client.connection_changes),
    "reply": lambda client, subscription: client.reply(_request(client), {"n": 1}),
    "unsubscribe": lambda client, subscription: client.unsubscribe(subscription),
    "acknowledge all": lambda _, subscription: subscription.ack(),
    "caught up": lambda _, subscription: subscription.caught_up(),
    "take": lambda _, subscription: subscription.take(),
    "iterate": lambda _, subscription: anext(subscription),
    "close the subscription": lambda _, subscription: subscription.close(),
    "close": lambda client, _: client.close(),
}


@pytest.mark.parametrize("call", CALLS)
def test_in_another_event_loop_every_call_names_the_loop_of_the_client(url: str, call: str) -> None:
    async def first() -> tuple[gapless.Client, gapless.DurableSubscription]:
        client = await gapless.connect(url)
        await client.advertise("TRUE")
        return client, await client.durable("work", "TRUE", ack="manual")

    async def second(client: gapless.Client, subscription: gapless.DurableSubscription) -> None:
        async with asyncio.timeout(20):
            await CALLS[call](client, subscription)

    client, subscription = asyncio.run(first())
    with pytest.raises(CallError, match="belongs to the event loop in which it was connected, which has ended"):
        asyncio.run(second(client, subscription))


def test_an_event_of_another_event_loop_raises_the_same_error(url: str) -> None:
    async def first() -> gapless.DurableEvent:
        client = await gapless.connect(url)
        await client.advertise("TRUE")
        work = await client.durable("other work", "TRUE", ack="manual")
        await client.publish({"n": 1})
        return await anext(work)

    async def within(event: gapless.DurableEvent) -> None:
        async with event:
            pass

    event = asyncio.run(first())
    for call in (event.ack, event.nack, event.in_progress, lambda: within(event)):
        with pytest.raises(CallError, match="this event belongs to the event loop in which it was connected"):
            asyncio.run(asyncio.wait_for(call(), 20))


def test_without_a_running_event_loop_a_plain_call_raises_an_error(url: str) -> None:
    async def first() -> gapless.Client:
        client = await gapless.connect(url)
        await client.advertise("TRUE")
        return client

    client = asyncio.run(first())
    for call in (lambda: client.publish_nowait({"n": 1}), client.connection_changes):
        with pytest.raises(CallError, match="belongs to the event loop in which it was connected, which has ended"):
            call()
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(first())
    with pytest.raises(CallError, match="which is not running here"):
        client.publish_nowait({"n": 1})
    loop.run_until_complete(client.close())
    loop.close()


def test_a_client_of_a_loop_that_still_runs_is_refused_in_a_second_one(url: str) -> None:
    async def first() -> None:
        async with gapless.connect(url) as client:
            await client.advertise("TRUE")
            with pytest.raises(
                CallError, match=r"which is another event loop: connect in the current loop .* or use gapless\.sync"
            ):
                await asyncio.to_thread(asyncio.run, publish(client))
            assert (await client.publish({"n": 2})).seq == 1

    async def publish(client: gapless.Client) -> None:
        await client.publish({"n": 1})

    asyncio.run(first())


@pytest.mark.parametrize("name", ["publish", "subscribe", "advertise"])
def test_a_connection_that_was_not_awaited_explains_how_to_get_a_client(name: str) -> None:
    connecting = gapless.connect("gapless://127.0.0.1:1")
    complaint = f"connect(…) was not awaited, so you cannot use {name} yet: write await connect(…), or async with"
    with pytest.raises(CallError, match=re.escape(complaint)):
        getattr(connecting, name)
    assert not hasattr(connecting, "nonsense")


def test_a_subscription_ends_with_its_block() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client, asyncio.timeout(20):
            await client.advertise("TRUE")
            async with client.subscribe("n > 0") as subscription:
                event = await client.publish({"n": 1})
                assert await anext(subscription) == event
            assert subscription.has_ended
            assert subscription.ending_cut == {client.name: 1}
            with pytest.raises(ZeroDivisionError):
                async with client.subscribe("TRUE") as other:
                    1 / 0  # noqa: B018
            assert other.has_ended

    run(main())


def test_a_subscription_ends_with_its_block_without_an_event_loop_too(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        with client.subscribe("n > 0") as subscription:
            event = client.publish({"n": 1})
            assert next(subscription) == event
        assert subscription.has_ended
        assert subscription.ending_cut is not None
        assert subscription.ending_cut[client.name] == 1


def test_a_block_without_a_broker_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.client.subscription.CLOSE_S", 0.05)

    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client, asyncio.timeout(20):
            subscription = await client.subscribe("TRUE")
            async with subscription:
                await network.crash("b0")
            assert not subscription.has_ended

    run(main())

"""Durable subscriptions at real brokers outlive their clients and a restart of all brokers."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless import sync
from gapless.client import Client, DurableSubscription, connect
from gapless.errors import CallError, DeniedError, SkippedError, SubscriptionEndedError
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.settings import RuntimeSettings

from .local import Local, local
from .secure import secure

PATIENCE_S = 120.0


class Item(msgspec.Struct):
    n: int


def named(test: Callable[[Local, Client], Awaitable[None]], brokers: int = 3, **options: Any) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            network = await stack.enter_async_context(local(chain(brokers), **options))
            speaker = await stack.enter_async_context(connect(network.at("b0"), name="ann"))
            await speaker.advertise("n > 0")
            async with asyncio.timeout(PATIENCE_S):
                await test(network, speaker)

    run(main())


async def publish(speaker: Client, first: int, last: int) -> None:
    await speaker.publish_many([({"n": number}, b"") for number in range(first, last + 1)])


async def take(subscription: DurableSubscription, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [int(event.attributes["n"]) for event in await subscription.take(count - len(found))]
    return found


LISTENER = """
import asyncio, sys, gapless

async def main():
    async with gapless.connect(sys.argv[1], name="bob") as bob:
        subscription = await bob.durable("billing", "n > 0")
        await subscription.take()
        await subscription.ack()
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_killed_client_is_shown_as_the_listener_until_its_session_expires_and_no_longer() -> None:
    async def test(network: Local, speaker: Client) -> None:
        bob = await asyncio.create_subprocess_exec(
            sys.executable, "-c", LISTENER, network.at("b2"), stdout=subprocess.PIPE
        )
        assert bob.stdout is not None
        opened = asyncio.create_task(bob.stdout.readline())
        while not opened.done():
            await publish(speaker, 1, 1)
            await asyncio.sleep(0.2)
        [found] = await speaker.admin.list()
        assert found.client.startswith("bob")
        bob.kill()
        await bob.wait()
        while (await speaker.admin.list())[0].client:
            await asyncio.sleep(0.1)
        async with connect(network.at("b0"), name="cat") as cat:
            await cat.durable("billing", "n > 0")
            [found] = await speaker.admin.list()
            assert found.client.startswith("cat")

    named(test, session_s=1.0)


@pytest.mark.parametrize("group", [False, True])
def test_the_lag_of_an_idle_attached_client_does_not_grow(*, group: bool) -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            subscription = await bob.durable("billing", "n > 0", group=group, ack="manual")
            await publish(speaker, 1, 1)
            [event] = await subscription.take()
            await event.ack()
            while True:
                [found] = await speaker.admin.list()
                if found.position.timestamp > event.position.timestamp + 1_000_000:
                    break
                await asyncio.sleep(0.1)

    named(test)


def test_it_continues_elsewhere_after_the_taken_events() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            subscription = await bob.durable("billing", "n > 0")
            assert subscription.name == "billing"
            await publish(speaker, 1, 100)
            assert await take(subscription, 60) == list(range(1, 61))
        await publish(speaker, 101, 200)
        async with connect(network.at("b0"), name="cat") as cat:
            subscription = await cat.durable("billing", "n > 0")
            assert await take(subscription, 140) == list(range(61, 201))
            await publish(speaker, 201, 210)
            assert await take(subscription, 10) == list(range(201, 211))

    named(test)


def test_deliveries_waiting_in_a_closing_client_are_redelivered() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            subscription = await bob.durable("billing", "n > 0")
            other = await bob.subscribe("n > 0")  # none of its events are taken
            await publish(speaker, 1, 20)
            assert await take(subscription, 5) == [1, 2, 3, 4, 5]
            await subscription.close()
            assert not other.has_ended
            subscription = await bob.durable("billing", "n > 0")
            assert await take(subscription, 15) == list(range(6, 21))

    named(test)


def test_redeliveries_are_marked_and_first_deliveries_are_not() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            subscription = await bob.durable("billing", "n > 0", ack="manual")
            await publish(speaker, 1, 1)
            first = await anext(subscription)
            assert not first.redelivered
            await first.ack()
            await publish(speaker, 2, 2)
            assert not (await anext(subscription)).redelivered
        await publish(speaker, 3, 3)
        async with connect(network.at("b0"), name="cat") as cat:
            subscription = await cat.durable("billing", "n > 0", ack="manual")
            found = [await anext(subscription) for _ in range(2)]
            assert [(event.integer("n"), event.redelivered) for event in found] == [(2, True), (3, False)]
            await cat.close(leave=False)  # as in a crash
        async with connect(network.at("b1"), name="dan") as dan:
            subscription = await dan.durable("billing", "n > 0")
            assert [(await anext(subscription)).redelivered for _ in range(2)] == [True, True]

    named(test)


def test_manually_acknowledged_events_are_not_redelivered_and_all_others_are() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            subscription = await bob.durable("billing", "n > 0", ack="manual")
            await publish(speaker, 1, 20)
            events: list[Any] = []
            while len(events) < 20:
                events += await subscription.take()
            await subscription.ack(events[9])
            await events[3].ack()  # the tenth acknowledgement covers it
            await bob.close(leave=False)
        async with connect(network.at("b1"), name="cat") as cat:
            subscription = await cat.durable("billing", "n > 0", ack="manual")
            event = await anext(subscription)
            assert event.attributes == {"n": 11}
            assert event == (await anext(aiter(await cat.read("n = 11"))))
            await subscription.ack(event.position)
            await subscription.close()
            typed = await cat.durable("billing", "n > 0", ack="manual", type=Item)
            assert await anext(typed) == Item(12)
            assert await anext(typed) == Item(13)
            await typed.ack()
            await typed.close()
            subscription = await cat.durable("billing", "n > 0")
            assert await take(subscription, 7) == list(range(14, 21))

    named(test)


def test_a_second_client_ends_the_first_with_a_reason() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob, connect(network.at("b0"), name="cat") as cat:
            first = await bob.durable("billing", "n > 0", ack="manual")
            await publish(speaker, 1, 3)
            assert await take(first, 3) == [1, 2, 3]
            await first.ack(Position.at(0))
            second = await cat.durable("billing", "n > 0")
            taken = r"the durable subscription 'billing' has a new owner: 'cat-\w+' has attached to it"
            with pytest.raises(SubscriptionEndedError, match=taken):
                await anext(first)
            with pytest.raises(SubscriptionEndedError, match="has a new owner"):
                await first.ack()
            assert await take(second, 3) == [1, 2, 3]
            await second.ack()
            again = await first.resubscribe()
            await publish(speaker, 4, 4)
            assert [int(event.attributes["n"]) for event in await again.take()] == [4]

    named(test)


def test_another_filter_under_the_same_name_is_refused_unless_it_is_to_be_replaced() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            await (await bob.durable("billing", "n > 0")).close()
            with pytest.raises(CallError, match="'billing' has another filter, 'n > 0'; attach with that one, or"):
                await bob.durable("billing", "n > 1")
            await publish(speaker, 1, 3)
            subscription = await bob.durable("billing", "n > 1", replace=True)
            assert await take(subscription, 2) == [2, 3]

    named(test)


@pytest.mark.parametrize(("options", "sentence"), [
    ({"name": ""}, "the name of a durable subscription is empty; choose a name"),
    ({"name": "x" * 201}, "has 1 to 200 characters, but this one has 201"),
    ({"name": 7}, "the name of a durable subscription must be text"),
    ({"name": "x", "ack": "never"}, "ack is 'auto' or 'manual', not 'never'"),
    ({"name": "x", "replace": "yes"}, "replace must be True or False"),
    ({"name": "taken"}, "this client is already attached to the durable subscription 'taken'; detach it first"),
])  # fmt: skip
def test_each_bad_use_has_a_sentence(options: dict[str, Any], sentence: str) -> None:
    async def test(network: Local, speaker: Client) -> None:
        await speaker.durable("taken", "n > 0")
        with pytest.raises(CallError, match=sentence):
            await speaker.durable(filter="n > 0", **options)

    named(test, brokers=2)


def test_a_protocol_without_durable_names_reports_it() -> None:
    async def main() -> None:
        async with local(2, protocol="srpt") as network, connect(network.url) as client:
            with pytest.raises(CallError, match="protocol 'srpt' has no durable subscriptions; use subscribe"):
                await client.durable("billing", "n > 0")

    run(main())


def test_they_are_listed_moved_and_ended() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            assert await bob.admin.list() == []
            await publish(speaker, 1, 3)
            begin = await bob.position()
            subscription = await bob.durable("billing", "n > 0")
            await publish(speaker, 4, 6)
            await take(subscription, 3)
            [found] = await speaker.admin.list()
            assert (found.name, found.filter, found.client) == ("billing", "n > 0", bob.name)
            assert Position.at(0) < found.position <= await bob.position()
            await speaker.admin.move("billing", "earliest")
            with pytest.raises(SubscriptionEndedError, match="the durable subscription 'billing' was moved"):
                await anext(subscription)
            subscription = await bob.durable("billing", "n > 0")
            assert await take(subscription, 6) == [1, 2, 3, 4, 5, 6]
            await speaker.admin.move("billing", begin)
            with pytest.raises(SubscriptionEndedError):
                await anext(subscription)
            assert await take(await bob.durable("billing", "n > 0"), 3) == [4, 5, 6]
            await speaker.admin.delete("billing")
            assert await bob.admin.list() == []
            with pytest.raises(CallError, match="there is no durable subscription 'billing'"):
                await speaker.admin.move("billing", "earliest")
            await bob.durable("billing", "n > 5")

    named(test)


def test_losses_in_history_are_reported() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            await (await bob.durable("billing", "n > 0")).close()
        for number in range(1, 300):
            await speaker.publish({"n": number}, bytes(1_000))
        async with connect(network.at("b2"), name="cat") as cat:
            subscription = await cat.durable("billing", "n > 0")
            with pytest.raises(SkippedError):
                await take(subscription, 299)

    named(test, history_bytes=3 * 65_536)


def test_brokers_may_die_while_somebody_listens() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            subscription = await bob.durable("billing", "n > 0")
            await publish(speaker, 1, 50)
            assert await take(subscription, 30) == list(range(1, 31))
            await network.crash("b2")
            await publish(speaker, 51, 60)
            assert await take(subscription, 30) == list(range(31, 61))
            await subscription.close()
            await publish(speaker, 61, 70)
            assert await take(await bob.durable("billing", "n > 0"), 10) == list(range(61, 71))

    named(test, brokers=4)


def test_the_same_without_an_event_loop() -> None:
    async def test(network: Local, speaker: Client) -> None:
        await asyncio.to_thread(_listen, network.at("b2"), 0)
        await publish(speaker, 1, 10)
        assert await asyncio.to_thread(_listen, network.at("b2"), 4) == [1, 2, 3, 4]
        assert await asyncio.to_thread(_listen_by_hand, network.at("b1")) == [5, 6, 7, 8]
        assert await asyncio.to_thread(_listen, network.at("b0"), 4) == [7, 8, 9, 10]

    named(test)


def _listen(url: str, count: int) -> list[int]:
    with sync.connect(url, name="bob") as client:
        subscription = client.durable("billing", "n > 0")
        found = [int(next(subscription).attributes["n"]) for _ in range(count)]
        assert [item.name for item in client.admin.list()] == ["billing"]
        return found


def _listen_by_hand(url: str) -> list[int]:
    with sync.connect(url, name="cat") as client:
        subscription = client.durable("billing", "n > 0", ack="manual")
        events: list[Any] = []
        while len(events) < 4:
            events += subscription.take(4 - len(events))
        subscription.ack(events[1])
        return [int(event.attributes["n"]) for event in events]


def test_after_a_crash_of_all_brokers_publishing_continues_after_what_was_confirmed(tmp_path: Path) -> None:
    settings = RuntimeSettings(heartbeat_ms=100, suspect_ms=800, join_ms=2_000)
    with Fleet(local_network(chain(3), f=1, runtime=settings, data=tmp_path / "data"), tmp_path / "logs") as fleet:
        fleet.start_all()
        run(fleet.until_whole(PATIENCE_S))
        run(_before(fleet))
        for name in fleet.names:
            fleet.kill(name)
        for name in reversed(fleet.names):
            fleet.start(name)
        run(_after(fleet))


async def _before(fleet: Fleet) -> None:
    async with asyncio.timeout(PATIENCE_S), connect(fleet.config.url, name="ann") as ann:
        await ann.advertise("n > 0")
        subscription = await ann.durable("billing", "n > 0")
        await publish(ann, 1, 30)
        assert await take(subscription, 20) == list(range(1, 21))
        await subscription.ack()


async def _after(fleet: Fleet) -> None:
    async with asyncio.timeout(PATIENCE_S), connect(fleet.config.url, name="bob", timeout_s=PATIENCE_S) as bob:
        subscription = await bob.durable("billing", "n > 0")
        assert await take(subscription, 10) == list(range(21, 31))
        assert [item.client for item in await bob.admin.list()] == [bob.name]


def test_rights_count_for_names_too(tmp_path: Path) -> None:
    async def main() -> None:
        shop = {"publish": ["topic = 'shop'"], "subscribe": ["topic = 'shop'"]}
        news = {"publish": [], "subscribe": ["topic = 'news'"], "history": True}
        users: dict[str, dict[str, Any]] = {
            "ann": {**shop, "history": True, "named": ["bill%"]},
            "ben": {**shop, "named": True},
            "cat": {**news, "named": True, "status": True},
        }
        async with asyncio.timeout(PATIENCE_S), secure(chain(2), tmp_path, users=users) as network:
            clients = [await connect(network.at("b0"), name="c", credentials=network.certified(user)) for user in users]
            ann, ben, cat = clients
            subscription = await ann.durable("billing", "topic = 'shop'")
            with pytest.raises(DeniedError, match="user 'ben' may not read history"):
                await ben.durable("billing", "topic = 'shop'")
            with pytest.raises(DeniedError, match=r"user 'ann' may not .* 'orders'"):
                await ann.durable("orders", "topic = 'shop'")
            with pytest.raises(
                DeniedError, match="may not list all durable subscriptions; this requires status = true"
            ):
                await ann.admin.list()
            with pytest.raises(DeniedError, match="user 'cat' may not subscribe to \"topic = 'shop'\""):
                await cat.durable("billing", "topic = 'shop'")
            with pytest.raises(CallError, match="'billing' has another filter"):
                await cat.durable("billing", "topic = 'news'")
            with pytest.raises(DeniedError, match="user 'cat' may not subscribe to \"topic = 'shop'\""):
                await cat.admin.delete("billing")
            await ann.advertise("topic = 'shop'")
            event = await ann.publish({"topic": "shop"})
            assert await anext(subscription) == event
            for client in clients:
                await client.close()

    run(main())

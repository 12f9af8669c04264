"""Shared subscriptions at real brokers: members take turns, die, and return."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gapless import sync
from gapless.checkers import check
from gapless.client import Client, DurableEvent, DurableSubscription, connect
from gapless.errors import AckTooLateError, CallError, DeniedError, SubscriptionEndedError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.trace import merge_parts

from .local import Local, local
from .secure import secure

PATIENCE_S = 120.0
MEMBER = """
import sys, time
from gapless import sync
with sync.connect(sys.argv[1], name="doomed") as client:
    subscription = client.durable("billing", "n > 0", group=True, ack="manual")
    print("ready", flush=True)
    for event in subscription:
        print(event.attributes["n"], flush=True)
"""


def grouped(test: Callable[[Local, Client], Awaitable[None]], brokers: int = 3) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            network = await stack.enter_async_context(local(chain(brokers), f=1))
            speaker = await stack.enter_async_context(connect(network.at("b0"), name="ann"))
            await speaker.advertise("n > 0")
            async with asyncio.timeout(PATIENCE_S):
                await test(network, speaker)

    run(main())


async def publish(speaker: Client, first: int, last: int) -> None:
    await speaker.publish_many([({"n": number}, b"") for number in range(first, last + 1)])


class Worker:
    def __init__(self, subscription: DurableSubscription) -> None:
        self.subscription = subscription
        self.got: list[int] = []
        self.task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        async for event in self.subscription:
            self.got.append(int(event.attributes["n"]))


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.05)


def test_each_event_goes_to_one_of_them() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob, connect(network.at("b0"), name="cat") as cat:
            workers = [Worker(await each.durable("billing", "n > 0", group=True)) for each in (bob, cat)]
            for first in range(1, 200, 20):
                await publish(speaker, first, first + 19)
            await until(lambda: sum(len(worker.got) for worker in workers) >= 200)
            assert sorted(workers[0].got + workers[1].got) == list(range(1, 201))
            assert all(worker.got == sorted(worker.got) for worker in workers)
            assert all(len(worker.got) > 20 for worker in workers)
            [found] = await cat.admin.list()
            assert found.is_shared

    grouped(test)


def test_a_member_is_killed_and_another_gets_what_it_had_not_confirmed() -> None:
    async def test(network: Local, speaker: Client) -> None:
        doomed = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MEMBER, network.at("b2"), stdout=subprocess.PIPE
        )
        assert doomed.stdout is not None
        assert await doomed.stdout.readline() == b"ready\n"
        async with connect(network.at("b0"), name="cat") as cat:
            worker = Worker(await cat.durable("billing", "n > 0", group=True))
            await publish(speaker, 1, 20)
            had = int(await doomed.stdout.readline())
            doomed.kill()
            await doomed.wait()
            await publish(speaker, 21, 40)
            await until(lambda: len(set(worker.got)) >= 40)
            assert had in worker.got
            assert sorted(worker.got) == list(range(1, 41))

    grouped(test)


def test_an_event_not_acknowledged_in_time_belongs_to_another_member() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob, connect(network.at("b0"), name="cat") as cat:
            lazy = await bob.durable("billing", "n > 0", group=True, ack="manual", redeliver_s=2.0)
            await publish(speaker, 1, 1)
            event = await anext(lazy)
            assert not event.redelivered
            other = await cat.durable("billing", "n > 0", group=True, ack="manual", redeliver_s=2.0)
            again = await anext(other)
            assert again.id == event.id
            assert again.redelivered
            await again.ack()
            with pytest.raises(AckTooLateError, match=f"{event.id} was not acknowledged in time") as caught:
                await event.ack()
            assert caught.value.events == [event.id]

    grouped(test)


def test_after_the_whole_group_was_away_redeliveries_are_marked() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            lazy = await bob.durable("billing", "n > 0", group=True, ack="manual")
            await publish(speaker, 1, 3)
            assert [(await anext(lazy)).redelivered for _ in range(2)] == [False, False]
            await until(
                lambda: len(lazy._pending_events) == 1
            )  # the third event has arrived at the client, too, and counts as delivered
        await publish(speaker, 4, 4)
        async with connect(network.at("b0"), name="cat") as cat:
            other = await cat.durable("billing", "n > 0", group=True)
            found = [await anext(other) for _ in range(4)]
            assert [event.integer("n") for event in found] == [1, 2, 3, 4]
            assert [event.redelivered for event in found] == [True, True, True, False]

    grouped(test)


def test_redeliveries_are_marked_also_with_automatic_acknowledgement() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob, connect(network.at("b0"), name="cat") as cat:
            lazy = await bob.durable("billing", "n > 0", group=True, ack="manual", redeliver_s=2.0)
            await publish(speaker, 1, 1)
            event = await anext(lazy)
            again = await anext(await cat.durable("billing", "n > 0", group=True, redeliver_s=2.0))
            assert (again, again.redelivered) == (event, True)
            await again.ack()
            with pytest.raises(AckTooLateError):
                await event.ack()

    grouped(test)


def test_a_leaving_member_leaves_unacknowledged_events_to_others() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b0"), name="cat") as cat:
            async with connect(network.at("b2"), name="bob") as bob:
                subscription = await bob.durable("billing", "n > 0", group=True, ack="manual")
                await publish(speaker, 1, 10)
                events: list[DurableEvent] = []
                while len(events) < 10:
                    events += await subscription.take()
                await subscription.ack(events[4])
                worker = Worker(await cat.durable("billing", "n > 0", group=True))
                await subscription.close()
            await publish(speaker, 11, 12)
            await until(lambda: len(worker.got) >= 7)
            assert sorted(worker.got) == [6, 7, 8, 9, 10, 11, 12]

    grouped(test)


def test_it_is_there_without_an_event_loop_too() -> None:
    async def test(network: Local, speaker: Client) -> None:
        def work() -> list[int]:
            with sync.connect(network.at("b2"), name="dan") as dan:
                subscription = dan.durable("billing", "n > 0", group=True, ack="manual")
                found = []
                for event in subscription:
                    event.ack()
                    found.append(int(event.attributes["n"]))
                    if len(found) == 5:
                        return found
            return []

        working = asyncio.get_running_loop().run_in_executor(None, work)
        async with connect(network.at("b0"), name="cat") as cat:
            while not await cat.admin.list():
                await asyncio.sleep(0.05)
            await publish(speaker, 1, 5)
            assert await working == [1, 2, 3, 4, 5]
            worker = Worker(await cat.durable("billing", "n > 0", group=True))
            await publish(speaker, 6, 6)
            await until(lambda: len(worker.got) >= 1)
            assert worker.got == [6]

    grouped(test)


def test_a_group_that_is_ended_ends_for_all_with_a_reason() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob, connect(network.at("b0"), name="cat") as cat:
            subscriptions = [await each.durable("billing", "n > 0", group=True) for each in (bob, cat)]
            await speaker.admin.delete("billing")
            for subscription in subscriptions:
                with pytest.raises(SubscriptionEndedError, match="the durable subscription 'billing' was ended"):
                    await anext(subscription)

    grouped(test)


@pytest.mark.parametrize(("options", "sentence"), [
    ({"name": "x", "group": 1}, "group must be True or False"),
    ({"name": "x", "redeliver_s": 5.0}, "redeliver_s is for subscriptions that a group shares"),
    ({"name": "x", "group": True, "redeliver_s": 0.0}, "redeliver_s must be between 0.1 s and 86,400 s, but is 0"),
    ({"name": "x", "group": True, "redeliver_s": "1"}, "redeliver_s must be a number of seconds"),
    ({"name": "alone", "group": True}, "the durable subscription 'alone' is not shared; attach without group"),
])  # fmt: skip
def test_unshareable_settings_are_refused_with_a_message(options: dict[str, Any], sentence: str) -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob:
            await (await bob.durable("alone", "n > 0")).close()
            with pytest.raises(CallError, match=sentence):
                await bob.durable(filter="n > 0", **options)

    grouped(test)


def test_shared_and_exclusive_attachments_do_not_mix() -> None:
    async def test(network: Local, speaker: Client) -> None:
        async with connect(network.at("b2"), name="bob") as bob, connect(network.at("b0"), name="cat") as cat:
            await bob.durable("billing", "n > 0", group=True)
            with pytest.raises(CallError, match="the durable subscription 'billing' is shared; attach with group=True"):
                await cat.durable("billing", "n > 0")
            with pytest.raises(CallError, match="is already attached to the durable subscription 'billing'"):
                await bob.durable("billing", "n > 0", group=True)

    grouped(test)


def test_deliveries_to_a_group_are_checked_from_the_parts_of_its_clients(tmp_path: Path) -> None:
    """One of the clients that write parts is killed."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            network = await stack.enter_async_context(local(chain(3), f=1))
            come = partial(connect, trace=tmp_path)
            ann = await stack.enter_async_context(come(network.at("b0"), name="ann"))
            await ann.advertise("n > 0")
            async with come(network.at("b0"), name="cat") as cat:
                worker = Worker(await cat.durable("billing", "n > 0", group=True))
                bob = await come(network.at("b2"), name="bob")
                lazy = await bob.durable("billing", "n > 0", group=True, ack="manual")
                await publish(ann, 1, 20)
                await lazy.take(1)
                await lazy.ack()
                await lazy.take(1)
                await bob.close(leave=False)
                await publish(ann, 21, 40)
                await until(lambda: len(set(worker.got)) >= 39)
                await worker.subscription.ack()
            async with come(network.at("b1"), name="eve") as eve:
                subscription = await eve.durable("billing", "n > 0", group=True)
                await publish(ann, 41, 45)
                found: list[Any] = []
                while len(found) < 5:
                    found += await subscription.take()
                await subscription.ack()

    run(asyncio.wait_for(main(), PATIENCE_S))
    trace = merge_parts(tmp_path, quiesced=True)
    verdict = check(trace)
    assert verdict.status == "valid", verdict.reason
    numbers = [int(row.event_id.rpartition(":")[2]) for row in trace.history if row.client == "group:billing"]
    assert numbers == list(range(1, 46))


def test_successive_clients_of_a_durable_subscription_are_checked_as_one_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network, connect(network.at("b0"), name="ann", trace=tmp_path) as ann:
            await ann.advertise("n > 0")
            for number, broker in enumerate(("b2", "b0", "b1")):
                async with connect(network.at(broker), name=f"worker{number}", trace=tmp_path) as client:
                    subscription = await client.durable("billing", "n > 0", ack="manual")
                    await publish(ann, 10 * number + 1, 10 * number + 10)
                    taken: list[Any] = []
                    while len(taken) < 7:
                        taken += await subscription.take(7 - len(taken))
                    await subscription.ack()
                    await client.close(leave=number < 2)
            async with connect(network.at("b1"), name="last", trace=tmp_path) as client:
                subscription = await client.durable("billing", "n > 0")
                while len(taken) < 16:
                    taken += await subscription.take()
                await subscription.ack()

    run(asyncio.wait_for(main(), PATIENCE_S))
    trace = merge_parts(tmp_path, quiesced=True)
    verdict = check(trace)
    assert verdict.status == "valid", verdict.reason
    numbers = [int(row.event_id.rpartition(":")[2]) for row in trace.history if row.client == "name:billing"]
    assert numbers == list(range(1, 31))


def test_a_member_needs_the_right_to_all_that_may_be_dealt_to_it(tmp_path: Path) -> None:
    """A plain subscription of dan would be narrowed, but the coordinator chooses the events of a group."""

    async def main() -> None:
        rights = {"subscribe": ["topic = 'shop'"], "history": True, "named": True}
        users: dict[str, dict[str, Any]] = {
            "ann": {"publish": ["topic = 'shop'"], **rights},
            "dan": {"publish": [], **rights, "subscribe": ["topic = 'shop' AND x > 5"], "outside": "narrow"},
        }
        async with asyncio.timeout(PATIENCE_S), secure(chain(2), tmp_path, users=users) as network:
            ann, dan = [
                await connect(network.at("b0"), name="c", credentials=network.certified(user)) for user in users
            ]
            shared = await ann.durable("billing", "topic = 'shop'", group=True)
            with pytest.raises(DeniedError, match="user 'dan' may not subscribe to \"topic = 'shop'\""):
                await dan.durable("billing", "topic = 'shop'", group=True)
            await ann.advertise("topic = 'shop'")
            event = await ann.publish({"topic": "shop", "x": 1})
            assert await anext(shared) == event
            for client in (ann, dan):
                await client.close()

    run(main())

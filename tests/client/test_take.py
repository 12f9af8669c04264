"""Both clients take events with a timeout, and can begin a new subscription after one has ended."""

import asyncio
import time

import pytest

from gapless.client import connect
from gapless.errors import CallError, NoEventError, SlowConsumerError, SubscriptionEndedError
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import local


def test_taking_respects_its_timeout_and_loses_nothing() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("n > 0")
            for seconds in (0, 0.05):
                started = time.monotonic()
                with pytest.raises(
                    NoEventError, match=f"no event that matches 'n > 0' arrived within {seconds} s"
                ) as raised:
                    await subscription.take(timeout_s=seconds)
                assert isinstance(raised.value, TimeoutError)
                assert time.monotonic() - started >= seconds - 0.02  # an event loop reads its clock once per turn
            event = await client.publish({"n": 1})
            assert await subscription.take(timeout_s=20) == [event]
            await subscription.close()
            assert await subscription.take(timeout_s=0) == []
            with pytest.raises(CallError, match="timeout_s must be 0 or more, but is -1"):
                await subscription.take(timeout_s=-1)
            with pytest.raises(CallError, match="most must be positive, but is 0"):
                await subscription.take(0)

    run(main())


def test_many_short_waits_see_every_event_once() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client, asyncio.timeout(30):
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            publishing = asyncio.create_task(client.publish_many({"n": n} for n in range(2_000)))
            seen: list[int] = []
            while len(seen) < 2_000:
                try:
                    seen += [event.seq for event in await subscription.take(7, timeout_s=0.0005)]
                except TimeoutError:
                    continue
            assert seen == list(range(1, 2_001))
            await publishing

    run(main())


def test_a_subscription_that_was_too_slow_can_restart_and_knows_the_gap() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            subscription = await client.subscribe("n >= 0", max_pending=10)
            with pytest.raises(CallError, match="the subscription to 'n >= 0' has not ended"):
                await subscription.resubscribe()
            await client.publish_many({"n": n} for n in range(50))
            while not subscription.has_ended:
                await asyncio.sleep(0.01)
            assert len(await take(subscription, 10)) == 10
            with pytest.raises(SlowConsumerError) as raised:
                await subscription.take()
            assert isinstance(raised.value, SubscriptionEndedError)
            assert raised.value.ending_cut == subscription.ending_cut == {client.name: 10}
            again = await subscription.resubscribe()
            assert type(again) is type(subscription)
            assert (again.filter, again.has_ended, again._limit) == ("n >= 0", False, 10)
            event = await client.publish({"n": 50})
            assert await take(again, 1) == [event]
            assert again.starting_cut == {client.name: event.seq}

    run(main())

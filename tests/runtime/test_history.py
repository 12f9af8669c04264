"""Clients of real brokers read history from any position; discarded history is reported."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from gapless import sync
from gapless.client import Client, Subscription, connect
from gapless.errors import CallError, SkippedError
from gapless.overlay import chain
from gapless.protocols.parts.bounds import READINGS_MAX
from gapless.runtime.event_loop import run

from .local import Local, local

PATIENCE_S = 120.0


class Item(msgspec.Struct):
    n: int


def history(test: Callable[[Local, Client, Client], Awaitable[None]], brokers: int = 3, **options: Any) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            network = await stack.enter_async_context(local(chain(brokers), f=1, **options))
            speaker = await stack.enter_async_context(connect(network.at("b0"), name="ann"))
            reader = await stack.enter_async_context(connect(network.at(f"b{brokers - 1}"), name="bob"))
            await speaker.advertise("n > 0")
            async with asyncio.timeout(PATIENCE_S):
                await test(network, speaker, reader)

    run(main())


async def numbers(subscription: Subscription) -> list[int]:
    return [int(event.attributes["n"]) async for event in subscription]


def test_a_read_ends_after_events_confirmed_before_the_call() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 3_001)])
        assert await numbers(await reader.read("n > 0")) == list(range(1, 3_001))
        assert await numbers(await reader.read("n IN (5, 3000)")) == [5, 3_000]
        reading = await reader.read("n > 2995", type=Item)
        assert [item async for item in reading] == [Item(number) for number in range(2_996, 3_001)]
        assert reading.has_ended

    history(test)


def test_positions_divide_history_without_a_gap_or_an_overlap() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        published = [await speaker.publish({"n": number}) for number in range(1, 6)]
        middle = await reader.position()
        await speaker.publish({"n": 6})
        assert await numbers(await reader.read("n > 0", until=middle)) == [1, 2, 3, 4, 5]
        assert await numbers(await reader.read("n > 0", since=middle)) == [6]
        events = [event async for event in await reader.read("n > 0")]
        third = events[2].position
        assert await numbers(await reader.read("n > 0", since=third)) == [4, 5, 6]
        assert await numbers(await reader.read("n > 0", since=third, until=events[4].position)) == [4, 5]
        assert await numbers(await reader.read("n > 0", since="1h")) == [1, 2, 3, 4, 5, 6]
        assert [event.id for event in events[:5]] == [event.id for event in published]

    history(test)


def test_first_what_was_and_then_what_is_published_while_brokers_die() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 2_001)])
        subscription = await reader.subscribe("n > 0", since="earliest")
        found = [int(event.attributes["n"]) for event in await subscription.take(10)]
        await network.crash("b3")
        for number in range(2_001, 2_101):
            await speaker.publish({"n": number})
        while found[-1] < 2_100:
            found += [int(event.attributes["n"]) for event in await subscription.take()]
        assert found == list(range(1, 2_101))
        assert reader.broker != "b3"

    history(test, brokers=4)


def test_entries_dropped_by_its_broker_are_read_from_the_backup() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 501)])
        await reader.position()
        await network.crash("b0")
        await network.start("b0")
        assert await numbers(await reader.read("n > 0")) == list(range(1, 501))

    history(test)


def test_missing_history_is_reported_in_place_and_reading_continues() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        first = await speaker.publish({"n": 1})
        start = await reader.position()
        for number in range(2, 600):
            await speaker.publish({"n": number}, b"." * 1_000)
            if number % 20 == 0:
                await reader.position()
        await reader.position()
        reading = await reader.read("n > 0", since=start)
        with pytest.raises(SkippedError, match="are lost: no broker holds them any longer") as caught:
            await reading.take()
        kept = await numbers(reading)
        assert kept == list(range(kept[0], 600))
        [(begin, end)] = caught.value.lost[first.publisher]
        assert (begin in (1, 2), end) == (True, kept[0] - 1), "1 may be told, too: it was dropped with what follows"
        assert await numbers(await reader.read("n > 0")) == kept, "the earliest is what there is"

    history(test, history_bytes=3 * 65_536)


def test_a_slow_reader_delays_no_other() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 501)])
        slow = await reader.subscribe("n > 0", since="earliest")
        await slow.take(1)
        for _ in range(10):
            await speaker.publish_many([({"n": number}, b"") for number in range(501, 701)])
        found = 1
        while found < 2_500:
            found += len(await slow.take())
        assert found == 2_500

    history(test, window=300, delivery_window=100)


@pytest.mark.parametrize(
    ("since", "until", "complaint"),
    [
        ("yesterday", None, "'yesterday', which is not a position; write 'earliest', 'now', an age such as '10m'"),
        ("2999-01-01", None, "which is in the future"),
        (-5, None, "is of type int"),
        (1.5, None, "is of type float"),
        ("1h", "2h", "is not after since"),
    ],
)
def test_a_position_that_is_none_is_refused(since: Any, until: Any, complaint: str) -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        with pytest.raises(CallError, match=complaint):
            await reader.read("n > 0", since=since, until=until)

    history(test)


def test_an_operator_sees_what_is_kept_and_for_which_readers() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 501)])
        reading = await reader.read("n > 0")
        await reading.take(1)
        content = network.brokers["b2"].report()["overview"]["history"]
        assert (content["reads"], content["bytes"]) == (1, 0), "it reads what others keep"
        [waiting] = content["waiting"]
        assert (waiting["subscription"], waiting["waits_for"]) == (reading.id, [reader.name])
        assert network.brokers["b0"].report()["overview"]["history"]["bytes"] > 5_000
        assert len(await numbers(reading)) == 499
        assert network.brokers["b2"].report()["overview"]["history"]["reads"] == 0

    history(test, delivery_window=10)


def test_a_client_reads_with_a_few_subscriptions_at_a_time() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 101)])

        async def read() -> int | str:
            try:
                return len(await numbers(await reader.read("n > 0")))
            except CallError as refused:
                return str(refused)

        refusal, *found = sorted(await asyncio.gather(*(read() for _ in range(READINGS_MAX + 1))), key=str)
        assert found == [100] * READINGS_MAX
        assert "reads history with more than 16 subscriptions at a time" in str(refusal)
        assert len(await numbers(await reader.read("n > 50"))) == 50

    history(test, delivery_window=10)


def test_programs_without_an_event_loop_read_history_too() -> None:
    async def test(network: Local, speaker: Client, reader: Client) -> None:
        await speaker.publish_many([({"n": number}, b"") for number in range(1, 101)])

        def read() -> list[int]:
            with sync.connect(network.at("b2"), name="cid") as client:
                end = client.position()
                subscription = client.subscribe("n > 0", since="earliest")
                some = [int(event.attributes["n"]) for event in client.read("n > 0", until=end)]
                return some + [int(next(subscription).attributes["n"]) for _ in range(100)]

        assert await asyncio.to_thread(read) == [*range(1, 101), *range(1, 101)]

    history(test)

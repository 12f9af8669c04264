"""Events of durable subscriptions: single acknowledgements, nacks, extensions, and dead letters."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import gapless
from gapless import sync
from gapless.errors import AckTooLateError, CallError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.local import Local, local

Story = Callable[[Local, gapless.Client], Awaitable[None]]


def assert_notified(story: Story) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(chain(3), protocol="gapless") as network,
            gapless.connect(network.at("b0"), name="ann") as ann,
        ):
            await ann.advertise("n > 0")
            await story(network, ann)

    run(main())


async def publish(ann: gapless.Client, *numbers: int) -> None:
    await ann.publish_many([{"n": number} for number in numbers])


def number(event: gapless.Event) -> int:
    return event.integer("n")


def test_one_event_is_acknowledged_and_the_earlier_ones_are_redelivered() -> None:
    async def story(_: Local, ann: gapless.Client) -> None:
        work = await ann.durable("work", "n > 0", ack="manual")
        await publish(ann, 1, 2, 3, 4)
        one, two, three = [await anext(work) for _ in range(3)]
        assert [one.delivery_count, one.redelivered] == [1, False]
        await two.ack()
        await two.ack()
        await three.ack()
        await work.close()
        again = await ann.durable("work", "n > 0", ack="manual")
        assert [number(await anext(again)) for _ in range(2)] == [1, 4]
        await again.ack()
        await again.close()
        rest = await ann.durable("work", "n > 0")
        await publish(ann, 5)
        assert number(await anext(rest)) == 5

    assert_notified(story)


def test_a_returned_event_is_redelivered_after_its_delay_and_its_count_outlives_the_client() -> None:
    async def story(network: Local, ann: gapless.Client) -> None:
        work = await ann.durable("work", "n > 0", ack="manual")
        await publish(ann, 1, 2)
        one = await anext(work)
        began = asyncio.get_running_loop().time()
        await one.nack(delay_s=0.2)
        await one.ack()  # it remains negatively acknowledged
        await (await anext(work)).ack()
        again = await anext(work)
        assert asyncio.get_running_loop().time() - began >= 0.19, "the loop's clock counts milliseconds"
        assert (number(again), again.delivery_count, again.redelivered) == (1, 2, True)
        with pytest.raises(CallError, match="was already acknowledged or returned"):
            await one.nack()
        await again.nack(delay_s=3600)
        await again.in_progress()
        await work.close()
        async with gapless.connect(network.at("b2"), name="bob") as bob:
            third = await anext(await bob.durable("work", "n > 0", ack="manual"))
            assert (number(third), third.delivery_count) == (1, 3)

    assert_notified(story)


def test_a_block_acknowledges_its_event_and_gives_it_back_when_it_raises() -> None:
    async def story(_: Local, ann: gapless.Client) -> None:
        async with ann.durable("work", "n > 0", ack="manual") as work:
            await publish(ann, 1, 2)
            seen = []
            async for event in work:
                try:
                    async with event:
                        seen.append((number(event), event.delivery_count))
                        if event.delivery_count < 3 and number(event) == 1:
                            raise ValueError("not now")
                except ValueError:
                    continue
                if len(seen) == 4:
                    break
            assert sorted(seen) == [(1, 1), (1, 2), (1, 3), (2, 1)]

    assert_notified(story)


@pytest.mark.parametrize("group", [False, True])
def test_an_event_that_fails_too_often_becomes_a_dead_letter(group: bool) -> None:
    async def story(network: Local, ann: gapless.Client) -> None:
        async with gapless.connect(network.at("b2"), name="bob") as bob:
            letters = await ann.subscribe("dead_letter.subscription = 'work'")
            work = await bob.durable("work", "n > 0", ack="manual", group=group, max_deliveries=2)
            event = await ann.publish({"n": 1, "topic": "order"}, b"bytes")
            for count in (1, 2):
                found = await anext(work)
                assert (number(found), found.delivery_count) == (1, count)
                await found.nack()
            letter = await anext(letters)
            assert letter.publisher == bob.name
            assert letter.payload == b"bytes"
            attributes = {**letter.attributes}
            assert gapless.Position(str(attributes.pop("dead_letter.position"))).publisher == ann.name
            assert attributes == {
                "dead_letter.subscription": "work",
                "dead_letter.reason": "nack",
                "dead_letter.deliveries": 2,
                "dead_letter.publisher": ann.name,
                "dead_letter.seq": event.seq,
                "event.n": 1,
                "event.topic": "order",
            }
            await publish(ann, 2)
            assert number(await anext(work)) == 2
            await work.ack()
            await work.close()
            later = await bob.durable("work", "n > 0", ack="manual", group=group)
            await publish(ann, 3)
            assert number(await anext(later)) == 3, "the event of the letter is acknowledged"

    assert_notified(story)


def test_an_event_not_acknowledged_in_time_becomes_a_dead_letter() -> None:
    async def story(network: Local, ann: gapless.Client) -> None:
        async with gapless.connect(network.at("b1"), name="bob") as bob:
            letters = await ann.subscribe("dead_letter.subscription IS NOT NULL")
            choices = {"ack": "manual", "group": True, "redeliver_s": 0.3, "max_deliveries": 1}
            first = await bob.durable("work", "n > 0", **choices)  # type: ignore[call-overload]
            second = await ann.durable("work", "n > 0", **choices)  # type: ignore[call-overload]
            await publish(ann, 1)
            letter = await anext(letters)
            assert letter.text("dead_letter.reason") == "not acknowledged"
            assert letter.integer("event.n") == 1
            with pytest.raises(gapless.errors.NoEventError):
                await asyncio.gather(first.take(2, timeout_s=0.5), second.take(2, timeout_s=0.5))

    assert_notified(story)


def test_a_dead_letter_that_its_subscription_gets_is_no_reason_for_another() -> None:
    async def story(_: Local, ann: gapless.Client) -> None:
        work = await ann.durable("all", "TRUE", ack="manual", max_deliveries=1)
        await publish(ann, 1)
        await (await anext(work)).nack()
        for count in (1, 2, 3):
            letter = await anext(work)
            assert letter.text("dead_letter.subscription") == "all"
            assert letter.delivery_count == count
            await letter.nack()

    assert_notified(story)


def test_a_dead_letter_that_is_too_large_leaves_out_the_payload() -> None:
    async def story(_: Local, ann: gapless.Client) -> None:
        letters = await ann.subscribe("dead_letter.subscription = 'work'")
        work = await ann.durable("work", "n > 0", ack="manual", max_deliveries=1)
        await ann.publish({"n": 1}, bytes(ann.event_max - 30))
        await (await anext(work)).nack()
        letter = await anext(letters)
        assert letter.payload == b""
        assert letter.boolean("dead_letter.is_cut")
        assert letter.integer("event.n") == 1

    assert_notified(story)


def test_a_member_that_asks_for_more_time_keeps_its_event_longer() -> None:
    async def story(network: Local, ann: gapless.Client) -> None:
        async with gapless.connect(network.at("b2"), name="bob") as bob:
            mine = await bob.durable("work", "n > 0", ack="manual", group=True, redeliver_s=1.0)
            await publish(ann, 1)
            event = await anext(mine)
            other = await ann.durable("work", "n > 0", ack="manual", group=True, redeliver_s=1.0)
            for _ in range(4):
                await asyncio.sleep(0.4)
                await event.in_progress()
            assert other.backlog == 0
            await asyncio.sleep(0)
            again = await anext(other)
            assert (number(again), again.delivery_count) == (1, 2)
            for call in (event.in_progress, event.ack, event.ack):
                with pytest.raises(AckTooLateError, match=event.id):
                    await call()
            with pytest.raises(AckTooLateError, match=event.id):
                async with event:
                    pass
            await again.ack()

    assert_notified(story)


def test_an_acknowledgement_that_failed_fails_again() -> None:
    async def story(network: Local, ann: gapless.Client) -> None:
        work = await ann.durable("work", "n > 0", ack="manual")
        await publish(ann, 1, 2)
        first, second = await anext(work), await anext(work)
        waiting = asyncio.create_task(first.ack())
        await asyncio.sleep(0)
        assert work._acks is not None
        work._acks.fail(gapless.SubscriptionEndedError("it was moved", {}))
        for call in (lambda: waiting, first.ack, first.ack, second.ack):
            with pytest.raises(gapless.SubscriptionEndedError, match="it was moved"):
                await call()

    assert_notified(story)


def test_invalid_calls_are_refused() -> None:
    async def story(_: Local, ann: gapless.Client) -> None:
        with pytest.raises(CallError, match='max_deliveries requires ack="manual"'):
            await ann.durable("work", "n > 0", max_deliveries=3)
        with pytest.raises(CallError, match="max_deliveries must be positive"):
            await ann.durable("work", "n > 0", ack="manual", max_deliveries=0)
        async with ann.durable("work", "n > 0") as work:
            await publish(ann, 1)
            event = await anext(work)
            with pytest.raises(CallError, match=r'nack\(\) is for ack="manual"'):
                await event.nack()
            with pytest.raises(CallError, match=r'in_progress\(\) is for ack="manual"'):
                await event.in_progress()
            copy = gapless.DurableEvent(event.publisher, event.seq, event.attributes)
            with pytest.raises(CallError, match="this copy"):
                await copy.nack()
        async with ann.durable("other", "n > 0", ack="manual") as work:
            await publish(ann, 2)
            with pytest.raises(CallError, match="delay_s must be between 0 s and 86,400 s"):
                await (await anext(work)).nack(delay_s=-1)

    assert_notified(story)


def test_without_an_event_loop_the_calls_are_the_same() -> None:
    def work(url: str) -> None:
        with sync.connect(url) as client, client.durable("work", "n > 0", ack="manual") as events:
            client.advertise("n > 0")
            client.publish_many([{"n": 1}, {"n": 2}])
            first = next(events)
            first.in_progress()
            first.nack()
            with next(events):
                pass
            with pytest.raises(ValueError, match="oh"), next(events):
                raise ValueError("oh")
            last = next(events)
            assert (last.integer("n"), last.delivery_count) == (1, 3)
            last.ack()

    async def story(network: Local, _: gapless.Client) -> None:
        await asyncio.to_thread(work, network.url)

    assert_notified(story)

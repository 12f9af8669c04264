"""Real brokers and clients with the default protocol: a history read continues at another broker."""

import asyncio

import gapless
from gapless.events import Event
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.local import local

COUNT = 300


def test_history_is_read_and_followed_by_what_is_published() -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(chain(3), protocol="gapless") as network,
            gapless.connect(network.at("b0")) as publisher,
            gapless.connect(network.at("b2")) as reader,
        ):
            await publisher.advertise("TRUE")
            await publisher.publish_many({"n": n, "even": n % 2 == 0} for n in range(COUNT))
            replay = await reader.subscribe("even = TRUE", since="earliest")
            found = [await anext(replay) for _ in range(COUNT // 2)]
            assert [event.integer("n") for event in found] == list(range(0, COUNT, 2))
            await replay.caught_up()
            await publisher.publish({"n": COUNT, "even": True})
            last: Event = await anext(replay)
            assert last.integer("n") == COUNT
            begin, end = found[9].position, last.position
            reading = await reader.read("TRUE", since=begin, until=end)
            assert [event.integer("n") async for event in reading] == list(range(19, COUNT + 1))
            assert await reader.position() > end
            milestones = await reader.milestones("TRUE", since="earliest")
            assert milestones.gone == ()

    run(main())


def test_a_replay_continues_when_its_broker_dies() -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(chain(3), protocol="gapless") as network,
            gapless.connect(network.at("b0")) as publisher,
            gapless.connect(network.at("b2")) as reader,
        ):
            await publisher.advertise("TRUE")
            await publisher.publish_many({"n": n} for n in range(COUNT))
            replay = await reader.subscribe("TRUE", since="earliest")
            numbers = [(await anext(replay)).integer("n") for _ in range(10)]
            await network.crash(reader.broker)
            await publisher.publish({"n": COUNT})
            while numbers[-1] < COUNT:
                numbers.append((await anext(replay)).integer("n"))
            assert numbers == list(range(COUNT + 1))

    run(main())


def test_a_durable_subscription_has_no_lag_when_nothing_was_published_since() -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(chain(3)) as network,
            gapless.connect(network.at("b0")) as publisher,
            gapless.connect(network.at("b1")) as operator,
        ):

            async def lag_s() -> float:
                [found] = await operator.admin.list()
                return found.lag_s

            await publisher.advertise("n > 0")
            async with gapless.connect(network.at("b2")) as reader, await reader.durable("keep", "n > 0") as durable:
                await publisher.publish({"n": 1})
                await anext(durable)
            found = [await lag_s()]
            while len(found) < 10 or any(found[-5:]):
                await asyncio.sleep(0.1)
                found.append(await lag_s())
            await publisher.publish({"n": 2})
            while await lag_s() < 0.5:
                await asyncio.sleep(0.05)

    run(main())

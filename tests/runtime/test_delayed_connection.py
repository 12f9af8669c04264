"""Brokers with simulated delays: which calls take a round trip, and which take none."""

import time

import msgspec

from gapless.client import Client, connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .local import QUICK, local

HOP_MS = 25
DISTANT = msgspec.structs.replace(QUICK, delay_ms=HOP_MS, suspect_ms=1_000)


async def waited_ms(client: Client, text: str) -> float:
    found = []
    for _ in range(4):
        start = time.monotonic()
        subscription = await client.subscribe(text)
        found.append((time.monotonic() - start) * 1000)
        await subscription.close()
    return min(found)


def test_a_subscription_waits_for_the_publisher_and_a_covered_one_for_its_cover() -> None:
    async def main() -> None:
        async with (
            local(chain(4), f=1, runtime=DISTANT) as network,
            connect(network.at("b0"), name="far") as publisher,
            connect(network.at("b3"), name="near") as subscriber,
            connect(network.at("b2"), name="next") as neighbour,
        ):
            await publisher.advertise("topic = 'price'")
            uncovered = await waited_ms(subscriber, "topic = 'price' AND amount < 10")
            assert uncovered >= 6 * HOP_MS, "three hops there, three back"
            await subscriber.subscribe("topic = 'price'")
            covered_here = await waited_ms(subscriber, "topic = 'price' AND amount < 10")
            covered_by_neighbour = await waited_ms(neighbour, "topic = 'price' AND amount < 5")
            assert max(covered_here, covered_by_neighbour) < uncovered / 2

    run(main())


def test_sent_messages_arrive_later_and_in_order() -> None:
    async def main() -> None:
        async with (
            local(chain(2), f=0, runtime=DISTANT) as network,
            connect(network.at("b0")) as publisher,
            connect(network.at("b1")) as subscriber,
        ):
            await publisher.advertise("TRUE")
            subscription = await subscriber.subscribe("TRUE")
            start = time.monotonic()
            await publisher.publish({"n": 0})
            await anext(subscription)
            assert time.monotonic() - start >= HOP_MS / 1000
            await publisher.publish_many([{"n": number} for number in range(1, 500)])
            assert [(await anext(subscription)).attributes["n"] for _ in range(499)] == list(range(1, 500))

    run(main())

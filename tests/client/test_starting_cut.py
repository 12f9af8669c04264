"""After `subscribe()` returns over TCP, no later publication is missed, however far away its publisher is."""

import msgspec

from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import QUICK, local

DISTANT = msgspec.structs.replace(QUICK, delay_ms=20.0, suspect_ms=3_000)
ROUNDS = 5


def test_events_of_a_distant_publisher_after_subscribe_are_delivered() -> None:
    async def main() -> None:
        async with (
            local(chain(5), runtime=DISTANT) as network,
            connect(network.at("b4"), name="near") as near,
            connect(network.at("b0"), name="far") as far,
            connect(network.at("b4"), name="new") as newcomer,
        ):
            await near.advertise("topic = 'price'")
            await far.advertise("topic = 'price'")
            for number in range(ROUNDS):
                subscription = await newcomer.subscribe(f"topic = 'price' AND round = {number}")
                assert {name.partition("-")[0] for name in subscription.starting_cut} == {"near", "far"}
                for n in (1, 2, 3):
                    await far.publish({"topic": "price", "round": number, "n": n})
                assert [event.attributes["n"] for event in await take(subscription, 3)] == [1, 2, 3]
                await subscription.close()

    run(main())


def test_a_position_in_place_of_cuts_leaves_no_cuts() -> None:
    async def main() -> None:
        async with local(chain(2), runtime=QUICK) as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("TRUE")
            await ann.publish({"n": 1})
            assert (await ann.subscribe("TRUE")).starting_cut == {ann.name: 2}
            assert (await ann.subscribe("TRUE", since=await ann.position())).starting_cut == {}
            assert (await ann.durable("own", "TRUE")).starting_cut == {}
            assert (await ann.durable("ours", "TRUE", group=True)).starting_cut == {}

    run(main())

"""Events above 64 KiB, if the network file allows them, are delivered, even when a broker dies."""

import asyncio

import msgspec
import pytest

from gapless.client import connect
from gapless.errors import EventError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import QUICK, local

MIB = 1024 * 1024
LARGE = msgspec.structs.replace(QUICK, event_max=MIB, frame_max=2_048 * MIB, suspect_ms=2_000.0)


def test_large_events_survive_the_death_of_a_broker() -> None:
    async def main() -> None:
        opening = local(chain(3), runtime=LARGE)
        async with opening as network, connect(network.at("b2")) as ann, connect(network.at("b0")) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            payload = b"x" * (MIB - 100)
            publishing = asyncio.create_task(ann.publish_many(({"n": n}, payload) for n in range(40)))
            async with asyncio.timeout(60):
                got = await take(subscription, 5)
                await network.crash("b0")
                while len(got) < 40:
                    got += await subscription.take()
                assert await publishing == 40
            assert [event.attributes["n"] for event in got] == list(range(40))
            assert {len(event.payload) for event in got} == {MIB - 100}
            with pytest.raises(EventError, match="1,048,576 is the limit"):
                await ann.publish({"n": 1}, b"x" * MIB)

    run(main())

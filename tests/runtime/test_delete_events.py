"""An operator deletes what a client has published, at a network of real brokers."""

import asyncio
import json

import pytest

from gapless.client import connect
from gapless.errors import SkippedError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.conftest import Cli

from .local import local


def test_events_of_a_client_are_deleted_and_readers_are_notified(cli: Cli) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(chain(3)) as network,
            connect(network.at("b0"), name="ann") as ann,
            connect(network.at("b0"), name="ben") as ben,
            connect(network.at("b2"), name="cat") as cat,
        ):
            await ann.advertise("n > 0")
            await ben.advertise("n > 0")
            await ann.publish_many({"n": n} for n in range(1, 31))
            await ben.publish({"n": 31})

            async def delete(name: str, *more: str) -> tuple[int, str]:
                ran = await asyncio.to_thread(cli, "client", "delete-events", name, "--url", network.at("b0"), *more)
                return ran.code, " ".join(ran.out.split())

            code, said = await delete("ann")
            assert (code, "deleted all events that ann has published until now" in said, "30 at b0" in said) == (
                0,
                True,
                True,
            )
            code, said = await delete("nobody", "--json")
            refusal = json.loads(said)
            assert (code, refusal["accepted_by"], refusal["reasons"]) == (1, [], ["no events of 'nobody' are kept"])
            assert await delete("nobody") == (1, "nothing is deleted: no events of 'nobody' are kept")
            assert not any(broker.node and broker.node.has_deleted("nobody") for broker in network.brokers.values())

            await ann.publish({"n": 32})
            reading = await cat.read("n > 0", since="earliest")
            with pytest.raises(SkippedError, match="30 events that 'n > 0' may match are lost"):
                await anext(reading)
            assert [event.integer("n") async for event in reading] == [31, 32]

    run(main())

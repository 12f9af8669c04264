"""No call waits for an answer that can no longer arrive."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gapless.client import Client, connect
from gapless.errors import ClosedError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import Local, local


async def _cut_off(client: Client) -> str:
    link = client._connection_manager._links.links["b0"]
    address, link.address = link.address, "127.0.0.1:1"
    if link.connection is not None:
        link.connection.abort()
    while client.is_connected:
        await asyncio.sleep(0.01)
    return address


async def _until_forgotten(network: Local, client: Client) -> None:
    node = network.brokers["b0"].node
    assert node is not None
    while node.has_session(client.name):
        await asyncio.sleep(0.01)


def test_calls_in_progress_when_the_session_expires_continue() -> None:
    async def main() -> None:
        async with (
            local(1, f=0, session_s=0.2) as network,
            connect(network.url) as ann,
            connect(network.url) as bob,
            asyncio.timeout(30),
        ):
            await ann.advertise("TRUE")
            await bob.advertise("TRUE")
            standing, leaving = await bob.subscribe("n >= 0"), await bob.subscribe("n < 0")
            event = await ann.publish({"n": 1})
            assert await take(standing, 1) == [event]
            address = await _cut_off(bob)
            subscribing = asyncio.create_task(bob.subscribe("n >= 10"))
            advertising = asyncio.create_task(bob.advertise("n = 7"))
            publishing = asyncio.create_task(bob.publish({"n": 7}))
            ending = asyncio.create_task(leaving.close())
            taking = asyncio.create_task(standing.take())
            await _until_forgotten(network, bob)
            missed = await ann.publish({"n": 2})
            bob._connection_manager._links.links["b0"].address = address
            began = await subscribing
            await ending
            assert (await advertising).filter == "n = 7"
            assert await taking == [missed, await publishing]
            event = await ann.publish({"n": 10})
            assert await take(began, 1) == [event]

    run(main())


def test_calls_that_are_under_way_when_the_client_is_closed_end() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, asyncio.timeout(30):
            client = await connect(network.at("b0"))
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            await network.stop()
            pending = [
                asyncio.create_task(client.subscribe("n = 1")),
                asyncio.create_task(client.advertise("n = 1")),
                asyncio.create_task(client.publish({"n": 1})),
                asyncio.create_task(client.publish_many({"n": n} for n in range(20_000))),
            ]
            ending = asyncio.create_task(subscription.close())
            await asyncio.sleep(0.1)
            await client.close()
            await ending
            for task in pending:
                with pytest.raises(ClosedError, match="the client is"):
                    await task

    run(main())


def test_a_publisher_that_waits_for_room_in_a_protocol_without_confirmations_ends_with_its_client() -> None:
    async def main() -> None:
        async with local(chain(2), protocol="locaps") as network, asyncio.timeout(30):
            client = await connect(network.at("b0"))
            await client.advertise("TRUE")
            await network.stop()
            publishing = asyncio.create_task(client.publish_many({"n": n} for n in range(10**9)))
            await asyncio.sleep(0.2)
            await client.close()
            with pytest.raises(ClosedError, match="the client is"):
                await publishing

    run(main())


def test_a_call_that_waits_for_its_source_ends_with_its_client() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(30):
            client = await connect(network.url)
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")

            async def silent() -> AsyncIterator[dict[str, int]]:
                yield {"n": 1}
                await asyncio.Event().wait()

            publishing = asyncio.create_task(client.publish_many(silent()))
            assert len(await take(subscription, 1)) == 1
            await client.close()
            with pytest.raises(ClosedError, match="the client is closed"):
                await publishing

    run(main())

"""A process that continues as another client: each number is used once, and brokers ignore the old process."""

import asyncio
from typing import Any

import pytest

from gapless.client import Client, Opening, Subscription, connect
from gapless.client.connecting import connect_as
from gapless.client.identity import Identity
from gapless.errors import ClosedError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.local import Local, local

PATIENCE_S = 30.0


def go_on(network: Local, before: Identity, seq: int, broker: str = "b1") -> Opening[Client]:
    later = before.later()
    identity = Identity(later.name, later.home, later.attempt, seq)
    return connect_as(network.at(broker), "x", identity, timeout_s=PATIENCE_S, credentials=None)


async def speaks(client: Client, first: int, last: int) -> None:
    await client.advertise("TRUE")
    await client.publish_many([{"n": n} for n in range(first, last + 1)])


async def taking(subscription: Subscription[Any]) -> None:
    async for _ in subscription:
        pass


async def changes(client: Client) -> None:
    async for _ in client.connection_changes():
        pass


async def received(network: Local) -> list[tuple[int, int]]:
    async with connect(network.at("b1")) as reader:
        return [(event.seq, int(event.attributes["n"])) async for event in await reader.read("TRUE")]


@pytest.mark.parametrize("protocol", ["gapless"])
def test_processed_batches_are_not_repeated_and_the_previous_process_is_rejected(protocol: str) -> None:
    async def main() -> None:
        async with local(chain(2), protocol=protocol) as network, asyncio.timeout(PATIENCE_S):
            before = await connect(network.at("b0"))
            await speaks(before, 1, 10)
            async with go_on(network, before.identity, 6) as after:
                assert after.name == before.name
                # The new process knows six events; the other four exist, and are published again under their numbers.
                await speaks(after, 7, 12)
                with pytest.raises(ClosedError, match="another process has taken over as client"):
                    await before.publish({"n": 99})
                assert after.identity.seq == 12
            await before.close(leave=False)
            assert await received(network) == [(n, n) for n in range(1, 13)]

    run(main())


@pytest.mark.parametrize("broker", ["b0", "b1"])
def test_every_call_of_a_superseded_client_fails_and_its_subscriptions_end(broker: str) -> None:
    async def main() -> None:
        async with local(chain(2)) as network, asyncio.timeout(PATIENCE_S):
            before = await connect(network.at("b0"))
            await speaks(before, 1, 1)
            live = await before.subscribe("TRUE")
            durable = await before.durable("work", "TRUE", ack="manual")
            await before.publish({"n": 2})
            taken = await anext(durable)
            waiting = [
                asyncio.ensure_future(each)
                for each in (taking(live), taking(durable), before.request({"n": 3}), changes(before))
            ]
            async with go_on(network, before.identity, 3, broker) as after:
                await speaks(after, 4, 5)
                for future in waiting:
                    with pytest.raises(ClosedError, match=f"another process has taken over as client {before.name}"):
                        await future
                for call in (
                    lambda: before.publish({"n": 9}), before.flush, lambda: before.advertise("TRUE"),
                    lambda: before.subscribe("TRUE"), lambda: before.read("TRUE"),
                    lambda: before.durable("other", "TRUE"), before.admin.list, taken.ack, durable.ack, live.take,
                ):  # fmt: skip
                    with pytest.raises(ClosedError, match=f"another process has taken over as client {before.name}"):
                        await call()
                assert not before.is_connected
                await speaks(after, 6, 6)
                assert after.broker == broker
            await before.close()

    run(main())


@pytest.mark.parametrize("protocol", ["gapless"])
def test_numbers_that_were_taken_before_are_confirmed_when_they_are_published_again(protocol: str) -> None:
    async def main() -> None:
        async with local(chain(2), protocol=protocol) as network, asyncio.timeout(PATIENCE_S):
            before = await connect(network.at("b0"))
            await speaks(before, 1, 10)
            async with go_on(network, before.identity, 6) as after:
                await speaks(after, 7, 10)  # brokers already have all of them
                assert after.is_all_confirmed
            await before.close(leave=False)
            assert await received(network) == [(n, n) for n in range(1, 11)]

    run(main())


@pytest.mark.parametrize("protocol", ["gapless"])
def test_after_the_session_has_expired_numbering_continues(protocol: str) -> None:
    async def main() -> None:
        async with local(chain(2), protocol=protocol, session_s=0.3) as network, asyncio.timeout(PATIENCE_S):
            before = await connect(network.at("b0"))
            await speaks(before, 1, 3)
            standing = before.identity
            await before.close(leave=False)
            while any(
                broker._broker_node is None or broker._broker_node.sessions() for broker in network.brokers.values()
            ):
                await asyncio.sleep(0.05)
            async with go_on(network, standing, 3) as after:
                await speaks(after, 4, 5)
            assert await received(network) == [(n, n) for n in range(1, 6)]

    run(main())


@pytest.mark.parametrize("protocol", ["gapless"])
def test_after_its_broker_has_died_numbers_continue_at_the_successor(protocol: str) -> None:
    async def main() -> None:
        async with local(chain(3), protocol=protocol) as network, asyncio.timeout(PATIENCE_S):
            before = await connect(network.at("b0"))
            await speaks(before, 1, 10)
            standing = before.identity
            await before.close(leave=False)
            await network.crash("b0")
            async with go_on(network, standing, 4, "b2") as after:
                await speaks(after, 5, 12)
            assert await received(network) == [(n, n) for n in range(1, 13)]

    run(main())

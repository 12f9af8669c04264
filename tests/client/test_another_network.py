"""A client whose network restarts: with the same network file it continues, with another one it ends with an error."""

import asyncio

import pytest

from gapless.client import connect
from gapless.errors import ConnectError
from gapless.overlay import Overlay, chain, star
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.network_file import NetworkConfig, ProtocolEntry
from tests.client.take_helpers import take
from tests.runtime.local import QUICK, Local, local


def _ports(config: NetworkConfig) -> list[int]:
    return [int(address.rpartition(":")[2]) for address in config.addresses.values()]


async def _start(overlay: Overlay, ports: list[int], protocol: str = "gapless") -> Local:
    network = Local(local_network(overlay, ports=ports, runtime=QUICK, protocol=ProtocolEntry(protocol)))
    await asyncio.gather(*(network.start(name) for name in network.config.overlay.brokers))
    return network


@pytest.mark.parametrize(
    ("overlay", "protocol", "complaint"),
    [
        (chain(2), "gapless", "restarted with another file .it had 3 brokers, now 2.*connect again"),
        (star(3), "gapless", "restarted with another file .its topology or its settings differ.*connect again"),
        (chain(3), "locaps", "this network runs 'locaps', not 'gapless'"),
    ],
    ids=["smaller", "shape", "protocol"],
)
def test_a_network_with_another_shape_is_noticed_and_every_call_fails_with_it(
    overlay: Overlay, protocol: str, complaint: str
) -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            await client.publish({"n": 1})
            assert len(await take(subscription, 1)) == 1
            await network.stop()
            other = await _start(overlay, _ports(network.config)[: len(overlay.brokers)], protocol)
            try:
                async with asyncio.timeout(20):
                    for _ in range(2):
                        with pytest.raises(ConnectError, match=complaint):
                            await client.publish({"n": 2})
                    with pytest.raises(ConnectError, match=complaint):
                        await subscription.take()
                    with pytest.raises(ConnectError, match=complaint):
                        await client.subscribe("TRUE")
                assert not client.is_connected
                async with connect(other.url) as again:
                    await again.advertise("TRUE")
                    await again.publish({"n": 3})
            finally:
                await other.stop()

    run(main())


def test_an_unknown_process_at_the_address_of_a_broker_is_left_alone() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0")) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            await network.crash("b0")
            other_network = await _start(chain(1), _ports(network.config)[:1])
            try:
                async with asyncio.timeout(30):
                    event = await client.publish({"n": 1})
                    assert await take(subscription, 1) == [event]
                assert client.broker in ("b1", "b2")
            finally:
                await other_network.stop()

    run(main())


def test_a_network_restarted_from_the_same_file_is_resumed() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            event = await client.publish({"n": 1})
            assert await take(subscription, 1) == [event]
            await network.stop()
            await asyncio.gather(*(network.start(name) for name in network.config.overlay.brokers))
            async with asyncio.timeout(30):
                event = await client.publish({"n": 2})
                assert await take(subscription, 1) == [event]
            assert client.lost_publications == [(1, 1)], "the brokers kept it in memory"

    run(main())

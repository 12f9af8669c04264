"""Links between real brokers: one connection per pair, suspicion and trust, incarnations, goodbyes."""

import asyncio
import socket
import time
from contextlib import AsyncExitStack

import msgspec
import pytest

from gapless.client import Subscription, connect
from gapless.errors import ConfigError, SkippedError
from gapless.overlay import chain
from gapless.protocol import Connected, Input, Suspected, Trusted
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.joining import later_incarnation
from gapless.runtime.links import Links

from .local import QUICK, Local, local


class MembershipLog:
    def __init__(self, broker: Broker) -> None:
        self.received: list[Input] = []
        node = broker.links.host.node
        assert node is not None
        step = node.step

        def listen(item: Input, now: int) -> object:
            if isinstance(item, Connected | Suspected | Trusted):
                self.received.append(item)
            return step(item, now)

        node.step = listen  # type: ignore[method-assign, assignment]

    async def wait_for(self, item: Input) -> None:
        async with asyncio.timeout(10):
            while item not in self.received:
                await asyncio.sleep(0.01)


async def connected(network: Local, pairs: int) -> None:
    async with asyncio.timeout(10):
        while True:
            up = [
                (name, link.name)
                for name, broker in network.brokers.items()
                for link in broker.links.links.values()
                if link.connection is not None and not link.is_client
            ]
            if len(up) == 2 * pairs and all((b, a) in up for a, b in up):
                return
            await asyncio.sleep(0.01)


def test_every_pair_within_reach_has_one_connection() -> None:
    async def main() -> None:
        async with local(chain(4), f=1) as network:
            await connected(network, pairs=5)
            await asyncio.sleep(0.2)
            await connected(network, pairs=5)
            for name, broker in network.brokers.items():
                for link in broker.links.links.values():
                    assert link.connection is not None
                    other = network.brokers[link.name].links.links[name].connection
                    assert other is not None
                    assert link.connection.is_dialled != other.is_dialled, "both ends hold the same connection"

    run(main())


def test_a_first_start_is_the_first_incarnation_and_a_return_is_not() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network:
            assert {broker.incarnation for broker in network.brokers.values()} == {0}
            await connected(network, pairs=3)
            await network.crash("b1")
            before = later_incarnation(-1)
            returned = await network.start("b1")
            assert returned.incarnation >= before
            await connected(network, pairs=3)

    run(main())


def test_a_network_restarted_as_a_whole_begins_with_first_incarnations() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network:
            await network.stop()
            await asyncio.gather(*(network.start(name) for name in network.config.overlay.brokers))
            assert {broker.incarnation for broker in network.brokers.values()} == {0}

    run(main())


def test_a_broker_remembered_by_an_unreachable_one_restarts() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            b0 = network.brokers["b0"]
            assert b0.incarnation == 0
            b1 = network.brokers["b1"]
            # As if b0 had restarted at a moment at which it could not query b1.
            await b0.links.close(with_goodbye=False)
            b0.boot = time.time_ns()
            b0._links = b0._make_links()
            b0._begin(0)
            async with asyncio.timeout(10):
                while b0.incarnation == 0 or not b0.is_ready:
                    await asyncio.sleep(0.01)
            await connected(network, pairs=1)
            assert b1.admission.met["b0"] == (b0.incarnation, b0.boot)

    run(main())


def test_a_clock_that_was_set_back_does_not_revive_an_old_incarnation() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            far_ahead = later_incarnation(-1) + 10**9
            network.brokers["b1"].admission.met["b0"] = (far_ahead, 0)
            await network.crash("b0")
            returned = await network.start("b0")
            assert returned.incarnation == far_ahead + 1
            await connected(network, pairs=1)

    run(main())


def test_silent_peers_are_suspected_and_returned_ones_trusted() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            news = MembershipLog(network.brokers["b0"])
            await network.crash("b1")
            await news.wait_for(Suspected("b1"))
            await network.start("b1")
            await news.wait_for(Trusted("b1"))
            assert news.received == [Suspected("b1"), Connected("b1"), Trusted("b1")]

    run(main())


def test_a_false_suspicion_is_counted() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            detector = network.brokers["b0"].links.detector
            assert detector.false_suspicions == 0
            news = MembershipLog(network.brokers["b0"])
            there = network.brokers["b1"].links.links["b0"]
            mute, there.connection = there.connection, None  # it sends no more pings
            await news.wait_for(Suspected("b1"))
            there.connection = mute
            await news.wait_for(Trusted("b1"))
            assert detector.false_suspicions == detector.absences["suspected"] == 1

    run(main())


def test_an_isolated_broker_waits_longer() -> None:
    async def main() -> None:
        async with local(chain(4), f=1) as network:
            await connected(network, pairs=5)
            news = MembershipLog(network.brokers["b1"])
            began = time.monotonic()
            await asyncio.gather(*(network.crash(name) for name in ("b0", "b2", "b3")))
            await news.wait_for(Suspected("b2"))
            assert time.monotonic() - began > 2 * QUICK.suspect_ms / 1000
            await news.wait_for(Suspected("b0"))
            await news.wait_for(Suspected("b3"))

    run(main())


def test_a_peer_that_never_connected_is_suspected() -> None:
    async def main() -> None:
        config = local_network(chain(3), f=1, runtime=QUICK)
        network = Local(config)
        await asyncio.gather(network.start("b0"), network.start("b1"))
        news = MembershipLog(network.brokers["b0"])
        await news.wait_for(Suspected("b2"))
        assert Suspected("b1") not in news.received
        await network.stop()

    run(main())


def test_a_goodbye_is_believed_at_once() -> None:
    async def main() -> None:
        patient = msgspec.structs.replace(QUICK, suspect_ms=60_000)
        async with local(chain(2), runtime=patient) as network:
            await connected(network, pairs=1)
            news = MembershipLog(network.brokers["b0"])
            await network.brokers.pop("b1").stop()
            async with asyncio.timeout(5):
                await news.wait_for(Suspected("b1"))

    run(main())


def test_own_sleep_is_not_held_against_others() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            news = [MembershipLog(broker) for broker in network.brokers.values()]
            time.sleep(1.0)  # the whole process sleeps
            await asyncio.sleep(0.2)
            assert [each.received for each in news] == [[], []]

    run(main())


def test_a_port_in_use_is_named() -> None:
    async def main() -> None:
        config = local_network(1, f=0, runtime=QUICK)
        host, _, port = config.addresses["b0"].rpartition(":")
        complaint = f"broker 'b0' cannot listen on {host}:{port}: the port is in use"
        with socket.create_server((host, int(port))), pytest.raises(ConfigError, match=complaint):
            await Broker(config, "b0").start()

    run(main())


def test_another_network_file_is_noticed() -> None:
    async def main() -> None:
        config = local_network(chain(3), f=1, runtime=QUICK)
        other = msgspec.structs.replace(config, network=msgspec.structs.replace(config.network, f=0))
        here, there = Broker(config, "b0"), Broker(other, "b1")
        starting = [asyncio.create_task(here.start()), asyncio.create_task(there.start())]
        await asyncio.sleep(0.5)
        assert not here.is_ready
        assert not there.is_ready, "neither takes part in a network that the other does not know"
        for task in starting:
            task.cancel()
        await here.crash()
        await there.crash()

    run(main())


def test_a_failure_of_the_node_stops_the_broker_and_is_reported() -> None:
    async def main() -> None:
        with pytest.raises(AssertionError, match="a bug"):
            await fail_once()

    async def fail_once() -> None:
        async with local(1, f=0) as network:
            broker = network.brokers["b0"]
            node = broker.links.host.node
            assert node is not None

            def fail(item: Input, now: int) -> object:
                raise AssertionError("a bug")

            node.step = fail  # type: ignore[method-assign, assignment]
            broker.links.give(Connected("b9"))
            assert isinstance(broker.failure.result(), AssertionError)
            assert not broker.is_ready
            assert broker.links.host.node is None

    run(main())


def test_links_know_only_neighbours_that_were_announced() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            links: Links = network.brokers["b0"].links
            nobody = links.open("a client that is not here")
            nobody.outbox.append("lost")
            links.queues.flush([nobody])
            assert (nobody.outbox, links.counters.lost) == ([], 1)

    run(main())


def test_brokers_that_start_one_after_the_other_find_together() -> None:
    async def main() -> None:
        network = Local(local_network(chain(4), f=1, runtime=QUICK))
        starting = []
        for name in ("b1", "b3", "b0", "b2"):
            starting.append(asyncio.create_task(network.start(name)))
            await asyncio.sleep(0.6)
        await asyncio.gather(*starting)
        async with connect(network.at("b0")) as ann, connect(network.at("b3")) as bob, asyncio.timeout(20):
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            event = await ann.publish({"n": 1})
            assert await subscription.take() == [event]
        await network.stop()

    run(main())


def test_subscriptions_survive_the_loss_of_all_memory_and_learn_exactly_what_they_miss() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network, AsyncExitStack() as stack:
            ann, bob, cat = [await stack.enter_async_context(connect(network.at(name))) for name in ("b0", "b1", "b2")]
            await ann.advertise("TRUE")
            subscriptions = [await client.subscribe("TRUE") for client in (bob, cat)]
            before = [(await ann.publish({"n": number})).seq for number in range(50)]
            for name in list(network.brokers):
                await network.crash(name)
            await asyncio.gather(*(network.start(name) for name in network.config.overlay.brokers))
            async with asyncio.timeout(30):
                last = (await ann.publish({"n": 50})).seq
                for subscription in subscriptions:
                    got, missed = await _got_and_missed(subscription, last)
                    assert sorted(got + missed) == [*before, last]
                    assert set(missed) <= {number for a, b in ann.lost_publications for number in range(a, b + 1)}
                new = await bob.subscribe("TRUE")
                event = await ann.publish({"n": 51})
                assert await new.take() == [event]

    run(main())


async def _got_and_missed(subscription: Subscription, last: int) -> tuple[list[int], list[int]]:
    got: list[int] = []
    missed: list[int] = []
    while last not in got:
        try:
            got += [event.seq for event in await subscription.take()]
        except SkippedError as error:
            missed += [number for ranges in error.lost.values() for a, b in ranges for number in range(a, b + 1)]
    return got, missed

"""Limits of users and brokers: excess requests wait, are refused, or end the session; others are not affected."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.client import Client, connect
from gapless.errors import ConnectError, DeniedError
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocols.gapless.client_messages import ClientPublish
from gapless.runtime.event_loop import run
from gapless.security.limits import Limits

from .local import local
from .logged import logged
from .secure import PATIENT, Secure, secure, until

EVERYTHING = {"publish": ["TRUE"], "subscribe": ["TRUE"]}


async def _comes(network: Secure, user: str, broker: str = "b0") -> Client:
    return await connect(network.at(broker), name="c", credentials=network.certified(user))


def _with(**limits: float) -> dict[str, Any]:
    return {**EVERYTHING, "limits": limits}


def test_further_connections_are_refused_with_a_sentence(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": _with(connections=2)}) as network:
            first, second = [await _comes(network, "ann") for _ in range(2)]
            for client in (first, second):
                await client.advertise("TRUE")
            with logged() as log:
                third = await _comes(network, "ann")
                with pytest.raises(ConnectError, match="user 'ann' has 2 connections here, which is the maximum"):
                    await asyncio.wait_for(third.advertise("TRUE"), 30)
                assert "code=limit" in log.text
                assert 'who="user ann"' in log.text
            await third.close()
            await first.close()
            await until(lambda: network.brokers["b0"].links.client_count == 1)
            again = await _comes(network, "ann")
            await again.advertise("TRUE")
            for client in (again, second):
                await client.close()

    run(main())


def test_a_broker_has_limits_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": EVERYTHING, "bob": EVERYTHING}
        limits = {"connections": 1, "subscriptions": 1}
        async with secure(1, tmp_path, f=0, users=users, broker_limits=limits) as network:
            ann, bob = await _comes(network, "ann"), None
            await ann.subscribe("n = 1")
            with pytest.raises(DeniedError, match="this broker has 1 subscriptions here, which is the maximum"):
                await ann.subscribe("n = 2")
            bob = await _comes(network, "bob")
            with pytest.raises(ConnectError, match="this broker has 1 connections here"):
                await asyncio.wait_for(bob.advertise("TRUE"), 30)
            await bob.close()
            await ann.close()

    run(main())


def test_connections_a_second_are_limited_for_users_and_for_brokers(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": _with(connections_per_s=0.001), "bob": EVERYTHING}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann = await _comes(network, "ann")  # it has queried before, and connects now
            with pytest.raises(
                ConnectError, match=r"user 'ann' connects more than 0\.001 times per second; wait a moment"
            ):
                await asyncio.wait_for(ann.advertise("TRUE"), 30)
            await ann.close()
            with pytest.raises(ConnectError, match="wait a moment"):
                await _comes(network, "ann")
            bob = await _comes(network, "bob")
            await bob.advertise("TRUE")
            await bob.close()
            network.set_users(users, broker_limits={"connections_per_s": 0.001})
            await network.reload()
            counters = network.brokers["b0"].links.counters
            before = counters.refused["limit"]
            late = await _comes(network, "bob")  # one is accepted, to query; no other waits
            with pytest.raises(ConnectError):
                await connect(network.at("b0"), credentials=network.certified("bob"), timeout_s=1)
            await late.close(leave=False)
            assert counters.refused["limit"] > before

    run(main())


def test_many_connections_do_not_keep_brokers_out(tmp_path: Path) -> None:
    """All connections come from one host, which also runs brokers, and no broker is kept out."""

    async def main() -> None:
        async with secure(chain(2), tmp_path, users={}, broker_limits={"connections_per_s": 0.001}) as network:
            for _ in range(2):
                client = await _comes(network, "admin")
                await client.advertise("TRUE")
                await client.close()
            links = network.brokers["b0"].links
            await network.crash("b1")
            await network.start("b1")
            await until(lambda: links.links["b1"].connection is not None)

    run(main())


def test_further_subscriptions_and_advertisements_are_refused_until_one_ends(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": _with(subscriptions=2, advertisements=1)}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann, other = await _comes(network, "ann"), await _comes(network, "ann")
            first = await ann.subscribe("n = 1")
            await other.subscribe("n = 2")
            for client in (ann, other):
                with pytest.raises(DeniedError, match="user 'ann' has 2 subscriptions here, which is the maximum"):
                    await asyncio.wait_for(client.subscribe("n = 3"), 30)
            await first.close()
            await other.subscribe("n = 3")
            offer = await ann.advertise("n = 1")
            with pytest.raises(DeniedError, match="user 'ann' has 1 advertisements here"):
                await asyncio.wait_for(other.advertise("n = 2"), 30)
            await offer.close()
            await asyncio.wait_for(_until_allowed(other), 30)
            await other.close()  # its place is free again
            for number in range(2):
                await asyncio.wait_for(ann.subscribe(f"n = {number}"), 30)
            await ann.close()

    run(main())


def test_ended_subscriptions_do_not_count(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": {**_with(subscriptions=2), "history": True, "named": True, "status": True}}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann = await _comes(network, "ann")
            await ann.advertise("TRUE")
            await ann.publish({"n": 1})
            async with asyncio.timeout(60):
                for _ in range(4):
                    assert [event.attributes async for event in await ann.read("TRUE")] == [{"n": 1}]
                    await ann.position()
                for share in (False, True):
                    for _ in range(4):
                        held = await ann.durable(f"jobs-{share}", "n = 1", group=share)
                        await ann.unsubscribe(held)
                await ann.subscribe("n = 2")
                await ann.subscribe("n = 3")
                for _ in range(2):  # the name is known, so it takes no further place
                    await ann.admin.move("jobs-False", "earliest")
                with pytest.raises(DeniedError, match="user 'ann' has 2 subscriptions here, which is the maximum"):
                    await ann.read("TRUE")
            await ann.close()

    run(main())


def test_resources_of_a_session_count_while_its_client_is_disconnected(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": _with(subscriptions=2, advertisements=1, connections=1), "bob": EVERYTHING}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann = await _comes(network, "ann")
            await ann.subscribe("n = 1")
            await ann.advertise("n = 1")
            await ann.close(leave=False)
            again = await _comes(network, "ann")
            await again.subscribe("n = 2")
            with pytest.raises(DeniedError, match="user 'ann' has 2 subscriptions here, which is the maximum"):
                await asyncio.wait_for(again.subscribe("n = 3"), 30)
            with pytest.raises(DeniedError, match="user 'ann' has 1 advertisements here, which is the maximum"):
                await asyncio.wait_for(again.advertise("n = 3"), 30)
            bob = await _comes(network, "bob")
            for number in range(3):
                await asyncio.wait_for(bob.subscribe(f"n = {number}"), 30)
            for client in (again, bob):
                await client.close()

    run(main())


def test_a_returning_client_keeps_the_contents_of_its_session(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": _with(subscriptions=2, advertisements=1)}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann = await _comes(network, "ann")
            await ann.advertise("TRUE")
            held = [await ann.subscribe(f"n = {number}") for number in range(2)]
            for number in range(3):
                network.set_users({"ann": {**users["ann"], "status": number % 2 == 0}})  # so it has to reconnect
                await network.reload()
                for each, n in zip(held, range(2), strict=True):
                    event = await asyncio.wait_for(ann.publish({"n": n}), 30)
                    async with asyncio.timeout(30):
                        assert [got.id for got in await each.take()] == [event.id]
            await ann.close()

    run(main())


async def _until_allowed(client: Client) -> None:
    while True:
        try:
            await client.advertise("n = 2")
            return
        except DeniedError:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("limit", [{"publications_per_s": 100}, {"bytes_per_s": 15_000}])
def test_a_client_that_publishes_too_fast_is_slowed_down_and_others_are_not(
    tmp_path: Path, limit: dict[str, float]
) -> None:
    """Ann's 600 events take seconds and cause no suspicion; Bob finishes long before."""

    async def main() -> None:
        runtime = msgspec.structs.replace(PATIENT, suspect_ms=1_000)
        users = {"ann": _with(**limit), "bob": EVERYTHING}
        async with secure(1, tmp_path, f=0, users=users, runtime=runtime) as network:
            ann, bob, admin = [await _comes(network, user) for user in ("ann", "bob", "admin")]
            await ann.advertise("who = 'ann'")
            await bob.advertise("who = 'bob'")
            subscription = await admin.subscribe("TRUE")
            begun = time.monotonic()
            slow = asyncio.create_task(ann.publish_many([({"who": "ann"}, b"x" * 100)] * 600))
            await asyncio.sleep(0.2)
            for _ in range(20):
                await bob.publish({"who": "bob"})
            assert not slow.done()
            got = 0
            async with asyncio.timeout(60):
                while got < 620:
                    got += len(await subscription.take())
            await slow
            assert time.monotonic() - begun > 2.0
            assert network.brokers["b0"].links.detector.absences["suspected"] == 0
            for client in (ann, bob, admin):
                await client.close()

    run(main())


def test_other_limits_count_as_soon_as_they_are_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": EVERYTHING}) as network:
            ann = await _comes(network, "ann")
            await ann.subscribe("n = 1")
            network.set_users({"ann": _with(subscriptions=1)})
            await network.reload()
            with pytest.raises(DeniedError, match="user 'ann' has 1 subscriptions here"):
                await asyncio.wait_for(ann.subscribe("n = 2"), 30)
            await ann.close()

    run(main())


def test_a_client_that_reads_history_too_fast_is_slowed_down_and_others_are_not(tmp_path: Path) -> None:
    """Ann reads five times 100 kB at 100 kB per second; Bob, without a limit, gets his events at once."""

    async def main() -> None:
        ann = {**_with(history_bytes_per_s=100_000), "history": True}
        async with secure(1, tmp_path, f=0, users={"ann": ann, "bob": {**EVERYTHING, "history": True}}) as network:
            ann_, bob, admin = [await _comes(network, user) for user in ("ann", "bob", "admin")]
            await admin.advertise("TRUE")
            await admin.publish_many([({"n": n}, b"x" * 1000) for n in range(100)])

            async def read(client: Client) -> float:
                begun = time.monotonic()
                async with asyncio.timeout(60):
                    for _ in range(5):
                        assert len([event async for event in await client.read("TRUE", since="earliest")]) == 100
                return time.monotonic() - begun

            slow = asyncio.create_task(read(ann_))
            await asyncio.sleep(0.2)
            await read(bob)
            assert not slow.done()
            assert await slow > 2.0
            for client in (ann_, bob, admin):
                await client.close()

    run(main())


def test_waiting_messages_count_for_their_sender(tmp_path: Path) -> None:
    """The rest of a batch that exceeds one turn is processed later, and is not charged to another client."""

    async def main() -> None:
        users = {"ann": _with(publications_per_s=10), "bob": _with(publications_per_s=10)}
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann, bob = await _comes(network, "ann"), await _comes(network, "bob")
            for client in (ann, bob):
                await client.advertise("TRUE")
            links = network.brokers["b0"].links
            assert links.gate is not None
            connection = links.links[ann.name].connection
            assert connection is not None
            attempt = ann.identity.attempt
            rest = [
                ClientPublish(attempt, EventRun.of([Event(ann.name, seq, {"n": seq}, b"") for seq in range(1, 51)]))
            ]
            links.take_in(links.links[ann.name], connection, rest)
            assert connection.is_held
            assert links.gate.wait_s(links.links[bob.name], 0) == 0
            await ann.close(leave=False)
            await bob.close(leave=False)

    run(main())


# ---- networks without users -----------------------------------------------------------------------------------


def test_without_users_the_clients_of_an_address_are_counted() -> None:
    async def main() -> None:
        async with local(1, f=0, limits=Limits(connections=1, subscriptions=1)) as network:
            first = await connect(network.url)
            await first.subscribe("n = 1")
            with pytest.raises(
                DeniedError, match=r"address 127\.0\.0\.1 has 1 subscriptions here, which is the maximum"
            ):
                await first.subscribe("n = 2")
            second = await connect(network.url)
            with pytest.raises(ConnectError, match=r"address 127\.0\.0\.1 has 1 connections here"):
                await asyncio.wait_for(second.advertise("TRUE"), 30)
            await second.close()
            await first.close()

    run(main())

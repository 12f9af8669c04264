"""No user can learn, receive, replay or influence forbidden data: history, reads in progress, old claims."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gapless.client import Client, Subscription, connect
from gapless.errors import DeniedError
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.protocols.gapless.client_messages import (
    Active,
    Attach,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
)
from gapless.protocols.gapless.identities import Incarnation
from gapless.runtime.event_loop import run

from .forging_client import ForgingClient
from .secure import STEADY, Secure, secure

NEWS = {"publish": [], "subscribe": ["topic = 'news'"]}
READER: dict[str, Any] = {**NEWS, "subscribe": ["topic = 'news'", "topic LIKE 'shop/%'"], "history": True}
MANY = 6_000


async def _comes(network: Secure, user: str, broker: str = "b0") -> Client:
    return await connect(network.at(broker), name="c", credentials=network.certified(user))


async def _publishes(network: Secure, count: int, *topics: str) -> Client:
    admin = await _comes(network, "admin")
    await admin.advertise("TRUE")
    await admin.publish_many({"topic": topic, "n": n} for n in range(count) for topic in topics)
    return admin


async def _is_denied(reading: Subscription, why: str) -> None:
    async def read_all() -> None:
        while await reading.take():
            pass

    with pytest.raises(DeniedError, match=why):
        await asyncio.wait_for(read_all(), 60)


# ---- history ----------------------------------------------------------------------------------------------------


def test_every_way_to_the_past_takes_the_right_to_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": NEWS}) as network:
            admin = await _publishes(network, 5, "news", "bank")
            ann = await _comes(network, "ann")
            ways = (
                lambda: ann.read("topic = 'news'"),
                lambda: ann.read("topic = 'news'", since=Position.at(1), until=Position.at(2)),
                lambda: ann.read("FALSE", since=Position.at(0)),
                lambda: ann.subscribe("topic = 'news'", since="earliest"),
                lambda: ann.subscribe("topic = 'news'", since=Position.at(1)),
                ann.position,
                lambda: ann.milestones("topic = 'news'"),
            )
            for way in ways:
                with pytest.raises(DeniedError, match="may not read history"):
                    await asyncio.wait_for(way(), 30)
            await ann.close()
            await admin.close()

    run(main())


def test_history_holds_no_more_for_a_user_than_its_filters(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": {**NEWS, "history": True}, "ben": {**NEWS, "history": True, "outside": "narrow"}}
        async with secure(chain(2), tmp_path, users=users) as network:
            admin = await _publishes(network, 20, "bank", "news")
            ann, ben = await _comes(network, "ann", "b1"), await _comes(network, "ben", "b1")
            for text in ("TRUE", "topic = 'bank'", "topic = 'news' OR n = 3", "topic <> 'x'"):
                with pytest.raises(DeniedError, match="may not subscribe to"):
                    await asyncio.wait_for(ann.read(text), 30)
            async with asyncio.timeout(30):
                for client, text in ((ann, "topic = 'news'"), (ben, "TRUE"), (ben, "n < 20")):
                    read = [event async for event in await client.read(text)]
                    assert [event.attributes["topic"] for event in read] == ["news"] * 20
                late = await ben.subscribe("TRUE", since="earliest")
                await admin.publish({"topic": "bank", "n": 21})
                await admin.publish({"topic": "news", "n": 22})
                got = [await anext(late) for _ in range(21)]
                assert {event.attributes["topic"] for event in got} == {"news"}
            for client in (ann, ben, admin):
                await client.close()

    run(main())


# ---- reads in progress --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rights", "why"),
    [
        ({**READER, "history": False}, "may not read history"),
        ({**READER, "subscribe": ["topic = 'news'"]}, "may not subscribe any longer to"),
        ({**READER, "disabled": True}, "was revoked"),
    ],
)
def test_a_reading_under_way_ends_with_the_right_to_it(rights: dict[str, Any], why: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": READER}) as network:
            admin = await _publishes(network, MANY, "shop/x")
            ann = await _comes(network, "ann")
            reading = await ann.read("topic LIKE 'shop/%'")
            await anext(reading)
            network.set_users({"ann": rights})
            await network.reload()
            await _is_denied(reading, why)
            if not rights.get("disabled"):
                live = await asyncio.wait_for(ann.subscribe("topic = 'news'"), 30)
                event = await admin.publish({"topic": "news"})
                assert (await asyncio.wait_for(anext(live), 30)).id == event.id
            await ann.close()
            await admin.close()

    run(main())


def test_a_history_read_ends_at_the_successor_when_the_right_is_revoked(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path, users={"ann": READER}) as network:
            admin = await _publishes(network, MANY, "shop/x")
            ann = await _comes(network, "ann", "b1")
            reading = await ann.subscribe("topic LIKE 'shop/%'", since="earliest")
            await anext(reading)
            network.set_users({"ann": {**READER, "history": False}})
            await network.crash("b1")
            await network.reload()
            await _is_denied(reading, "may not read history")
            await ann.close()
            await admin.close()

    run(main())


@pytest.mark.parametrize("count", [20, MANY])
def test_a_history_read_resumed_by_its_client_ends_when_the_right_is_revoked(count: int, tmp_path: Path) -> None:
    """A manipulated client returns and requests the rest under the same name, in every possible way."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": READER}, runtime=STEADY) as network:
            admin = await _publishes(network, count, "shop/x")
            forger = await ForgingClient.attach(network, "ann")
            forger.say(ClientSubscribe(1, "ann:liar/s1", "topic LIKE 'shop/%'", since=1))
            assert (await forger.next_message(Delivery)).events
            network.set_users({"ann": {**READER, "history": False}})
            await network.reload()
            assert (await forger.refusal()).code == "changed"
            again = await ForgingClient.greeted(network, "ann", "ann:liar")
            again.say(Attach(2, Incarnation("b0", 0), 1, 10**6, 0, 0, 0))
            is_live = (await again.next_message(Ready)).is_resumed
            assert is_live == (count == 20), "only what has read all that it may"
            asked = [("s1", 1, 0, False), ("s1", 1, 0, True), ("s2", 1, 2**53, False), ("s3", 1, 2**53, True)]
            for name, since, end, is_resumed in asked:
                again.say(ClientSubscribe(2, f"ann:liar/{name}", "topic LIKE 'shop/%'", since, end, is_resumed))
                assert "may not read history" in await again.denial()
            again.say(ClientSubscribe(2, "ann:liar/s4", "topic LIKE 'shop/%'"))
            await again.next_message(Active)
            event = await admin.publish({"topic": "shop/x"})
            got = await asyncio.wait_for(again.next_message(Delivery), 30)
            assert [each.seq for each in got.events] == [event.seq]
            assert sorted(got.subscriptions) == ["ann:liar/s1"] * is_live + ["ann:liar/s4"]
            await admin.close()

    run(main())


def test_subscriptions_without_history_continue_without_the_right_to_history(tmp_path: Path) -> None:
    """This includes another broker, to which the client moves after it has lost the right."""

    async def main() -> None:
        async with asyncio.timeout(90), secure(chain(3), tmp_path, users={"ann": READER}) as network:
            admin = await _publishes(network, 20, "shop/x")
            ann = await _comes(network, "ann", "b1")
            live = await ann.subscribe("topic LIKE 'shop/%'")
            network.set_users({"ann": {**READER, "history": False}})
            await network.reload()
            crash = asyncio.create_task(network.crash("b1"))
            events = [await admin.publish({"topic": "shop/x"}) for _ in range(10)]
            await crash
            events += [await admin.publish({"topic": "shop/x"}) for _ in range(10)]
            assert [(await anext(live)).id for _ in events] == [event.id for event in events]
            await ann.close()
            await admin.close()

    run(main())


# ---- influence ----------------------------------------------------------------------------------------------------


def test_repeated_messages_of_a_client_are_checked_like_new_ones(tmp_path: Path) -> None:
    """A client without permission to publish claims an unconfirmed publication."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": NEWS}, runtime=STEADY) as network:
            admin = await _comes(network, "admin")
            everything = await admin.subscribe("TRUE")
            forged = [Event("ann:liar-0", 1, {"topic": "news"}, b"")]
            for number, events in enumerate((forged, [Event(admin.name, 1, {"topic": "news"}, b"")])):
                forger = await ForgingClient.greeted(network, "ann", f"ann:liar-{number}")
                forger.say(Attach(1, None, 0, 0, 0, 1, 0))
                await forger.next_message(Ready)
                forger.say(ClientAdvertise(1, f"{forger.name}/a1", "topic = 'news'"))
                assert "may not publish" in await forger.denial()
                forger.say(ClientPublish(1, EventRun.of(events)))
                assert (await forger.refusal()).code == "denied"
            await admin.advertise("TRUE")
            event = await admin.publish({"topic": "the only one"})
            assert (await asyncio.wait_for(anext(everything), 30)).id == event.id
            await admin.close()

    run(main())

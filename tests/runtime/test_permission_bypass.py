"""Nobody learns of, receives, replays or influences what it may not: history, readings under way, old claims."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gapless.client import Client, Subscription, connect
from gapless.errors import CallError, DeniedError
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    ClientConfirm,
    ClientHand,
    ClientOpen,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
    Invite,
    NameHanded,
    NameKept,
    NameOpened,
    NameRefused,
    SubscriptionProgress,
)
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport, NameRecord
from gapless.runtime import wire
from gapless.runtime.event_loop import run

from .secure import STEADY, Secure, secure, until
from .test_permissions import Liar

NEWS = {"publish": [], "subscribe": ["topic = 'news'"]}
READER: dict[str, Any] = {**NEWS, "subscribe": ["topic = 'news'", "topic LIKE 'shop/%'"], "history": True}
MANY = 6_000
"""More than is sent ahead of an application: a reading of them is under way until it is taken."""


async def _comes(network: Secure, user: str, broker: str = "b0") -> Client:
    return await connect(network.at(broker), name="c", credentials=network.certified(user))


async def _publishes(network: Secure, count: int, *topics: str) -> Client:
    admin = await _comes(network, "admin")
    await admin.advertise("TRUE")
    await admin.publish_many({"topic": topic, "n": n} for n in range(count) for topic in topics)
    return admin


async def _is_denied(reading: Subscription, why: str) -> None:
    """What it was sent before comes, and then the reason."""

    async def read_all() -> None:
        while await reading.take():
            pass

    with pytest.raises(DeniedError, match=why):
        await asyncio.wait_for(read_all(), 60)


# ---- the past ---------------------------------------------------------------------------------------------------


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
                ann.milestones,
            )
            for way in ways:
                with pytest.raises(DeniedError, match="may not read what was published before"):
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


@pytest.mark.parametrize("is_known", [False, True])
def test_who_says_that_it_lay_behind_gets_nothing_of_before(is_known: bool, tmp_path: Path) -> None:
    """Clients that lie behind are served out of history, and may not read it. So a liar says that it lay behind since
    the beginning: of a subscription that the broker knows, or of one that it does not."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": NEWS}, runtime=STEADY) as network:
            admin = await _publishes(network, 50, "news")
            liar = await Liar.attach(network, "ann")
            if is_known:
                liar.say(ClientSubscribe(2, "ann:liar/s1", "topic = 'news'"))
                node: Any = network.brokers["b0"].links.host.node
                await until(lambda: "ann:liar/s1" in node.held_by("ann:liar"))
            claimed = SubscriptionProgress(
                "ann:liar/s1", "topic = 'news'", {admin.name: 1}, {}, True, since=1, is_behind=True
            )
            liar.say(Attach(3, "b0/0", [claimed], {}, [], 1))
            await liar.hears(Attached)
            for _ in range(100):
                event = await admin.publish({"topic": "news"})
                await asyncio.sleep(0)
            delivered = await asyncio.wait_for(liar.hears(Delivery), 30)
            assert min(each.seq for each in delivered.events) > 50
            assert event.seq == 150
            await admin.close()

    run(main())


# ---- readings under way -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rights", "why"),
    [
        ({**READER, "history": False}, "may not read what was published before"),
        ({**READER, "subscribe": ["topic = 'news'"]}, "may not subscribe to"),
        ({**READER, "disabled": True}, "was revoked"),
    ],
)
def test_a_reading_under_way_ends_with_the_right_to_it(rights: dict[str, Any], why: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": READER}) as network:
            admin = await _publishes(network, MANY, "shop/x")
            ann = await _comes(network, "ann")
            reading = await ann.read("topic LIKE 'shop/%'")
            first = await reading.take(10)
            assert len(first) == 10
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


def test_a_reading_does_not_go_on_at_the_broker_that_inherits_it_when_the_right_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path, users={"ann": READER}) as network:
            admin = await _publishes(network, MANY, "shop/x")
            ann = await _comes(network, "ann", "b1")
            reading = await ann.subscribe("topic LIKE 'shop/%'", since="earliest")
            assert len(await reading.take(10)) == 10
            network.set_users({"ann": {**READER, "history": False}})
            await network.crash("b1")
            await network.reload()
            await _is_denied(reading, "may not read what was published before")
            await ann.close()
            await admin.close()

    run(main())


def test_who_holds_on_to_a_reading_that_it_may_not_have_any_more_does_not_get_it(tmp_path: Path) -> None:
    """A client of its own making comes back, and asks for the rest under the same name, in each way that there is."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": READER}, runtime=STEADY) as network:
            admin = await _publishes(network, 20, "shop/x")
            liar = await Liar.attach(network, "ann")
            liar.say(ClientSubscribe(2, "ann:liar/s1", "topic LIKE 'shop/%'", since=1))
            assert (await liar.hears(Delivery)).events
            network.set_users({"ann": {**READER, "history": False}})
            await network.reload()
            assert (await liar.refusal()).code == "changed"
            again = await Liar.dial(network, network.certified("ann"))
            assert isinstance(again, Liar)
            assert isinstance(await again.greet("ann:liar"), wire.Welcome)
            brought = [
                SubscriptionProgress("ann:liar/s1", "topic LIKE 'shop/%'", {}, {}, True, since=1),
                SubscriptionProgress("ann:liar/s2", "topic LIKE 'shop/%'", {}, {}, False, since=1, until=2**53),
                SubscriptionProgress("ann:liar/s3", "topic LIKE 'shop/%'", {}, {}, True, since=1, is_behind=True),
            ]
            again.say(Attach(9, "b0/0", brought, {}, [], 1))
            again.say(ClientSubscribe(9, "ann:liar/s1", "topic LIKE 'shop/%'", since=1))
            await again.hears(Attached)
            event = await admin.publish({"topic": "shop/x"})
            got = await asyncio.wait_for(again.hears(Delivery), 30)
            assert [(each.seq, got.subscriptions) for each in got.events] == [(event.seq, ["ann:liar/s3"])]
            await admin.close()

    run(main())


# ---- influence ----------------------------------------------------------------------------------------------------


def test_what_is_brought_back_is_judged_like_what_is_new(tmp_path: Path) -> None:
    """Who may publish nothing says that it had published something which nobody confirmed."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": NEWS}, runtime=STEADY) as network:
            admin = await _comes(network, "admin")
            everything = await admin.subscribe("TRUE")
            forged = [Event("ann:liar", 1, {"topic": "news"}, b"")]
            for number, events in enumerate((forged, [Event(admin.name, 1, {"topic": "news"}, b"")])):
                liar = await Liar.dial(network, network.certified("ann"))
                assert isinstance(liar, Liar)
                liar.name = f"ann:liar-{number}"
                assert isinstance(await liar.greet(liar.name), wire.Welcome)
                liar.say(Attach(1, "", [], {}, [], 1))
                home = (await liar.hears(Invite)).home
                liar.say(Attach(2, home, [], {f"{liar.name}/a1": ("topic = 'news'", 1)}, events, 1))
                liar.say(ClientPublish(2, events))
                assert (await liar.refusal()).code == "denied"
            await admin.advertise("TRUE")
            event = await admin.publish({"topic": "the only one"})
            assert (await asyncio.wait_for(anext(everything), 30)).id == event.id
            await admin.close()

    run(main())


# ---- groups -------------------------------------------------------------------------------------------------------

WORKER: dict[str, Any] = {
    "publish": ["topic = 'jobs'"], "subscribe": ["topic = 'jobs'"], "history": True, "named": ["jobs"],
}  # fmt: skip
LINE = "eve:liar/s1#1"


def _open(attempt: int, line: str = LINE, *, replace: bool = False) -> ClientOpen:
    return ClientOpen(attempt, line, "jobs", "topic = 'jobs'", replace, True, 30_000_000)


def _report(attempt: int, record: NameRecord, line: str = LINE, said_of: str = "") -> ClientHand:
    word = GroupReport(record.generation, said_of or line, 0, 0, [])
    return ClientHand(attempt, line, "jobs", record.client, record.broker, word)


async def _hears_of_group(liar: Liar, seconds: float) -> Any:
    """What is dealt to it; None if nothing is for so long."""
    try:
        async with asyncio.timeout(seconds):
            return (await liar.hears(NameHanded)).word
    except TimeoutError:
        return None


async def _again(network: Secure, liar: Liar) -> Liar:
    """The same client comes back, and brings nothing."""
    liar.writer.close()
    again = await Liar.dial(network, network.certified("eve"))
    assert isinstance(again, Liar)
    assert isinstance(await again.greet(liar.name), wire.Welcome)
    again.say(Attach(9, "b0/0", [], {}, [], 1))
    await again.hears(Attached)
    return again


def test_nobody_gets_into_the_group_of_another_user(tmp_path: Path) -> None:
    """Who deals could hand forged events to others, and who is dealt to could confirm what it never did."""

    async def main() -> None:
        users = {"eve": WORKER, "bob": WORKER}
        async with asyncio.timeout(90), secure(chain(2), tmp_path, users=users) as network:
            bob, eve = await _comes(network, "bob"), await _comes(network, "eve", "b1")
            shared = await bob.durable("jobs", "topic = 'jobs'", group=True)
            for share, replace in ((True, False), (True, True), (False, True)):
                with pytest.raises(CallError, match="the group 'jobs' belongs to user 'bob'"):
                    await eve.durable("jobs", "topic = 'jobs'", group=share, replace=replace)
            liar = await Liar.attach(network, "eve")
            liar.say(_open(2))
            assert "belongs to user 'bob'" in (await liar.hears(NameRefused)).reason
            forged = Event("admin:boss", 1, {"topic": "jobs", "pay": "eve"}, b"", 1)
            for generation in (1, 2):
                deal = GroupDeal(generation, f"{shared.name}#1", 0, 1, [(1, forged, False)], 0, [])
                liar.say(ClientHand(2, LINE, "jobs", bob.name, "b0", deal))
            await bob.advertise("topic = 'jobs'")
            event = await bob.publish({"topic": "jobs"})
            assert await anext(shared) == event
            second = await connect(network.at("b1"), name="d", credentials=network.certified("bob"))
            await second.durable("jobs", "topic = 'jobs'", group=True)
            for client in (second, bob, eve):
                await client.close()
            after = await _comes(network, "eve")
            with pytest.raises(CallError, match="the group 'jobs' belongs to user 'bob'"):
                await after.durable("jobs", "topic = 'jobs'", group=True)  # also while nobody is in it
            await after.close()

    run(main())


def test_who_comes_back_has_to_open_a_group_again_and_is_judged_then(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(90),
            secure(1, tmp_path, f=0, users={"eve": WORKER}, runtime=STEADY) as network,
        ):
            honest = await _comes(network, "eve")
            await honest.durable("jobs", "topic = 'jobs'", group=True)
            await honest.advertise("topic = 'jobs'")
            liar = await Liar.attach(network, "eve")
            liar.say(_open(2))
            record = (await liar.hears(NameOpened)).record
            assert record.client == honest.name
            liar.say(_report(2, record))
            assert await _hears_of_group(liar, 30) is not None
            again = await _again(network, liar)
            again.say(_report(9, record))
            await honest.publish_many({"topic": "jobs"} for _ in range(50))
            assert await _hears_of_group(again, 2) is None
            again.say(_open(9))
            assert (await again.hears(NameOpened)).record.generation == record.generation
            again.say(_report(9, record))
            assert await _hears_of_group(again, 30) is not None
            await honest.close()

    run(main())


@pytest.mark.parametrize("reads", ["", "FALSE"])
def test_who_confirms_what_another_has_is_in_no_group_for_that(reads: str, tmp_path: Path) -> None:
    """The right to a name is no right to its filter: an old confirmation is answered, and no more."""

    async def main() -> None:
        users = {"eve": WORKER}
        async with asyncio.timeout(90), secure(1, tmp_path, f=0, users=users, runtime=STEADY) as network:
            honest = await _comes(network, "eve")
            await honest.durable("jobs", "topic = 'jobs'", group=True)
            await honest.advertise("topic = 'jobs'")
            liar = await Liar.attach(network, "eve")
            if reads:
                liar.say(ClientSubscribe(2, LINE, reads))
            liar.say(ClientConfirm(2, LINE, "jobs", 1, 0, 0, {}, 0))
            await liar.hears(NameKept)
            record = NameRecord("jobs", "topic = 'jobs'", 0, {}, 1, 0, honest.name, "b0")
            liar.say(_report(2, record))
            await honest.publish_many({"topic": "jobs"} for _ in range(50))
            assert await _hears_of_group(liar, 2) is None
            await honest.close()

    run(main())


def test_nobody_speaks_in_a_group_for_another_member(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"eve": WORKER}
        async with asyncio.timeout(90), secure(1, tmp_path, f=0, users=users, runtime=STEADY) as network:
            honest = await _comes(network, "eve")
            await honest.durable("jobs", "topic = 'jobs'", group=True)
            liar = await Liar.attach(network, "eve")
            liar.say(_open(2))
            record = (await liar.hears(NameOpened)).record
            liar.say(_report(2, record, said_of="eve:other/s1#1"))
            assert await _hears_of_group(liar, 2) is None
            liar.say(_report(2, record))
            assert (await _hears_of_group(liar, 30)).line == LINE
            await honest.close()

    run(main())


def test_one_user_cannot_take_all_names(tmp_path: Path) -> None:
    """Neither by holding them, nor by beginning to, nor by ending one after the other."""

    async def main() -> None:
        few = {**WORKER, "named": ["eve-%"], "limits": {"names": 3}}
        users = {"eve": few, "bob": {**WORKER, "status": True, "named": True}}
        async with asyncio.timeout(90), secure(1, tmp_path, f=0, users=users, runtime=STEADY) as network:
            liar = await Liar.attach(network, "eve")
            for number in range(2):
                liar.say(ClientOpen(2, f"eve:liar/s{number}", f"eve-{number}", "topic = 'jobs'"))
                await liar.hears(NameOpened)
                liar.say(ClientUnsubscribe(2, f"eve:liar/s{number}"))
            liar.say(ClientOpen(2, "eve:liar/s2", "eve-2", "topic = 'jobs'", beyond=1))
            assert "was ended" in (await liar.hears(NameRefused)).reason  # but it has begun
            liar.say(ClientOpen(2, "eve:liar/s3", "eve-3", "topic = 'jobs'"))
            refusal = await liar.hears(NameRefused)
            assert refusal.reason == "user 'eve' has as many durable subscriptions as it may have; end one first"
            bob = await _comes(network, "bob")
            await bob.durable("bob-0", "topic = 'jobs'")
            await bob.admin.delete("eve-1")
            liar.say(ClientOpen(2, "eve:liar/s4", "eve-3", "topic = 'jobs'"))
            await liar.hears(NameOpened)
            await bob.close()

    run(main())

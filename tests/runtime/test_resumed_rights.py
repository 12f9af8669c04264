"""Rights of clients that resume subscriptions at another broker, or after their rights have changed."""

import asyncio
from pathlib import Path

from gapless.client import connect
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocols.gapless.client_messages import (
    Active,
    Attach,
    ClientAdvertise,
    ClientLost,
    ClientPublish,
    ClientSubscribe,
    Confirmed,
    Delivery,
    LossKept,
    Ready,
    Stable,
)
from gapless.protocols.gapless.identities import Incarnation
from gapless.runtime.event_loop import run

from .forging_client import ForgingClient
from .secure import STEADY, secure

SHOP = {"publish": ["topic LIKE 'shop/%'"], "subscribe": ["topic LIKE 'shop/%'", "topic = 'news'"]}
NEWS = {"publish": [], "subscribe": ["topic = 'news'"]}


def test_a_client_without_the_right_history_gets_everything_when_its_broker_dies(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(90),
            secure(chain(3), tmp_path, users={"ann": SHOP}) as network,
            connect(network.at("b0"), name="p", credentials=network.certified("admin")) as admin,
            connect(network.at("b2"), name="c", credentials=network.certified("ann")) as ann,
        ):
            await admin.advertise("TRUE")
            subscription = await ann.subscribe("topic LIKE 'shop/%'")
            events = [await admin.publish({"topic": f"shop/{n}"}) for n in range(5)]
            crash = asyncio.create_task(network.crash(ann.broker))
            events += [await admin.publish({"topic": f"shop/{n}"}) for n in range(5, 10)]
            await crash
            events += [await admin.publish({"topic": f"shop/{n}"}) for n in range(10, 15)]
            assert [(await anext(subscription)).id for _ in events] == [event.id for event in events]

    run(main())


def test_a_subscription_that_never_existed_gives_no_access_to_history(tmp_path: Path) -> None:
    """A malicious client claims a subscription at the other broker from the administrator's first event on."""

    async def main() -> None:
        async with (
            asyncio.timeout(90),
            secure(2, tmp_path, f=0, users={"ann": SHOP, "bob": SHOP}, runtime=STEADY) as network,
            connect(network.at("b1"), credentials=network.certified("admin")) as admin,
        ):
            await admin.advertise("TRUE")
            secret = await admin.publish({"topic": "shop/secret"})
            forger = await ForgingClient.attach(network, "ann", "b0", "ann:liar")
            forger.say(ClientSubscribe(1, "ann:liar/s", "topic LIKE 'shop/%'", 0, 0, True))
            assert "'ann' may not read history" in await forger.denial()
            forger.say(ClientSubscribe(1, "ann:liar/t", "topic = 'shop/x'"))
            active = await forger.next_message(Active)
            assert active.ticket
            wide, narrow = "topic LIKE 'shop/%'", "topic = 'shop/x'"
            for name, text, since in (("u", narrow, active.position - 1), ("v", narrow, 0)):
                forger.say(ClientSubscribe(1, f"ann:liar/{name}", text, since, 0, True, active.ticket))
                assert "may not read history" in await forger.denial()
            other = await ForgingClient.attach(network, "bob", "b1", "bob:liar")
            other.say(ClientSubscribe(1, "bob:liar/s", narrow, active.position, 0, True, active.ticket))
            assert "'bob' may not read history" in await other.denial()
            forger.say(ClientSubscribe(1, "ann:liar/w", wide, active.position, 0, True, active.ticket))
            await admin.publish({"topic": "shop/other"})
            last = await admin.publish({"topic": "shop/x"})
            got: dict[str, list[str]] = {"ann:liar/w": []}
            while last.id not in got["ann:liar/w"]:
                delivery = await forger.next_message(Delivery)
                for name in delivery.subscriptions:
                    got.setdefault(name, []).extend(event.id for event in delivery.events)
            assert got["ann:liar/w"] == [last.id], "only what the ticket's filter matches"
            assert not any(secret.id in ids for ids in got.values())

    run(main())


def test_a_loss_is_reported_only_where_the_event_may_have_matched(tmp_path: Path) -> None:
    """A malicious client claims that its event is lost and could have matched any filter."""

    async def main() -> None:
        async with (
            asyncio.timeout(90),
            secure(2, tmp_path, f=0, users={"ann": SHOP}, runtime=STEADY) as network,
            connect(network.at("b1"), credentials=network.certified("admin")) as admin,
        ):
            await admin.advertise("TRUE")
            bank = await admin.subscribe("topic = 'bank'")
            shop = await admin.subscribe("topic LIKE 'shop/%'")
            forger = await ForgingClient.attach(network, "ann", "b0", "ann:liar")
            forger.say(ClientAdvertise(1, "ann:liar/a", "topic LIKE 'shop/%'"))
            await forger.next_message(Stable)
            forger.say(
                ClientPublish(1, EventRun.of([Event("ann:liar", n, {"topic": "shop/x"}, b"") for n in (1, 2, 3)]))
            )
            await forger.next_message(Confirmed)
            assert len([await anext(shop) for _ in range(3)]) == 3
            forger.say(Attach(2, Incarnation("b0", 0), 0, 0, 0, 3, 3))  # these numbers were admitted
            while (await forger.next_message(Ready)).session < 2:
                pass
            forger.say(ClientLost(2, 1, 3, 0, "TRUE"))
            await forger.next_message(LossKept)
            last = await admin.publish({"topic": "bank"})
            assert (await anext(bank)).id == last.id

    run(main())

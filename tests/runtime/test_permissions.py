"""Permissions of users: forbidden calls are refused with a clear message, and no sequence of calls circumvents that."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.client import Answer, Client, connect
from gapless.errors import ConfigError, DeniedError, WireError
from gapless.event_runs import EventRun
from gapless.events import Event, PublishedEvent
from gapless.overlay import chain
from gapless.protocols.gapless.client_messages import (
    CLIENT_MESSAGES,
    Attach,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
)
from gapless.protocols.gapless.identities import Incarnation, Status
from gapless.protocols.gapless.messages import Excluded
from gapless.registry import find_protocol
from gapless.runtime.access import Access
from gapless.runtime.codec import Codec, message_types
from gapless.runtime.event_loop import run
from gapless.runtime.network_file import SecurityEntry, check_network
from gapless.runtime.probe import ask_for_report, ask_to_end, ask_to_forget

from .forging_client import ForgingClient
from .logged import logged
from .secure import STEADY, Secure, secure, until

SHOP = {"publish": ["topic LIKE 'shop/%'"], "subscribe": ["topic LIKE 'shop/%'", "topic = 'news'"]}
NEWS = {"publish": [], "subscribe": ["topic = 'news'"]}


async def _takes(subscription: Any, *events: PublishedEvent) -> None:
    got: list[Event] = []
    async with asyncio.timeout(30):
        while len(got) < len(events):
            got += await subscription.take()
    assert [event.id for event in got] == [event.id for event in events]


async def _comes(network: Secure, user: str, broker: str = "b0") -> Client:
    return await connect(network.at(broker), name="c", credentials=network.certified(user))


# ---- calls ----------------------------------------------------------------------------------------------------


def test_filters_within_the_rights_work_and_others_are_refused_with_a_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users={"ann": SHOP}) as network:
            ann = await _comes(network, "ann")
            with logged() as log:
                # The very first call is sent together with the greetings of the protocol, later ones on their own.
                for _ in range(2):
                    with pytest.raises(DeniedError) as caught:
                        await asyncio.wait_for(ann.subscribe("topic LIKE 'bank/%'"), 30)
                    assert "user 'ann' may not subscribe to \"topic LIKE 'bank/%'\"; allowed:" in str(caught.value)
                    with pytest.raises(DeniedError, match="user 'ann' may not publish 'TRUE'; allowed:"):
                        await asyncio.wait_for(ann.advertise("TRUE"), 30)
                assert "denied: user 'ann' may not" in log.text
                assert "peer=ann:c-" in log.text
                assert "address=127.0.0.1" in log.text
            await ann.advertise("topic = 'shop/shoes' AND price < 10")
            subscription = await ann.subscribe("topic LIKE 'shop/sh%'")
            event = await ann.publish({"topic": "shop/shoes", "price": 7})
            await _takes(subscription, event)
            assert network.brokers["b0"].links.counters.refused["denied"] >= 4
            await ann.close()

    run(main())


def test_users_with_a_shared_role_have_their_own_filters_and_denials_persist(tmp_path: Path) -> None:
    async def main() -> None:
        role = {
            "name": "desk",
            "publish": ["topic LIKE '${user}/%'"],
            "subscribe": ["TRUE"],
            "deny_publish": ["topic LIKE '%/closed'"],
            "deny_subscribe": ["secret = TRUE"],
        }
        users: dict[str, Any] = {"ann": {"roles": ["desk"], "outside": "narrow"}, "bob": {"roles": ["desk"]}}
        async with secure(1, tmp_path, f=0, users=users, roles=[role]) as network:
            ann = await connect(network.at("b0"), credentials=network.by_token("ann"))
            bob = await connect(network.at("b0"), credentials=network.by_token("bob"))
            with pytest.raises(DeniedError, match=r"may not subscribe to 'TRUE'; allowed: \(TRUE\), but not \(secret"):
                await bob.subscribe("TRUE")
            with pytest.raises(DeniedError, match="user 'bob' may not publish"):
                await bob.advertise("topic LIKE 'ann/%'")
            with pytest.raises(DeniedError, match="user 'bob' may not publish"):
                await bob.advertise("topic LIKE 'bob/%'")  # some of the filter is denied
            await bob.advertise("topic = 'bob/open'")
            narrowed = await ann.subscribe("topic LIKE 'bob/%'")
            await bob.publish({"topic": "bob/open", "secret": True})
            open_one = await bob.publish({"topic": "bob/open", "secret": False})
            async with asyncio.timeout(30):
                assert [event.id for event in await narrowed.take()] == [open_one.id]
            await ann.close()
            await bob.close()

    run(main())


def test_history_is_a_right_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        users: dict[str, dict[str, Any]] = {"ann": {**SHOP, "history": True}, "ben": SHOP}
        async with secure(chain(2), tmp_path, users=users) as network:
            ann, ben = await _comes(network, "ann"), await _comes(network, "ben", "b1")
            await ann.advertise("topic = 'shop/shoes'")
            event = await ann.publish({"topic": "shop/shoes"})
            async with asyncio.timeout(30):
                [read] = [event async for event in await ann.read("topic LIKE 'shop/%'", since="earliest")]
                assert read.id == event.id
                for _ in range(2):
                    with pytest.raises(DeniedError, match="user 'ben' may not read history"):
                        await ben.subscribe("topic LIKE 'shop/%'", since="earliest")
                    with pytest.raises(DeniedError, match="user 'ben' may not read history"):
                        await ben.read("topic LIKE 'shop/%'", since="earliest")
                live = await ben.subscribe("topic LIKE 'shop/%'")
                later = await ann.publish({"topic": "shop/shoes"})
            await _takes(live, later)
            await ann.close()
            await ben.close()

    run(main())


def test_a_subscription_can_be_narrowed_to_what_is_allowed(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": {**SHOP, "outside": "narrow"}, "bob": {**NEWS, "outside": "narrow", "subscribe": []}}
        async with secure(chain(2), tmp_path, users=users) as network:
            ann, admin = await _comes(network, "ann"), await _comes(network, "admin", "b1")
            await admin.advertise("TRUE")
            subscription = await ann.subscribe("price < 10")
            await admin.publish({"topic": "bank/secret", "price": 1})
            await admin.publish({"topic": "shop/shoes", "price": 11})
            event = await admin.publish({"topic": "shop/shoes", "price": 7})
            last = await admin.publish({"topic": "news", "price": 8})
            await _takes(subscription, event, last)
            bob = await _comes(network, "bob")
            with pytest.raises(DeniedError, match="nothing is allowed"):
                await asyncio.wait_for(bob.subscribe("TRUE"), 30)
            for client in (ann, bob, admin):
                await client.close()

    run(main())


def test_a_narrow_subscription_beside_a_wide_one_gets_no_more_than_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path, users={"ann": NEWS}) as network:
            admin, wide = await _comes(network, "admin", "b2"), await _comes(network, "admin")
            ann = await _comes(network, "ann")
            await admin.advertise("TRUE")
            everything = await wide.subscribe("TRUE")
            news = await ann.subscribe("topic = 'news'")
            events = [await admin.publish({"topic": topic}) for topic in ("bank", "news", "shop/x", "news")]
            await _takes(everything, *events)
            await _takes(news, events[1], events[3])
            for client in (ann, wide, admin):
                await client.close()

    run(main())


def test_requests_and_replies_stay_within(tmp_path: Path) -> None:
    async def main() -> None:
        users = {
            "ann": {"publish": ["topic = 'ask'"], "subscribe": ["topic = 'quote'"]},
            "desk": {"publish": ["topic = 'quote'"], "subscribe": ["topic = 'ask'"]},
        }
        async with secure(1, tmp_path, f=0, users=users) as network:
            ann, member = await _comes(network, "ann"), await _comes(network, "desk")
            await member.advertise("topic = 'quote'")

            async def quote(request: Event) -> Answer:
                return {"topic": "quote", "price": 7}

            await member.answer("topic = 'ask'", quote)
            await ann.advertise("topic = 'ask'")
            reply = await ann.request({"topic": "ask"}, reply="topic = 'quote'", timeout_s=30)
            assert reply.attributes["price"] == 7
            with pytest.raises(DeniedError):
                await ann.request({"topic": "ask"}, timeout_s=30)
            await ann.close()
            await member.close()

    run(main())


def test_status_and_operating_are_rights(tmp_path: Path) -> None:
    async def main() -> None:
        users: dict[str, Any] = {"ann": {**SHOP, "status": True}, "bob": SHOP}
        async with secure(1, tmp_path, f=0, users=users) as network:
            address = network.config.addresses["b0"]
            ann, bob, admin = (
                Access(is_tls=True, credentials=network.certified(user)) for user in ("ann", "bob", "admin")
            )
            assert (await ask_for_report(address, timeout_s=30, access=ann))["broker"] == "b0"
            with pytest.raises(
                DeniedError, match="user bob may not see the status of brokers; this requires status = true"
            ):
                await ask_for_report(address, timeout_s=30, access=bob)
            client = await _comes(network, "bob")
            await client.subscribe("topic = 'news'")
            with pytest.raises(DeniedError, match="user ann may not end sessions; this requires operate = true"):
                await ask_to_end(address, client.name, timeout_s=30, access=ann)
            with pytest.raises(DeniedError, match="user ann may not declare that a broker will not return"):
                await ask_to_forget(address, "b0", timeout_s=30, access=ann)
            assert not (await ask_to_forget(address, "b0", timeout_s=30, access=admin))["forgotten"]
            assert (await ask_to_end(address, client.name, timeout_s=30, access=admin))["ended"]
            await client.close()

    run(main())


def test_a_protocol_that_cannot_be_judged_is_refused_in_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            entry = msgspec.structs.replace(network.config.protocol, name="locaps")
            with pytest.raises(ConfigError, match=r"security\.users: protocol 'locaps' does not describe"):
                check_network(msgspec.structs.replace(network.config, protocol=entry))
            assert isinstance(network.config.security, SecurityEntry)

    run(main())


# ---- circumvention --------------------------------------------------------------------------------------------


async def _is_over(network: Secure, client: str) -> None:
    await until(lambda: not any(broker.links.host.node.has_session(client) for broker in network.brokers.values()))  # type: ignore[union-attr]


def test_an_event_outside_its_advertisement_ends_the_session_and_is_not_delivered(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users={"ann": SHOP}, runtime=STEADY) as network:
            admin = await _comes(network, "admin", "b1")
            everything = await admin.subscribe("TRUE")
            for topic, publisher, why in (
                ("bank", "ann:one", "user 'ann' may not publish this event; allowed:"),
                ("shop/x", "ann:one", "cannot publish in the name of 'ann:one'"),
            ):
                forger = await ForgingClient.attach(network, "ann", name="ann:one" if topic == "bank" else "ann:two")
                forger.say(ClientAdvertise(1, f"{forger.name}/a1", "topic LIKE 'shop/%'"))
                forger.say(ClientPublish(1, EventRun.of([Event(publisher, 1, {"topic": topic}, b"")])))
                refusal = await forger.refusal()
                assert refusal.code == "denied"
                assert why in refusal.reason
                await _is_over(network, forger.name)
            await admin.advertise("TRUE")
            await _takes(everything, await admin.publish({"still": "here"}))
            await admin.close()

    run(main())


def test_no_client_can_assign_the_names_of_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP, "bob": SHOP}, runtime=STEADY) as network:
            bob = await _comes(network, "bob")
            subscription = await bob.subscribe("topic = 'news'")
            lies = (
                ClientSubscribe(1, subscription.name, "topic = 'shop/x'"),
                ClientAdvertise(1, f"{bob.name}/a9", "topic = 'shop/x'"),
                ClientSubscribe(1, "ann:liar/s1", "topic = 'shop/x'"),
            )
            for number, message in enumerate(lies):
                forger = await ForgingClient.attach(network, "ann", name=f"ann:liar-{number}")
                forger.say(message)
                refusal = await forger.refusal()
                assert (refusal.code, "has to begin with the client's own" in refusal.reason) == ("denied", True)
            admin = await _comes(network, "admin")
            await admin.advertise("TRUE")
            await _takes(subscription, await admin.publish({"topic": "news"}))
            await admin.close()
            await bob.close()

    run(main())


@pytest.mark.parametrize(
    "kind", [kind for kind in message_types(find_protocol("gapless")) if kind not in CLIENT_MESSAGES]
)
def test_messages_of_brokers_are_not_accepted_from_a_client(kind: type[msgspec.Struct]) -> None:
    codec = Codec(find_protocol("gapless"), 1 << 24)
    name = kind.__struct_config__.tag
    with pytest.raises(WireError, match="a batch of messages is malformed"):
        codec.decode(memoryview(msgspec.msgpack.encode([[name]])), is_client=True)


def test_a_client_that_introduces_itself_as_a_broker_is_rejected(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}, runtime=STEADY) as network:
            forger = await ForgingClient.attach(network, "ann")
            forger.say(Excluded({"b0": Status(1)}))
            assert (await forger.refusal()).code == "malformed"
            assert network.brokers["b0"].is_ready

    run(main())


# ---- changed rights -------------------------------------------------------------------------------------------


def test_revoking_a_user_ends_all_that_it_has(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users={"ann": SHOP}) as network:
            ann, away = await _comes(network, "ann"), await _comes(network, "ann", "b1")
            subscription = await ann.subscribe("topic = 'news'")
            await away.subscribe("topic = 'news'")
            await away.close(leave=False)  # its session is kept for a while
            network.set_users({})
            await network.reload()
            with pytest.raises(DeniedError, match="user 'ann' was revoked"):
                await asyncio.wait_for(subscription.take(), 30)
            await _is_over(network, ann.name)
            await _is_over(network, away.name)
            with pytest.raises(DeniedError, match="user 'ann' does not exist"):
                await _comes(network, "ann")
            await ann.close()

    run(main())


def test_revoking_a_right_ends_exactly_what_relies_on_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users={"ann": SHOP}) as network:
            ann, admin = await _comes(network, "ann"), await _comes(network, "admin", "b1")
            await admin.advertise("TRUE")
            await ann.advertise("topic LIKE 'shop/%'")
            news, shop = await ann.subscribe("topic = 'news'"), await ann.subscribe("topic LIKE 'shop/%'")
            first = await admin.publish({"topic": "news", "n": 1})
            network.set_users({"ann": NEWS})
            await network.reload()
            with pytest.raises(DeniedError, match="user 'ann' may not subscribe any longer to"):
                await asyncio.wait_for(shop.take(), 30)
            await admin.publish({"topic": "shop/x"})
            await _takes(news, first, await admin.publish({"topic": "news", "n": 2}))
            with pytest.raises(DeniedError, match="may not publish"):
                await asyncio.wait_for(ann.advertise("topic LIKE 'shop/%'"), 30)
            with pytest.raises(Exception, match="matches none of your advertisements"):
                await ann.publish({"topic": "shop/x"})
            await ann.close()
            await admin.close()

    run(main())


def test_others_do_not_notice_when_rights_change(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP, "bob": SHOP}) as network:
            bob = await _comes(network, "bob")
            await bob.subscribe("topic = 'news'")
            connection = network.brokers["b0"].links.links[bob.name].connection
            network.set_users({"ann": NEWS, "bob": SHOP})
            await network.reload()
            network.set_users({"bob": SHOP})
            await network.reload()
            assert connection is not None
            assert network.brokers["b0"].links.links[bob.name].connection is connection
            assert connection.is_open
            await bob.close()

    run(main())


def test_a_session_drops_what_its_client_does_not_have(tmp_path: Path) -> None:
    """The session began with a filter that was allowed then; its client resumes it with a filter that is allowed
    now.
    """

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}, runtime=STEADY) as network:
            forger = await ForgingClient.attach(network, "ann")
            forger.say(ClientSubscribe(1, "ann:liar/s1", "topic LIKE 'shop/%'"))
            node: Any = network.brokers["b0"].links.host.node
            await until(lambda: "ann:liar/s1" in node.held_by("ann:liar"))
            network.set_users({"ann": NEWS})
            await network.reload()
            assert (await forger.refusal()).code == "changed"
            again = await ForgingClient.greeted(network, "ann", "ann:liar")
            again.say(Attach(2, Incarnation("b0", 0), 1, 0, 0, 0, 0))
            assert not (await again.next_message(Ready)).is_resumed
            assert not node.held_by("ann:liar")
            again.say(ClientSubscribe(2, "ann:liar/s1", "topic = 'news'"))
            await until(lambda: node.held_by("ann:liar"))
            admin = await _comes(network, "admin")
            await admin.advertise("TRUE")
            await admin.publish({"topic": "shop/secret"})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(again.next_message(Delivery), 0.5)
            await admin.close()

    run(main())


def test_an_inherited_session_keeps_no_more_than_its_user_may_have_now(tmp_path: Path) -> None:
    """The client's broker is dead, another broker took over the session, and rights were revoked in between."""

    async def main() -> None:
        async with secure(chain(3), tmp_path, users={"ann": SHOP}) as network:
            ann, admin = await _comes(network, "ann", "b1"), await _comes(network, "admin", "b2")
            await admin.advertise("TRUE")
            news, shop = await ann.subscribe("topic = 'news'"), await ann.subscribe("topic LIKE 'shop/%'")
            network.set_users({"ann": NEWS})
            await network.crash("b1")
            await network.reload()
            with pytest.raises(DeniedError, match="user 'ann' may not subscribe"):
                await asyncio.wait_for(shop.take(), 60)
            await admin.publish({"topic": "shop/x"})
            await _takes(news, await admin.publish({"topic": "news"}))
            await ann.close()
            await admin.close()

    run(main())


def test_a_revoked_user_does_not_get_in_elsewhere_when_its_broker_dies(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path, users={"ann": SHOP}) as network:
            ann = await _comes(network, "ann", "b1")
            news = await ann.subscribe("topic = 'news'")
            network.set_users({"bob": SHOP})
            for name in ("b0", "b2"):
                broker_security = network.brokers[name].broker_security
                assert broker_security is not None
                assert await broker_security.reload("the test says so")
            await network.crash("b1")
            with pytest.raises(DeniedError, match=r"user 'ann' (does not exist|was revoked)"):
                await asyncio.wait_for(news.take(), 60)
            await _is_over(network, ann.name)
            await ann.close()

    run(main())


def test_the_same_rights_count_at_every_broker(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(3), tmp_path, users={"ann": NEWS}) as network:
            for broker in ("b0", "b1", "b2"):
                ann = await _comes(network, "ann", broker)
                with pytest.raises(DeniedError):
                    await asyncio.wait_for(ann.subscribe("topic = 'shop/x'"), 30)
                await ann.close()

    run(main())


def test_a_group_ends_for_all_its_members_with_the_right_to_what_it_shares(tmp_path: Path) -> None:
    """The group ends for the coordinator's client and all members at every broker, and they cannot attach again."""

    async def main() -> None:
        group: dict[str, Any] = {**SHOP, "history": True, "named": True}
        async with asyncio.timeout(120), secure(chain(2), tmp_path, users={"ann": group}) as network:
            admin = await _comes(network, "admin")
            await admin.advertise("TRUE")
            members = [await _comes(network, "ann", broker) for broker in ("b0", "b1")]
            shared = [await each.durable("work", "topic LIKE 'shop/%'", group=True) for each in members]
            network.set_users({"ann": {**group, "subscribe": ["topic = 'news'"]}})
            await network.reload()
            for each in shared:
                with pytest.raises(DeniedError, match="user 'ann' may not subscribe"):
                    await asyncio.wait_for(each.take(), 60)
            await admin.publish({"topic": "shop/secret"})
            for client in members:
                with pytest.raises(DeniedError, match="user 'ann' may not subscribe to"):
                    await asyncio.wait_for(client.durable("work", "topic LIKE 'shop/%'", group=True), 30)
            for client in (*members, admin):
                await client.close()

    run(main())

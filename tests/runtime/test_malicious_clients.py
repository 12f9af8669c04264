"""Clients that follow the protocol up to some point and then lie: each is sent away with a sentence, or hurts itself
alone, and the traffic of others goes on, also through the other broker."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import get_args

import msgspec
import pytest

from gapless.client import Client, connect
from gapless.events import Event, EventRun
from gapless.filters.lexer import TEXT_LENGTH_MAX
from gapless.protocols.gapless.client_messages import (
    ANSWERS,
    Attach,
    Attached,
    Behind,
    ClientAdvertise,
    ClientConfirm,
    ClientGot,
    ClientHand,
    ClientOpen,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cut,
    Delivery,
    Stable,
    SubscriptionProgress,
)
from gapless.protocols.gapless.clients.claims import NUMBER_MAX
from gapless.protocols.gapless.messages import BROKER_MESSAGES, Body, TreeBody
from gapless.protocols.gapless.name_messages import NAME_MESSAGES, GroupDeal, GroupReport
from gapless.protocols.parts.bounds import TEXT_MAX
from gapless.runtime import wire
from gapless.runtime.codec import message_types
from gapless.runtime.event_loop import run

from .local import Local, local
from .raw_peer import Raw, batch, framed

PATIENCE_S = 30


class Honest:
    """A publisher at one broker and a subscriber at the other."""

    def __init__(self, publisher: Client, subscriber: Client) -> None:
        self.publisher = publisher
        self.subscriber = subscriber


@asynccontextmanager
async def honest_network() -> AsyncIterator[tuple[Local, Honest]]:
    """Two brokers that keep each other's backups, and who must not notice anything, then or later."""
    async with (
        local(2) as network,
        connect(network.at("b0"), name="publisher") as publisher,
        connect(network.at("b1"), name="subscriber") as subscriber,
    ):
        await publisher.advertise("kind = 'honest'")
        subscription = await subscriber.subscribe("kind = 'honest'")
        first = await publisher.publish({"kind": "honest", "n": 1})
        assert (await anext(aiter(subscription))).id == first.id
        yield network, Honest(publisher, subscriber)
        async with asyncio.timeout(PATIENCE_S):
            later = await subscriber.subscribe("kind = 'honest' AND n = 2")
            second = await publisher.publish({"kind": "honest", "n": 2})
            while (await anext(aiter(subscription))).id != second.id:
                pass  # a liar may have published, too
            assert (await anext(aiter(later))).id == second.id
        for broker in network.brokers.values():
            assert not broker.failure.done()
            assert broker.is_ready


def event(seq: int, publisher: str = "liar", **attributes: object) -> Event:
    return Event(publisher, seq, dict(attributes))  # type: ignore[arg-type]


def attach(**changes: object) -> Attach:
    return msgspec.structs.replace(Attach(3, "b0/0", [], {}, [], 1), **changes)


def progress(**changes: object) -> SubscriptionProgress:
    return msgspec.structs.replace(SubscriptionProgress("liar/s1", "TRUE", {}, {}, False), **changes)


Lie = Callable[[Honest], msgspec.Struct]

LIES: dict[str, tuple[Lie, str]] = {
    "another's subscription": (
        lambda honest: ClientSubscribe(2, f"{honest.subscriber.name}/s1", "TRUE"), "which belongs to 'subscriber-",
    ),
    "a subscription that another may want": (
        lambda honest: ClientSubscribe(2, f"{honest.subscriber.name}/s2", "TRUE"), "which belongs to 'subscriber-",
    ),
    "another's advertisement": (
        lambda honest: ClientAdvertise(2, f"{honest.publisher.name}/a1", "FALSE", 1), "which belongs to 'publisher-",
    ),
    "another's subscription, coming back": (
        lambda honest: attach(brought=[progress(subscription=f"{honest.subscriber.name}/s1")]), "which belongs to",
    ),
    "a name without end": (lambda _: ClientSubscribe(2, "liar/" + "s" * 500, "TRUE"), "this one has 505"),
    "no name": (lambda _: ClientSubscribe(2, "", "TRUE"), "0 characters"),
    "another's event": (
        lambda honest: ClientPublish(2, [event(2, honest.publisher.name)]), "publishes number 2, but number 1 is next",
    ),
    "another's next event": (
        lambda honest: ClientPublish(2, [event(1, honest.publisher.name)]), "cannot publish in the name of 'publisher-",
    ),
    "an event of another between its own": (
        lambda honest: ClientPublish(2, [event(1), event(2, honest.publisher.name)]), "cannot publish in the name of",
    ),
    "a tombstone": (lambda _: ClientPublish(2, [Event("liar", 1, {"": "lost"})]), "an attribute without a name"),
    "a number that jumps": (lambda _: ClientPublish(2, [event(1), event(7)]), "number 7, but number 2 is next"),
    "a number that goes back": (lambda _: ClientPublish(2, [event(1), event(1)]), "number 1, but number 2 is next"),
    "a number below nothing": (lambda _: ClientPublish(2, [event(-5)]), "number -5"),
    "another's run": (
        lambda honest: ClientPublish(2, EventRun(honest.publisher.name, 1, [b"", b""], [({}, 2)])),
        "cannot publish in the name of 'publisher-",
    ),
    "a run that jumps": (
        lambda _: ClientPublish(2, EventRun("liar", 2, [b"", b""], [({}, 2)])), "number 2, but number 1 is next",
    ),
    "a run below nothing": (lambda _: ClientPublish(2, EventRun("liar", -1, [b"", b""], [({}, 2)])), "number -1"),
    "a tombstone in a run": (
        lambda _: ClientPublish(2, EventRun("liar", 1, [b"", b""], [({}, 1), ({"": "lost"}, 2)])),
        "an attribute without a name",
    ),
    "a run without end": (
        lambda _: ClientPublish(2, EventRun("liar", 1, [b""] * 100_000, [({}, 100_000)])),
        "more than 16,000 publications that have to wait",
    ),
    "a number beyond all": (lambda _: attach(first=2**64 - 1), "numbers go from 0 to"),
    "an attempt beyond all": (lambda _: attach(attempt=2**63), "numbers go from 0 to"),
    "an attempt below nothing": (lambda _: attach(attempt=-1), "attempts are counted from 1"),
    "fewer than none unread": (lambda _: attach(unread=-1), "number -1"),
    "a cut beyond all": (lambda _: attach(brought=[progress(cuts={"x": 2**64 - 1})]), "numbers go from 0 to"),
    "a cut below nothing": (lambda _: attach(brought=[progress(cuts={"x": -1})]), "number -1"),
    "more than all taken": (lambda _: attach(brought=[progress(got={"x": 2**63})]), "numbers go from 0 to"),
    "more than all seen": (lambda _: attach(seen={"x": 2**63}), "numbers go from 0 to"),
    "an advertisement beyond all": (lambda _: ClientAdvertise(2, "liar/a1", "TRUE", 2**63), "numbers go from 0 to"),
    "publications that do not follow": (
        lambda _: attach(publications=[event(5)], first=1), "number 5, but number 1 is next",
    ),
    "a confirmation of what it never got": (lambda _: ClientGot(2, 5), "confirms delivery 5, but was sent only 0"),
    "a home that is none": (lambda _: attach(home="b0/first"), "a session's home is a broker and its life"),
    "a home without a broker": (lambda _: attach(home="/7"), "a session's home is a broker and its life"),
    "a home that is no number": (lambda _: attach(home="b0/²"), "a session's home is a broker and its life"),
    "a filter that cannot be read, after others": (
        lambda _: attach(brought=[progress(), progress(subscription="liar/s2", filter="a <")]), "found the end",
    ),
    "an advertisement that cannot be read": (lambda _: ClientAdvertise(2, "liar/a1", "a = NULL", 1), "IS NOT NULL"),
    "another's durable subscription": (
        lambda honest: ClientConfirm(2, f"{honest.subscriber.name}/s1", "n", 1, 0, 0, {}, 0), "which belongs to",
    ),
    "a durable subscription without end": (
        lambda _: ClientOpen(2, "liar/" + "s" * 500, "n", "TRUE"), "this one has 505",
    ),
    "a lease without end": (
        lambda _: ClientConfirm(2, "liar/s1", "n", 1, 1, 0, {}, 0, lease_us=NUMBER_MAX), "120,000,000 is the limit",
    ),
    "time to confirm without end": (
        lambda _: ClientOpen(2, "liar/s1", "n", "TRUE", False, True, NUMBER_MAX), "86,400,000,000 is the limit",
    ),
    "confirmed publishers without end": (
        lambda _: ClientConfirm(2, "liar/s1", "n", 1, 1, 0, {f"p{n}": 1 for n in range(10_001)}, 0),
        "10,001 publishers and ranges",
    ),
    "confirmed publishers with names without end": (
        lambda _: ClientConfirm(2, "liar/s1", "n", 1, 1, 0, {"p" * (1 << 18): 1, "q": 1}, 0), "262,145 characters",
    ),
    "confirmed ranges without end": (
        lambda _: ClientConfirm(
            2, "liar/s1", "n", 1, 1, 0, {}, 0, done={"p": [(2 * n, 2 * n) for n in range(10_001)]}
        ),
        "10,001 publishers and ranges",
    ),
    "a range beyond all": (
        lambda _: ClientConfirm(2, "liar/s1", "n", 1, 1, 0, {}, 0, done={"p": [(1, 2**63)]}), "nobody can have counted",
    ),
    "a hand without end": (
        lambda _: ClientHand(2, "liar/s1", "n", "x", "b0", GroupReport(1, "l", 0, 0, [("p", 1, 1)] * 1_001)),
        "1,001 events to another of its group",
    ),
    "a deal without end": (
        lambda _: ClientHand(
            2, "liar/s1", "n", "x", "b0", GroupDeal(1, "l", 0, 1, [(1, event(1), False)] * 1_001, 0, [])
        ),
        "1,001 events to another of its group",
    ),
    "what is another's without end": (
        lambda _: ClientHand(2, "liar/s1", "n", "x", "b0", GroupReport(1, "l", 0, 0, None, 0, [1] * 10_001)),
        "10,001 that are another's",
    ),
    "an event too large": (
        lambda _: ClientPublish(2, [Event("liar", 1, {}, bytes(70_000))]), "70,000 bytes, but 65,536 is the limit",
    ),
    "an attribute too large": (
        lambda _: ClientPublish(2, [Event("liar", 1, {"a": "ä" * 40_000})]), "80,017 bytes, but 65,536 is the limit",
    ),
    "a payload too large in a run": (
        lambda _: ClientPublish(2, EventRun("liar", 1, [b"", bytes(70_000), b""], [({}, 3)])),
        "liar:2 has 70,000 bytes, but 65,536 is the limit",
    ),
    "a run that is small only as long as it is one": (
        lambda _: ClientPublish(2, EventRun("liar", 1, [b""] * 1_000, [({"a": "x" * 60_000}, 1_000)])),
        "bytes if each event in it is told for itself, but 16,777,216 is the limit",
    ),
    "attributes and a payload too large in a run": (
        lambda _: ClientPublish(2, EventRun("liar", 1, [b"", bytes(40_000)], [({}, 1), ({"a": "x" * 40_000}, 2)])),
        "liar:2 has 80,017 bytes, but 65,536 is the limit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
def test_a_lie_is_refused_with_a_sentence_and_harms_nobody_else(kind: str) -> None:
    lie, complaint = LIES[kind]

    async def main() -> None:
        async with honest_network() as (network, honest):
            liar = (await Raw.attached(network)).say(batch(lie(honest)))
            refusal = await liar.refusal()
            assert refusal.code == "malformed"
            assert complaint in refusal.reason

    run(main())


def test_what_only_brokers_say_is_refused_from_clients() -> None:
    async def main() -> None:
        async with honest_network() as (network, _):
            spec = network.config.spec
            theirs = [kind for kind in message_types(spec) if kind not in spec.client_messages]
            inside = [kind for alias in (Body, TreeBody) for kind in get_args(alias)]
            assert len(theirs) == len(BROKER_MESSAGES) + len(NAME_MESSAGES) + len(ANSWERS)
            for kind in (*theirs, *inside):
                said = msgspec.msgpack.encode([[kind.__struct_config__.tag]])
                liar = (await Raw.dial(network)).greet("liar").say(framed(wire.MESSAGES, said))
                refusal = await liar.refusal()
                assert refusal.code == "malformed", kind
                assert "Invalid value" in refusal.reason, kind

    run(main())


def test_cuts_that_a_client_invents_count_for_itself_alone() -> None:
    """Its subscription represents those that come later, but the cuts that it brings do not."""

    async def main() -> None:
        async with honest_network() as (network, honest):
            liar = await Raw.attached(network, broker="b1")
            liar.say(batch(ClientSubscribe(2, "liar/s1", "TRUE")))
            cuts = {honest.publisher.name: 1 << 50}
            liar.say(batch(attach(home="b1/0", brought=[progress(cuts=cuts)])))
            await liar.wait_for(Attached)
            async with asyncio.timeout(PATIENCE_S):
                covered = await honest.subscriber.subscribe("n > 2")
                third = await honest.publisher.publish({"kind": "honest", "n": 3})
                assert (await anext(aiter(covered))).id == third.id

    run(main())


def test_confirming_what_was_sent_and_not_taken_costs_the_liar_its_own_events() -> None:
    async def main() -> None:
        async with honest_network() as (network, honest):
            liar = await Raw.attached(network, broker="b1")
            liar.say(batch(ClientSubscribe(2, "liar/s1", "kind = 'honest'")))
            async with asyncio.timeout(PATIENCE_S):
                while network.brokers["b1"].report()["state"]["subscriptions"] < 2:
                    await asyncio.sleep(0.01)
            await honest.publisher.publish({"kind": "honest", "n": 3})
            delivery = await liar.wait_for(Delivery)
            liar.say(batch(ClientGot(2, delivery.number)))
            liar.say(batch(attach(home="b1/0", brought=[progress(got={honest.publisher.name: 1 << 40})])))
            await liar.wait_for(Attached)

    run(main())


def test_subscriptions_without_end_are_refused_before_they_fill_the_memory() -> None:
    filters = [f"a IN ('{'x' * (TEXT_LENGTH_MAX - 100)}', '{number}')" for number in range(17)]

    async def main() -> None:
        async with honest_network() as (network, _):
            liar = await Raw.attached(network)
            for number, text in enumerate(filters):
                liar.say(batch(ClientSubscribe(2, f"liar/s{number}", text)))
            refusal = await liar.refusal()
            assert f"{TEXT_MAX:,} is the limit; end some of them" in refusal.reason
            liar = await Raw.attached(network, "another")
            liar.say(
                batch(attach(brought=[progress(subscription=f"another/{n}", filter=t) for n, t in enumerate(filters)]))
            )
            assert f"{TEXT_MAX:,} is the limit; end some of them" in (await liar.refusal()).reason

    run(main())


def test_filters_that_take_long_to_understand_are_refused_before_they_stall_a_turn() -> None:
    """Together they are far from the bound on characters."""

    def hard(number: int) -> str:
        groups = (" AND ".join(f"(a LIKE 'x{number}_{n}%_a%' OR a NOT LIKE '_{n}%b')" for n in range(6)),) * 20
        return " OR ".join(f"({group.replace('%b', f'%b{place}')})" for place, group in enumerate(groups))

    async def main() -> None:
        async with honest_network() as (network, _):
            liar = await Raw.attached(network)
            asked = [progress(subscription=f"liar/{number}", filter=hard(number)) for number in range(60)]
            assert sum(len(each.filter) for each in asked) < TEXT_MAX / 2
            liar.say(batch(attach(brought=asked)))
            assert "take more than 300,000 steps to be understood" in (await liar.refusal()).reason
            liar = await Raw.attached(network, "another")
            for number in range(5):
                liar.say(batch(ClientSubscribe(2, f"another/{number}", hard(number))))
            assert "take more than 300,000 steps to be understood" in (await liar.refusal()).reason

    run(main())


def test_publications_that_can_never_go_out_are_refused_before_they_fill_the_memory() -> None:
    async def main() -> None:
        async with honest_network() as (network, _):
            liar = await Raw.attached(network)
            for start in range(1, 17_000, 1_000):
                liar.say(batch(ClientPublish(2, [event(seq) for seq in range(start, start + 1_000)])))
            refusal = await liar.refusal()
            assert "has more than 16,000 publications that have to wait" in refusal.reason
            liar = await Raw.attached(network, "another")
            liar.say(batch(ClientPublish(2, [event(1, "another")])))
            for _ in range(33):
                liar.say(batch(*[ClientUnadvertise(2, "another/a1")] * 500))
            assert "has more than 16,000 publications that have to wait" in (await liar.refusal()).reason

    run(main())


def test_an_advertisement_of_everything_and_numbers_far_ahead_keep_nobody_waiting() -> None:
    async def main() -> None:
        async with honest_network() as (network, honest):
            liar = await Raw.attached(network)
            liar.say(batch(ClientAdvertise(2, "liar/a1", "TRUE", NUMBER_MAX)))
            await liar.wait_for(Stable)
            liar.say(batch(attach(first=NUMBER_MAX, advertisements={"liar/a1": ("TRUE", NUMBER_MAX)})))
            await liar.wait_for(Attached)
            liar.say(batch(ClientPublish(3, [event(NUMBER_MAX, kind="honest", n=0)])))
            async with asyncio.timeout(PATIENCE_S):
                await honest.subscriber.subscribe("kind = 'liar'")
            # Who subscribes now starts after that, and can come back with it.
            cuts = {"liar": NUMBER_MAX + 1}
            honest_too = await Raw.attached(network, "honest")
            honest_too.say(batch(attach(brought=[progress(subscription="honest/s1", cuts=cuts)])))
            await honest_too.wait_for(Attached)

    run(main())


def test_taking_back_what_is_anothers_does_nothing() -> None:
    async def main() -> None:
        async with honest_network() as (network, honest):
            liar = await Raw.attached(network)
            liar.say(batch(ClientUnadvertise(2, f"{honest.publisher.name}/a1")))
            liar.say(batch(ClientUnsubscribe(2, f"{honest.subscriber.name}/s1")))
            liar.say(batch(attach()))
            await liar.wait_for(Attached)

    run(main())


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["(" * 50 + "n > 0" + ")" * 50], id="deep"),
        pytest.param([f"n IN ({','.join(['1'] * 2_400)})"] * 2, id="many constants"),
        pytest.param([f"TRUE OR n LIKE '%{'x' * 1_500}%'"] * 2, id="long patterns"),
    ],
)
def test_filters_that_are_too_much_for_one_do_not_stop_a_broker_when_their_client_lies_behind(texts: list[str]) -> None:
    """Each can be read; but the subscriptions of a client that lies behind are read in one stream, by one filter."""

    async def main() -> None:
        async with (
            local(1, f=0, lag_ms=50, delivery_window=5) as network,
            connect(network.url, name="publisher") as publisher,
        ):
            await publisher.advertise("TRUE")
            liar = await Raw.attached(network)
            for number, text in enumerate(texts):
                liar.say(batch(ClientSubscribe(2, f"liar/s{number}", text)))
            await liar.wait_for(Cut)

            async def publish() -> None:
                while True:
                    await publisher.publish({"n": 1})
                    await asyncio.sleep(0.01)

            publishing = asyncio.create_task(publish())
            await liar.wait_for(Behind)
            publishing.cancel()
            for _ in range(20):
                await asyncio.wait_for(publisher.publish({"n": 1}), PATIENCE_S)
            assert not network.brokers["b0"].failure.done()
            liar.close()

    run(main())

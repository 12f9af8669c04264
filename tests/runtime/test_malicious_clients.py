"""Malicious clients over TCP: the broker disconnects each with an error, or the client harms only itself.

The traffic of others continues, also through the other broker. These tests cover the wire and one case of each kind
from end to end; `tests/protocols/gapless/test_claims.py` covers all checks of the protocol.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import get_args

import msgspec
import pytest

from gapless.client import Client, connect
from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.filters.lexer import TEXT_LENGTH_MAX
from gapless.protocols.gapless.client_messages import (
    ANSWERS,
    Active,
    Attach,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Delivery,
    Lagging,
)
from gapless.protocols.gapless.durable.client_messages import ClientAck
from gapless.protocols.gapless.durable.messages import DurableBody, Progress
from gapless.protocols.gapless.link_messages import LinkBody
from gapless.protocols.gapless.messages import BROKER_MESSAGES, Body
from gapless.protocols.parts.bounds import TEXT_MAX
from gapless.runtime import wire
from gapless.runtime.codec import message_types
from gapless.runtime.event_loop import run

from .local import Local, local
from .raw_peer import Raw, batch, framed

PATIENCE_S = 30


class Honest:
    def __init__(self, publisher: Client, subscriber: Client) -> None:
        self.publisher = publisher
        self.subscriber = subscriber


@asynccontextmanager
async def honest_network() -> AsyncIterator[tuple[Local, Honest]]:
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
                pass  # a malicious client may also publish
            assert (await anext(aiter(later))).id == second.id
        for broker in network.brokers.values():
            assert not broker.failure.done()
            assert broker.is_ready


def event(seq: int, publisher: str = "liar", **attributes: object) -> Event:
    return Event(publisher, seq, dict(attributes))  # type: ignore[arg-type]


def publish(*events: Event) -> ClientPublish:
    return ClientPublish(1, EventRun.of(events))


Lie = Callable[[Honest], msgspec.Struct]

LIES: dict[str, tuple[Lie, str]] = {
    "another's subscription": (
        lambda honest: ClientSubscribe(1, f"{honest.subscriber.name}/s1", "TRUE"), "which belongs to 'subscriber-",
    ),
    "another's advertisement": (
        lambda honest: ClientAdvertise(1, f"{honest.publisher.name}/a1", "FALSE"), "which belongs to 'publisher-",
    ),
    "the end of another's subscription": (
        lambda honest: ClientUnsubscribe(1, f"{honest.subscriber.name}/s1"), "which belongs to 'subscriber-",
    ),
    "the end of another's advertisement": (
        lambda honest: ClientUnadvertise(1, f"{honest.publisher.name}/a1"), "which belongs to 'publisher-",
    ),
    "another's event": (
        lambda honest: publish(event(1, honest.publisher.name)), "cannot publish in the name of 'publisher-",
    ),
    "another's durable subscription": (
        lambda honest: ClientAck(1, f"{honest.subscriber.name}/s1", "n", 1, 0, Progress(0)), "which belongs to",
    ),
    "an acknowledgement of what it never got": (
        lambda _: ClientGot(1, 5), "acknowledges delivery 5, but was sent only 0",
    ),
    "a filter that cannot be read": (lambda _: ClientSubscribe(1, "liar/s1", "a <"), "found the end"),
    "a number beyond all": (
        lambda _: Attach(2, None, 0, 0, 0, 2**64 - 1, 0), "numbers are from 0 to",
    ),
    "a number below nothing": (lambda _: publish(event(-5)), "number -5"),
    "an event too large": (
        lambda _: publish(Event("liar", 1, {}, bytes(70_000))), "70,000 bytes, but 65,536 is the limit",
    ),
    "an attribute too large": (
        lambda _: publish(Event("liar", 1, {"a": "ä" * 40_000})), "80,017 bytes, but 65,536 is the limit",
    ),
    "a payload too large in a run": (
        lambda _: ClientPublish(1, EventRun("liar", 1, EventTable.of([{}] * 3, [b"", bytes(70_000), b""]))),
        "liar:2 has 70,000 bytes, but 65,536 is the limit",
    ),
    "a run that is small only as long as it is one": (
        lambda _: ClientPublish(1, EventRun("liar", 1, EventTable.of([{"a": "x" * 60_000}] * 1_000, [b""] * 1_000))),
        "bytes with its events expanded, but 16,777,216 is the limit",
    ),
    "attributes and a payload too large in a run": (
        lambda _: ClientPublish(1, EventRun("liar", 1, EventTable.of([{}, {"a": "x" * 40_000}], [b"", bytes(40_000)]))),
        "liar:2 has 80,017 bytes, but 65,536 is the limit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
def test_a_false_claim_is_refused_with_a_message_and_affects_no_other_client(kind: str) -> None:
    lie, complaint = LIES[kind]

    async def main() -> None:
        async with honest_network() as (network, honest):
            forger = (await Raw.attached(network)).say(batch(lie(honest)))
            refusal = await forger.refusal()
            assert refusal.code == "malformed"
            assert complaint in refusal.reason

    run(main())


def test_messages_of_brokers_are_refused_from_clients() -> None:
    async def main() -> None:
        async with honest_network() as (network, _):
            spec = network.config.spec
            theirs = [kind for kind in message_types(spec) if kind not in spec.client_messages]
            inside = [kind for alias in (Body, LinkBody, DurableBody) for kind in get_args(alias)]
            assert len(theirs) == len(BROKER_MESSAGES) + len(ANSWERS)
            for kind in (*theirs, *inside):
                said = msgspec.msgpack.encode([[kind.__struct_config__.tag]])
                forger = (await Raw.dial(network)).greet("liar").say(framed(wire.MESSAGES, said))
                refusal = await forger.refusal()
                assert refusal.code == "malformed", kind
                assert "Invalid value" in refusal.reason, kind

    run(main())


def test_false_acknowledgements_lose_only_the_clients_own_events() -> None:
    async def main() -> None:
        async with honest_network() as (network, honest):
            forger = await Raw.attached(network, broker="b1")
            forger.say(batch(ClientSubscribe(1, "liar/s1", "kind = 'honest'")))
            await forger.wait_for(Active)
            await honest.publisher.publish({"kind": "honest", "n": 3})
            delivery = await forger.wait_for(Delivery)
            forger.say(batch(ClientGot(1, delivery.number)))
            forger.close()

    run(main())


def test_subscriptions_without_end_are_refused_before_they_fill_the_memory() -> None:
    filters = [f"a IN ('{'x' * (TEXT_LENGTH_MAX - 100)}', '{number}')" for number in range(17)]

    async def main() -> None:
        async with honest_network() as (network, _):
            forger = await Raw.attached(network)
            for number, text in enumerate(filters):
                forger.say(batch(ClientSubscribe(1, f"liar/s{number}", text)))
            assert f"{TEXT_MAX:,} is the limit; end some of them" in (await forger.refusal()).reason

    run(main())


def test_publications_that_can_never_go_out_are_refused_before_they_fill_the_memory() -> None:
    async def main() -> None:
        async with honest_network() as (network, _):
            forger = await Raw.attached(network)
            for start in range(1, 17_000, 1_000):
                forger.say(batch(publish(*(event(seq) for seq in range(start, start + 1_000)))))
            assert "has more than 16,000 waiting publications" in (await forger.refusal()).reason

    run(main())


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["(" * 50 + "n > 0" + ")" * 50], id="deep"),
        pytest.param([f"n IN ({','.join(['1'] * 2_400)})"] * 2, id="many constants"),
        pytest.param([f"TRUE OR n LIKE '%{'x' * 1_500}%'"] * 2, id="long patterns"),
    ],
)
def test_filters_that_are_too_much_for_one_do_not_stop_a_broker_when_their_client_lags(texts: list[str]) -> None:
    """Each filter is valid, but the subscriptions of a lagging client are read as one stream with one filter."""

    async def main() -> None:
        async with (
            local(1, f=0, lag_window=10, delivery_window=5) as network,
            connect(network.url, name="publisher") as publisher,
        ):
            await publisher.advertise("TRUE")
            forger = await Raw.attached(network)
            for number, text in enumerate(texts):
                forger.say(batch(ClientSubscribe(1, f"liar/s{number}", text)))
                await forger.wait_for(Active)
            for _ in range(30):
                await publisher.publish({"n": 1})
            await forger.wait_for(Lagging)
            for _ in range(20):
                await asyncio.wait_for(publisher.publish({"n": 1}), PATIENCE_S)
            assert not network.brokers["b0"].failure.done()
            forger.close()

    run(main())

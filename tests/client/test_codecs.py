"""Payloads as values: JSON, MessagePack, Arrow and custom codecs; and publications without waiting."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pydantic
import pytest

import gapless
from gapless import sync
from gapless.client.codecs import CodecLike
from gapless.errors import CallError, ConversionError, EventError, WindowFullError
from gapless.runtime.event_loop import run
from tests.runtime.local import local


class Line(msgspec.Struct):
    article: str
    count: int


class Order(msgspec.Struct):
    number: int
    lines: list[Line]


@dataclass
class Plain:
    number: int
    lines: list[Line]


class Model(pydantic.BaseModel):
    number: int
    lines: list[dict[str, Any]]


class Table(msgspec.Struct):
    number: int
    table: pa.Table


class Upper:
    def encode(self, value: Any) -> bytes:
        return str(value).upper().encode()

    def decode(self, payload: bytes) -> Any:
        return payload.decode().lower()


def connected(codec: CodecLike, story: Callable[[gapless.Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(1, f=0, protocol="gapless") as network,
            gapless.connect(network.url, codec=codec) as client,
        ):
            await client.advertise("number > 0")
            await story(client)

    run(main())


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_payload_is_any_value(codec: str) -> None:
    async def story(client: gapless.Client) -> None:
        async with client.subscribe("number > 0") as orders:
            await client.publish({"number": 1}, [Line("nut", 3)])
            await client.publish_many([({"number": 2}, {"a": 1}), ({"number": 3}, b"bytes")])
            found = [await anext(orders) for _ in range(3)]
            assert client.decode(found[0], list) == [{"article": "nut", "count": 3}]
            assert client.decode(found[0], list[Line]) == [Line("nut", 3)]
            assert client.decode(found[1], dict[str, int]) == {"a": 1}
            assert found[2].payload == b"bytes"
            with pytest.raises(ConversionError, match=r"the payload of event .*:1 cannot be decoded: Expected `int`"):
                client.decode(found[0], int)
            with pytest.raises(EventError, match="this payload cannot be encoded"):
                await client.publish({"number": 4}, object())

    connected(codec, story)


@pytest.mark.parametrize("kind", [Order, Plain, Model])
def test_the_one_field_that_fits_no_attribute_is_the_payload(kind: type[Any]) -> None:
    async def story(client: gapless.Client) -> None:
        async with client.subscribe("number > 0", type=kind) as orders:
            lines = [{"article": "nut", "count": 3}] if kind is Model else [Line("nut", 3)]
            order = kind(number=1, lines=lines)
            sent = await client.publish(order)
            assert sent.attributes == {"number": 1}
            assert await anext(orders) == order

    connected("json", story)


def test_tables_travel_as_arrow() -> None:
    async def story(client: gapless.Client) -> None:
        async with client.subscribe("number > 0", type=Table) as tables:
            table = pa.table({"a": [1, 2], "b": ["x", "y"]})
            await client.publish(Table(1, table))
            assert (await anext(tables)).table == table

    connected("arrow", story)


def test_a_format_of_ones_own() -> None:
    async def story(client: gapless.Client) -> None:
        async with client.subscribe("number > 0") as found:
            event = await client.publish({"number": 1}, "hello")
            assert event.payload == b"HELLO"
            assert client.decode(await anext(found), str) == "hello"

    connected(Upper(), story)


def test_without_a_codec_the_error_names_one() -> None:
    async def story(client: gapless.Client) -> None:
        with pytest.raises(
            EventError, match=r'a payload must be bytes, but this is a dict; .*, or connect with codec="js'
        ):
            await client.publish({"number": 1}, {"a": 1})
        with pytest.raises(CallError, match="this client has no codec"):
            client.decode(gapless.Event("p", 1, {}), dict)
        with pytest.raises(CallError, match="codec must be 'json', 'msgpack', 'arrow' or an object"):
            gapless.connect("gapless://127.0.0.1:1", codec="xml")

    connected(None, story)


def test_many_are_published_without_waiting_and_flushed_together() -> None:
    async def story(client: gapless.Client) -> None:
        async with client.subscribe("number > 0") as found:
            with pytest.raises(WindowFullError, match="await flush"):
                publish_as_many_as_possible(client)
            sent = client._publishing.unsafe.published
            assert 100 < sent < 100_000
            await client.flush()
            assert client.is_all_confirmed
            client.publish_nowait({"number": 7})
            await client.flush()
            numbers: list[int] = []
            while len(numbers) <= sent:
                numbers += [event.integer("number") for event in await found.take(10_000)]
            assert numbers == [*range(1, sent + 1), 7]

    connected(None, story)


def publish_as_many_as_possible(client: gapless.Client) -> None:
    for number in range(1, 100_000):
        client.publish_nowait({"number": number})


def test_without_an_event_loop_too() -> None:
    def work(url: str) -> None:
        with sync.connect(url, codec="json") as client, client.subscribe("number > 0", type=Order) as orders:
            client.advertise("number > 0")
            client.publish_nowait(Order(1, [Line("nut", 2)]))
            client.flush()
            assert next(orders) == Order(1, [Line("nut", 2)])
            client.publish_many([Order(2, [])])
            assert next(orders).lines == []

    async def main() -> None:
        async with local(1, f=0, protocol="gapless") as network:
            await asyncio.to_thread(work, network.url)

    run(main())

"""Typed events: structs and dataclasses in both directions, and errors for events that do not fit."""

import asyncio
import enum
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from gapless.client import connect
from gapless.client.publications import check_publication, parts_of
from gapless.client.reader import Reader
from gapless.errors import CallError, ConversionError, EventError
from gapless.events import Event
from gapless.runtime.event_loop import run
from tests.runtime.local import local


class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Trade(msgspec.Struct, frozen=True):
    symbol: str
    amount: int
    side: Side = Side.BUY
    price: float | None = None
    at: datetime | None = None
    note: bytes = b""


@dataclass(frozen=True)
class Seen:
    symbol: str
    amount: Annotated[int, msgspec.Meta(ge=0)]
    event: Event
    kind: Literal["a", "b"] = "a"
    anything: Any = None


def test_a_value_comes_back_as_it_was_published() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("symbol IS NOT NULL")
            trades = await client.subscribe("amount > 0", type=Trade)
            plain = await client.subscribe("amount > 0")
            sent = [
                Trade("ACME", 7, Side.SELL, 1.5, datetime(2024, 5, 6, tzinfo=UTC), b"any bytes"),
                Trade("ACME", 8),
            ]
            assert await client.publish_many(sent) == 2
            await client.publish(Trade("ACME", 9, price=2.0))
            async with asyncio.timeout(20):
                got = [await anext(trades) for _ in range(3)]
                [first, *_] = await plain.take()
            assert got == [*sent, Trade("ACME", 9, price=2.0)]
            assert first.payload == b"any bytes"
            assert first.attributes == {
                "symbol": "ACME", "amount": 7, "side": "sell", "price": 1.5, "at": "2024-05-06T00:00:00.000000Z",
            }  # fmt: skip

    run(main())


def test_invalid_values_are_reported_in_place_and_no_others_are_lost() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client, asyncio.timeout(20):
            await client.advertise("TRUE")
            seen = await client.subscribe("TRUE", type=Seen)
            for amount in (1, 2, "three", 4):
                event = await client.publish({"symbol": "ACME", "amount": amount, "extra": True})
            assert [value.amount for value in await seen.take()] == [1, 2]
            with pytest.raises(
                ConversionError, match=":3 does not fit Seen: its attribute 'amount' is str, but"
            ) as raised:
                await seen.take()
            assert raised.value.event.attributes["amount"] == "three"
            [last] = await seen.take()
            assert last.event == event
            await client.publish({"symbol": "ACME"})
            with pytest.raises(ConversionError, match="it has no attribute 'amount'"):
                await anext(seen)

    run(main())


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"symbol": "A", "amount": -1}, "its attribute 'amount': Expected `int` >= 0"),
        ({"symbol": "A", "amount": 1, "kind": "c"}, "its attribute 'kind': Invalid enum value 'c'"),
        ({"symbol": 5, "amount": 1}, "its attribute 'symbol' is int, but should be str"),
        ({"symbol": "A", "amount": 1.5}, "its attribute 'amount' is float, but should be int"),
        ({"amount": 1}, "it has no attribute 'symbol'"),
    ],
)
def test_a_misfit_names_the_attribute(attributes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConversionError, match=f"^event ann:7 does not fit Seen: {re.escape(complaint)}"):
        Reader(Seen).read(Event("ann", 7, attributes))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"amount": 1}, "Object missing required field `symbol`"),
        ({"symbol": 5, "amount": 1}, "Expected `str`, got `int` - at `$.symbol`"),
        ({"symbol": "A", "amount": -1}, "Expected `int` >= 0 - at `$.amount`"),
    ],
)
def test_msgspec_agrees_with_the_texts_that_the_reader_expects(attributes: dict[str, Any], words: str) -> None:
    """The hints depend on a library's error texts: a version with other texts should fail here, not confuse users."""
    with pytest.raises(msgspec.ValidationError, match=f"^{re.escape(words)}$"):
        msgspec.convert({**attributes, "event": Event("ann", 7, {})}, Seen)


class WithList(msgspec.Struct):
    symbol: str
    tags: list[str] = []


class ByPlace(msgspec.Struct, array_like=True):
    symbol: str


@dataclass
class Nested:
    trade: Trade


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (WithList, "field 'tags' of WithList fits no attribute"),
        (Nested, "field 'trade' of Nested fits no attribute"),
        (ByPlace, "ByPlace is an array_like"),
        (dict, "a msgspec struct, a dataclass or a pydantic model, which dict is not"),
        (Event, "which Event is not"),
        (5, "5 cannot be the type of events"),
    ],
)
def test_a_type_that_no_event_fits_is_refused_at_once(kind: Any, complaint: str) -> None:
    with pytest.raises(CallError, match=complaint):
        Reader(kind)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (WithList("A", ["b"]), "attribute 'tags' is of type list"),
        (Event("ann", 1, {}), "but this is a Event"),
        (Trade, "but this is a StructMeta"),
        ((Trade("A", 1, note=b"x"), b"y"), "field 'note' is a second payload"),
        (Trade("\udce9", 1), "attribute 'symbol' contains"),
    ],
)
def test_a_value_that_cannot_be_published_is_refused(value: Any, complaint: str) -> None:
    with pytest.raises(EventError, match=complaint):
        check_publication(value, 65_536)


def test_none_is_left_out_and_renamed_fields_go_by_their_other_name() -> None:
    class Renamed(msgspec.Struct, rename="camel"):
        first_name: str
        last_name: str | None = None

    assert parts_of(Renamed("ann")) == ({"firstName": "ann"}, b"")
    assert Reader(Renamed).read(Event("p", 1, {"firstName": "ann"})) == Renamed("ann")

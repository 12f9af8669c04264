"""One table converts values that clearly correspond to an attribute; the client refuses all others."""

import enum
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gapless
from gapless.client.publications import check_all, check_publication
from gapless.client.reader import Reader
from gapless.errors import CallError, ConversionError, EventError
from gapless.events import Event
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import local


class Side(enum.Enum):
    BUY = "buy"


class Holiday(enum.Enum):
    NEW_YEAR = date(2026, 1, 1)


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    def __str__(self) -> str:
        return "something else"


pd: Any = pytest.importorskip("pandas")  # the package has no type hints
EAST = timezone(timedelta(hours=2))
ID = UUID("12345678-1234-5678-1234-567812345678")

CONVERTED: list[tuple[Any, Any]] = [
    (Side.BUY, "buy"),
    (Holiday.NEW_YEAR, "2026-01-01"),
    (Level.HIGH, 3),
    (datetime(2026, 11, 16, 10, 32, tzinfo=UTC), "2026-11-16T10:32:00.000000Z"),
    (datetime(2026, 11, 16, 12, 32, 0, 5, tzinfo=EAST), "2026-11-16T10:32:00.000005Z"),
    (datetime(2026, 11, 16, 10, 32), "2026-11-16T10:32:00.000000"),
    (pd.Timestamp("2026-11-16 10:32", tz="UTC"), "2026-11-16T10:32:00.000000Z"),
    (date(2026, 11, 16), "2026-11-16"),
    (time(10, 32), "10:32:00"),
    (timedelta(seconds=5), "PT5S"),
    (ID, "12345678-1234-5678-1234-567812345678"),
    (Decimal("7.50"), 7.5),
    (Decimal("0.1"), 0.1),
    (Decimal(7), 7.0),
    (np.float64(1.5), 1.5),
    (np.float32(0.5), 0.5),
    (np.int64(-5), -5),
    (np.uint8(5), 5),
    (np.bool_(True), True),
    (np.str_("x"), "x"),
    (Word("x"), "x"),
]


@pytest.mark.parametrize(("value", "attribute"), CONVERTED, ids=[repr(value) for value, _ in CONVERTED])
def test_a_value_becomes_the_attribute_that_it_represents(value: Any, attribute: Any) -> None:
    call, size = check_publication({"topic": "t", "value": value}, 65_536)
    assert call.attributes == {"topic": "t", "value": attribute}
    assert type(call.attributes["value"]) is type(attribute)
    assert size == check_publication({"topic": "t", "value": attribute}, 65_536)[1]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (
            None,
            "attribute 'value' is of type NoneType; attributes are strings, integers, floats and booleans, or values",
        ),
        ([1], "attribute 'value' is of type list"),
        (b"x", "attribute 'value' is of type bytes"),
        (1j, "attribute 'value' is of type complex"),
        (np.array([1]), "attribute 'value' is of type ndarray"),
        (np.complex64(1), "attribute 'value' is of type complex64"),
        (np.longdouble(1), "attribute 'value' is of type longdouble"),
        (np.datetime64("2026-11-16"), "attribute 'value' is of type datetime64"),
        (pd.NaT, "attribute 'value' is NaT, which is not a time"),
        (
            Decimal("0.12345678901234567891"),
            "'value' is Decimal('0.12345678901234567891'), which no float represents exactly",
        ),
        (Decimal("NaN"), "attribute 'value' is Decimal('NaN'), which no float represents exactly"),
        (Decimal("1E400"), "which no float represents exactly; round it, or publish str(value)"),
        (np.uint64(2**63), "attribute 'value' is 9223372036854775808, which does not fit into a signed 64-bit integer"),
    ],
    ids=repr,
)
def test_everything_else_is_refused_with_a_way_out(value: Any, complaint: str) -> None:
    with pytest.raises(EventError, match=re.escape(complaint)):
        check_publication({"value": value}, 65_536)
    checked, error = check_all([{"value": "a"}, {"value": value}], 65_536)
    assert len(checked) == 1
    assert complaint in str(error)


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=2))
def test_the_texts_of_times_are_in_the_order_of_the_times(times: list[datetime]) -> None:
    one, other = (check_publication({"at": each}, 65_536)[0].attributes["at"] for each in times)
    assert isinstance(one, str)
    assert isinstance(other, str)
    assert (one < other) is (times[0] < times[1])


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_a_decimal_comes_back_equal(value: Decimal) -> None:
    class Priced(msgspec.Struct):
        price: Decimal

    attributes = check_publication(Priced(value), 65_536)[0].attributes
    assert type(attributes["price"]) is float
    assert Reader(Priced).read(Event("p", 1, attributes)).price == value


@dataclass
class Order:
    id: UUID
    side: Side
    at: datetime
    price: Decimal


class OrderModel(pydantic.BaseModel):
    id: UUID
    side: Side
    at: datetime
    price: Decimal
    count: int = pydantic.Field(1, alias="qty")
    extra: str | None = None
    note: bytes = b""


def test_a_dataclass_and_a_model_come_back_as_they_were_published() -> None:
    at = datetime(2026, 11, 16, 10, 32, 0, 7, tzinfo=UTC)
    order = Order(ID, Side.BUY, at, Decimal("7.25"))
    model = OrderModel(id=ID, side=Side.BUY, at=at, price=Decimal("7.25"), qty=3, note=b"any bytes")

    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client:
            await client.advertise("TRUE")
            plain = await client.subscribe("price < 10")
            orders = await client.subscribe("price < 10 AND qty IS NULL", type=Order)
            models = await client.subscribe("price < 10 AND qty = 3", type=OrderModel)
            await client.publish(order)
            await client.publish(model)
            assert [await anext(orders), await anext(models)] == [order, model]
            first, second = await take(plain, 2)
            assert first.attributes == {
                "id": str(ID), "side": "buy", "at": "2026-11-16T10:32:00.000007Z", "price": 7.25
            }  # fmt: skip
            assert (second.payload, second.attributes) == (b"any bytes", {**first.attributes, "qty": 3})

    run(main())


def test_a_model_that_an_event_does_not_fit_names_the_attribute() -> None:
    with pytest.raises(ConversionError, match="event p:1 does not fit OrderModel: its attribute 'id': Field required"):
        Reader(OrderModel).read(Event("p", 1, {"side": "buy"}))


def test_a_model_takes_the_event_and_an_attribute_by_its_alias() -> None:
    class Whole(pydantic.BaseModel, arbitrary_types_allowed=True):
        n: int
        event: Event

    class Several(pydantic.BaseModel):
        n: int = pydantic.Field(validation_alias=pydantic.AliasChoices("a", "b"))

    event = Event("p", 1, {"n": 2})
    assert Reader(Whole).read(event).event is event
    with pytest.raises(CallError, match="field 'n' of Several has several aliases, but an attribute has one name"):
        Reader(Several)


def test_neither_numpy_nor_pydantic_is_imported_for_it() -> None:
    program = (
        "import sys, decimal\n"
        "from gapless.client import connect, publications\n"
        "publications.check_publication({'price': decimal.Decimal('7.5')}, 65536)\n"
        "print({'numpy', 'pydantic'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "set()\n"

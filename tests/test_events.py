"""Typed access to the attributes of an event."""

import re
from collections.abc import Callable
from typing import assert_type

import pytest

from gapless.errors import ConversionError
from gapless.events import Event

EVENT = Event("ann", 7, {"topic": "price", "qty": 3, "price": 7.5, "sold": True, "zero": 0, "empty": ""})


def test_an_attribute_has_the_type_that_was_asked_for() -> None:
    assert assert_type(EVENT.text("topic"), str) == "price"
    assert assert_type(EVENT.integer("qty"), int) == 3
    assert assert_type(EVENT.number("price"), float) == 7.5
    assert EVENT.number("qty") == 3
    assert assert_type(EVENT.boolean("sold"), bool) is True
    assert (EVENT.integer("zero", 5), EVENT.text("empty", "x")) == (0, "")


def test_without_the_attribute_there_is_a_default_of_any_type() -> None:
    assert assert_type(EVENT.text("none", None), str | None) is None
    assert EVENT.integer("none", 5) == 5
    assert EVENT.number("none", None) is None
    assert EVENT.boolean("none", False) is False


@pytest.mark.parametrize(
    ("read", "complaint"),
    [
        (lambda: EVENT.text("none"), "event ann:7 has no attribute 'none'"),
        (lambda: EVENT.text("qty"), "attribute 'qty' of event ann:7 is 3, not text"),
        (lambda: EVENT.integer("price"), "attribute 'price' of event ann:7 is 7.5, not an integer"),
        (lambda: EVENT.integer("sold", 1), "attribute 'sold' of event ann:7 is True, not an integer"),
        (lambda: EVENT.number("topic"), "attribute 'topic' of event ann:7 is 'price', not a number"),
        (lambda: EVENT.number("sold"), "attribute 'sold' of event ann:7 is True, not a number"),
        (lambda: EVENT.boolean("zero"), "attribute 'zero' of event ann:7 is 0, not a boolean"),
    ],
)
def test_a_missing_or_other_attribute_is_named(read: Callable[[], object], complaint: str) -> None:
    with pytest.raises(ConversionError, match=f"^{re.escape(complaint)}$") as raised:
        read()
    assert raised.value.event is EVENT

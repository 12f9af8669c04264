"""Attributes as text: the conversion loses nothing, and equal attributes give equal texts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import TraceError
from gapless.events import Attributes
from gapless.trace import attributes_from_text, attributes_to_text

values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), values, max_size=6))
def test_round_trip(attributes: Attributes) -> None:
    found = attributes_from_text(attributes_to_text(attributes))
    assert found == attributes
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in attributes.items()
    }
    assert attributes_to_text(dict(reversed(attributes.items()))) == attributes_to_text(attributes)


def test_floats_that_json_lacks() -> None:
    text = attributes_to_text({"b": math.inf, "a": -math.inf, "c": math.nan, "d": 1.0, "e": 1})
    assert text == '{"a":-Infinity,"b":Infinity,"c":NaN,"d":1.0,"e":1}'
    found = attributes_from_text(text)
    assert (found["a"], found["b"], type(found["d"]), type(found["e"])) == (-math.inf, math.inf, float, int)
    assert math.isnan(float(found["c"]))


@pytest.mark.parametrize("text", ["", "[1]", '{"a":null}', '{"a":[1]}', '{"a":1', "{1:2}"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(TraceError, match="not a JSON object of strings, numbers and booleans"):
        attributes_from_text(text)

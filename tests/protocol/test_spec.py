"""A protocol's specification: its guarantee, its options, and where it runs."""

from typing import get_args

import msgspec
import pytest

from gapless.errors import ProtocolError
from gapless.overlay import chain, ring
from gapless.protocol import (
    GUARANTEE_NAMES,
    Guarantee,
    ProtocolSpec,
    Subscribe,
    any_overlay,
    check_overlay,
    convert_options,
)
from gapless.registry import find_protocol, protocols


def test_each_guarantee_has_a_name() -> None:
    assert set(GUARANTEE_NAMES) == set(get_args(Guarantee))


@pytest.mark.parametrize("spec", protocols().values(), ids=protocols())
def test_no_protocol_takes_numbers_that_it_cannot_work_with(spec: ProtocolSpec) -> None:
    for name, default in msgspec.to_builtins(spec.options()).items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            for value in (float("nan"), float("inf"), 2**70, *([-1] if name != "seed" else [])):
                with pytest.raises(Exception, match=name) as error:
                    convert_options(spec, {name: value})
                assert type(error.value).__name__ == "ProtocolError"


def test_options_are_set_by_name_and_the_others_keep_their_defaults() -> None:
    spec = find_protocol("gapless")
    assert convert_options(spec, {}) == spec.options()
    assert convert_options(spec, {"wave_ms": 7}) == spec.options(wave_ms=7)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"wafe_ms": 7}, "protocol 'gapless' has no option 'wafe_ms'; did you mean 'wave_ms'?"),
        ({"zzz": 7}, "protocol 'gapless' has no option 'zzz'; the options are: "),
        ({"wave_ms": "7"}, "options of protocol 'gapless': Expected `float`, got `str`"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ProtocolError) as error:
        convert_options(find_protocol("gapless"), options)
    assert str(error.value).startswith(complaint)


def test_most_protocols_take_trees_only() -> None:
    spec = find_protocol("gapless")
    options = convert_options(spec, {})
    check_overlay(spec, chain(4), 1, options)
    with pytest.raises(ProtocolError, match="it supports only trees: 4 brokers need 3 edges to form a tree, but 4 are"):
        check_overlay(spec, ring(4), 1, options)
    check_overlay(msgspec.structs.replace(spec, refuses=any_overlay), ring(4), 1, options)


def test_a_subscription_waits_for_a_cut_only_where_cuts_are_complete() -> None:
    spec = find_protocol("gapless")
    call = Subscribe("s", "TRUE", ready="whole")
    assert msgspec.structs.replace(spec, whole_cuts=True).ready(call) == "whole"
    assert msgspec.structs.replace(spec, whole_cuts=False).ready(call) == "first"

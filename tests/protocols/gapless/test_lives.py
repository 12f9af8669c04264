"""Names of lives."""

import pytest

from gapless.protocols.gapless.lives import NOWHERE, broker_of, is_life, name_life, parse_life


@pytest.mark.parametrize(("broker", "life"), [("b0", 0), ("a/b", 12), ("/", 3_000)])
def test_a_name_says_whose_life_it_is_and_which(broker: str, life: int) -> None:
    name = name_life(broker, life)
    assert is_life(name)
    assert broker_of(name) == broker
    assert parse_life(name) == (broker, life)


def test_no_name_is_nobodys_life() -> None:
    assert broker_of(NOWHERE) == ""


@pytest.mark.parametrize("name", ["", "b0", "b0/", "/0", "b0/x", "b0/-1", "b0/²", "b0/" + "9" * 20])
def test_what_is_no_name_of_a_life(name: str) -> None:
    assert not is_life(name)

"""State machines raise an error on a forbidden transition."""

from dataclasses import dataclass
from enum import Enum

import pytest

from gapless.protocols.parts.transitions import Transitions, follow


class Light(Enum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


LIGHTS: Transitions = {Light.GREEN: {Light.AMBER}, Light.AMBER: {Light.RED}, Light.RED: {Light.GREEN}}


@dataclass(eq=False)
class Crossing:
    light: Light = Light.RED


follow(Crossing, "light", LIGHTS)


def test_listed_transitions_are_allowed_and_so_is_staying() -> None:
    crossing = Crossing()
    for light in (Light.RED, Light.GREEN, Light.AMBER, Light.RED):
        crossing.light = light
        assert crossing.light is light


def test_any_state_may_be_the_first() -> None:
    assert Crossing(Light.AMBER).light is Light.AMBER


def test_an_illegal_transition_raises_and_changes_nothing() -> None:
    crossing = Crossing()
    with pytest.raises(AssertionError, match=r"Crossing\.light cannot change from red to amber"):
        crossing.light = Light.AMBER
    assert crossing.light is Light.RED


def test_a_table_names_every_state() -> None:
    class Lamp:
        light: Light

    with pytest.raises(AssertionError, match="RED"):
        follow(Lamp, "light", {Light.GREEN: {Light.AMBER}, Light.AMBER: set()})

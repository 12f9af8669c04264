"""A broker remembers the resource usage of its clients."""

import pytest

from gapless.runtime import quotas
from gapless.runtime.quotas import Quotas
from gapless.security.limits import BrokerLimits, Limits


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _quotas(clock: Clock, **limits: float) -> Quotas:
    return Quotas(lambda owner: Limits(**limits), BrokerLimits, clock)  # type: ignore[arg-type]


def test_every_network_has_limits_and_a_broker_as_a_whole_has_none() -> None:
    assert Limits().connections > 0 < Limits().connections_per_s
    assert 0 < Limits().attach_share < 1
    assert not BrokerLimits().connections
    assert not BrokerLimits().attach_share


def test_a_client_that_used_more_than_its_share_is_slowed_down_and_others_are_not() -> None:
    clock = Clock()
    taken = _quotas(clock, attach_share=0.25)
    assert taken.charge_attaching("eve", 1.0) == 0, "a second is free"
    assert taken.charge_attaching("eve", 0.5) == pytest.approx(2.0)
    assert taken.charge_attaching("ann", 0.5) == 0
    clock.now = 2.0
    assert taken.charge_attaching("eve", 0.0) == 0


def test_reconnecting_does_not_reset_a_debt() -> None:
    taken = _quotas(Clock(), attach_share=0.25)
    taken.add_connection("eve")
    taken.charge_attaching("eve", 3.0)
    taken.remove_connection("eve")
    taken.add_connection("eve")
    assert taken.charge_attaching("eve", 0.0) == pytest.approx(8.0)


def test_owners_without_connections_are_dropped_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "IDLE_MAX", 2)
    taken = _quotas(Clock(), attach_share=0.25)
    taken.add_connection("ann")
    for owner in ("ann", "eve", "bob", "dan"):
        taken.charge_attaching(owner, 3.0)
    in_debt = {owner: taken.charge_attaching(owner, 0.0) > 0 for owner in ("ann", "bob", "dan", "eve")}
    assert in_debt == {"ann": True, "bob": True, "dan": True, "eve": False}


def test_the_most_connections_of_an_owner_and_of_all() -> None:
    taken = Quotas(lambda owner: Limits(connections=1), lambda: BrokerLimits(connections=2))
    taken.add_connection("ann")
    assert taken.why_not("ann", "user 'ann'", is_client=True).startswith("user 'ann' has 1 connections here")
    assert not taken.why_not("bob", "user 'bob'", is_client=True)
    taken.add_connection("bob")
    assert taken.why_not("dan", "user 'dan'", is_client=True).startswith("this broker has 2 connections here")

"""Durable subscriptions that a group shares: who gets what, when it is given again, and what the judges say of it."""

from typing import Any

import msgspec
import pytest

from gapless.checkers import check
from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.client_messages import DELIVERED_AHEAD_US, LEASE_MAX_US, LEASE_US
from gapless.protocols.gapless.groups.dealer import GRACE_US, HAND_MAX, SILENT_US, Dealer
from gapless.protocols.gapless.groups.member import Member
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport, NameRecord
from gapless.protocols.gapless.names.groups import Groups
from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    AckAction,
    Action,
    AdvertiseAction,
    Client,
    Cut,
    Delay,
    Fault,
    Heal,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Run,
    Scenario,
    SubscribeAction,
)
from gapless.trace import Trace

SETTLE_MS = 40_000.0
EVENTS = 60


def story(*actions: Action, faults: tuple[Fault, ...] = (), disks: bool = False, **options: Any) -> Trace:
    """Ann publishes 60 events. Everyone else may be in a group; bob answers what he gets, and dan hears all of it."""
    scenario = Scenario(
        Network("chain", brokers=4, disks=Delay(1.0, 1.0) if disks else None),
        ProtocolChoice("gapless", options),
        run=Run(settle_ms=SETTLE_MS),
        clients=tuple(
            Client(name, broker)
            for name, broker in (("ann", "b0"), ("bob", "b3"), ("cat", "b1"), ("dan", "b3"), ("eve", "b0"))
        ),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            AdvertiseAction(0.0, "bob", "b", "y > 0"),
            SubscribeAction(100.0, "dan", "d", "x > 0 OR y > 0"),
            PublishAction(2_000.0, "ann", {"x": 1}, EVENTS, 20.0),
            *actions,
        ),
        replies=(Reply("bob", {"y": 1}, at_most=100),),
        faults=faults,
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    return trace


def got(trace: Trace, subscription: str) -> list[int]:
    """What came for a subscription, the first time."""
    return [int(row.event_id.split(":")[1]) for row in trace.history if row.subscription_id == subscription]


def again(trace: Trace, subscription: str) -> list[int]:
    """What was given to it that others may have had."""
    start = subscription + "/again"
    return [int(row.event_id.split(":")[1]) for row in trace.history if (row.subscription_id or "").startswith(start)]


def share(client: str, at_ms: float = 300.0, **choices: Any) -> SubscribeAction:
    return SubscribeAction(at_ms, client, client[0], "x > 0", name="n", group=True, **choices)


def confirms(client: str, until_ms: float = 7_000.0) -> list[Action]:
    return [AckAction(at, client, client[0]) for at in range(2_000, int(until_ms), 100)]


ALL = list(range(1, EVENTS + 1))


def out_of_sight(client: str, begin_ms: float, end_ms: float) -> tuple[Fault, ...]:
    around = [(client, f"b{number}") for number in range(4)]
    return tuple([Cut(begin_ms, pair) for pair in around] + [Heal(end_ms, pair) for pair in around])


# ---- what the judges would say ----------------------------------------------------------------------------------


def test_without_waiting_for_a_position_effects_come_before_their_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eve deals at b0; bob answers at b3, where dan hears of it while the way from b0 is blocked for all else."""
    actions = (share("eve", 200.0), share("bob", 800.0))
    faults = (Cut(2_300.0, ("b1", "b2")), Heal(2_700.0, ("b1", "b2")))
    assert check(story(*actions, faults=faults)).status == "valid"
    monkeypatch.setattr(Groups, "_is_final", lambda *_: True)
    verdict = check(story(*actions, faults=faults))
    assert "causal-inversion" in {anomaly.kind for anomaly in verdict.anomalies}


def test_without_what_is_confirmed_out_of_order_it_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    actions = (share("bob", ack="manual"), share("cat", 800.0), share("eve", 900.0))
    faults = out_of_sight("bob", 4_000.0, 30_000.0)
    assert check(story(*actions, faults=faults, session_s=100.0)).status == "valid"
    monkeypatch.setattr(Dealer, "_was_done", lambda *_: False)
    verdict = check(story(*actions, faults=faults, session_s=100.0))
    assert {(anomaly.kind, anomaly.subscription) for anomaly in verdict.anomalies} == {("duplicate", "group:n")}


# ---- the one that deals -----------------------------------------------------------------------------------------


class Table:
    """A dealer, and what it says to whom."""

    def __init__(self, record: NameRecord | None = None, *, may_deal: bool = True) -> None:
        self.said: list[tuple[str, GroupDeal]] = []
        record = record or NameRecord("n", "x > 0", 10, {}, 1, is_shared=True, redeliver_us=30_000_000)
        call = Subscribe("d", "x > 0", name="n", group=True)
        self.dealer = Dealer(call, "d#1", record, 0, 0, lambda client, _, deal: self.said.append((client, deal)))
        if may_deal:
            self.kept()

    def join(self, client: str, now: int = 0, holds: list[tuple[str, int, int]] | None = None, latest: int = 0) -> None:
        word = GroupReport(self.dealer.generation, f"{client}#1", len(holds or []), 0, holds or [], latest)
        self.dealer.report(client, "b0", word, now)

    def report(self, client: str, received: int, confirmed: int, now: int = 0, *refused: int) -> None:
        word = GroupReport(self.dealer.generation, f"{client}#1", received, confirmed, None, 0, [*refused])
        self.dealer.report(client, "b0", word, now)

    def come(self, *seqs: int, now: int = 0) -> None:
        for seq in seqs:
            self.dealer.delivered(Event("p", seq, {"x": 1}, b"", 100 * seq))
        self.dealer.deal(now)

    def got(self, client: str) -> list[tuple[int, int, bool]]:
        """By number in the line: which event, and whether another may have had it."""
        items = {
            number: (event.seq, again) for to, deal in self.said if to == client for number, event, again in deal.items
        }
        return [(number, *items[number]) for number in sorted(items)]

    def kept(self, now: int = 0) -> None:
        message = self.dealer.confirming(1, now)
        assert self.dealer.kept(message.serial, now)


def test_nothing_is_dealt_beyond_the_bound_that_the_registry_holds() -> None:
    """Else nobody would know what may have been delivered, once this dealer and all members are gone."""
    table = Table(may_deal=False)
    table.join("ann")
    table.come(1)
    assert not table.got("ann")
    assert table.dealer.is_due, "it asks for the bound at once"
    table.kept()
    table.come(2)
    assert [seq for _, seq, _ in table.got("ann")] == [1, 2]
    beyond = Event("p", 3, {"x": 1}, b"", 200 + DELIVERED_AHEAD_US + 1)
    table.dealer.delivered(beyond)
    table.dealer.deal(0)
    assert len(table.got("ann")) == 2
    table.kept()
    table.dealer.deal(0)
    assert len(table.got("ann")) == 3


def test_after_all_members_were_away_what_may_have_been_delivered_is_marked_and_nothing_else() -> None:
    record = NameRecord("n", "x > 0", 10, {}, 2, is_shared=True, redeliver_us=30_000_000, delivered=200)
    table = Table(record)
    table.join("ann")
    table.come(1, 2, 3, now=GRACE_US)
    table.come(now=GRACE_US)
    assert table.got("ann") == [(1, 1, True), (2, 2, True), (3, 3, False)]


def test_a_dealer_that_leaves_says_exactly_how_far_it_dealt() -> None:
    table = Table()
    table.join("ann")
    table.come(1, 2)
    assert table.dealer.confirming(1, 0).delivered == 200 + DELIVERED_AHEAD_US
    table.dealer.is_ending = True
    assert table.dealer.confirming(1, 0).delivered == 200


def test_members_take_turns_and_none_gets_more_than_it_can_hold() -> None:
    table = Table()
    table.join("ann")
    table.join("bob")
    table.come(*range(1, 2 * HAND_MAX + 10))
    assert [seq for _, seq, _ in table.got("ann")][:3] == [1, 3, 5]
    assert [seq for _, seq, _ in table.got("bob")][:3] == [2, 4, 6]
    assert len(table.got("ann")) == len(table.got("bob")) == HAND_MAX
    table.report("ann", HAND_MAX, 1)
    table.dealer.deal(0)
    assert len(table.got("ann")) == HAND_MAX + 1


def test_what_is_confirmed_beyond_what_is_not_is_told_as_ranges() -> None:
    table = Table()
    table.join("ann")
    table.join("bob")
    table.come(1, 4, 7, 9, 12, 13)
    table.report("bob", 3, 3)
    message = table.dealer.confirming(1, 0)
    assert (message.position, message.got, message.done) == (10, {}, {"p": [(4, 4), (9, 9), (13, 13)]})
    table.report("ann", 3, 2)
    message = table.dealer.confirming(1, 0)
    assert (message.got, message.done) == ({"p": 9}, {"p": [(13, 13)]}), "from 1 to 9 there is nothing else"


def test_what_was_confirmed_out_of_order_is_not_dealt_again_by_the_next() -> None:
    record = NameRecord("n", "x > 0", 10, {"p": 1}, 2, is_shared=True, redeliver_us=1, done={"p": [(3, 4)]})
    table = Table(record)
    table.join("ann")
    table.dealer.confirming(1, 0)
    table.come(2, 3, 4, 5, now=GRACE_US)
    assert [seq for _, seq, _ in table.got("ann")] == [2, 5]
    table.report("ann", 2, 1, GRACE_US)
    assert table.dealer.confirming(1, 0).got == {"p": 4}


def test_a_new_dealer_leaves_with_members_what_they_hold_and_gives_the_rest_once_they_had_time_to_say_so() -> None:
    table = Table(NameRecord("n", "x > 0", 10, {}, 2, is_shared=True, redeliver_us=30_000_000, lease_us=1_000_000))
    table.come(1, 2, 3)
    table.join("ann", holds=[("p", 2, 200)], latest=200)
    table.join("bob", holds=[("p", 2, 200)])
    assert not table.got("ann")
    refused = [deal.refused for client, deal in table.said if client == "bob"]
    assert refused[-1] == [1], "it is ann's already"
    table.come(now=1_000_000 + GRACE_US)
    table.come(now=1_000_000 + GRACE_US)
    assert sorted(table.got("ann") + table.got("bob")) == [(2, 1, True), (2, 3, False)]


def test_what_is_overdue_goes_to_another_and_is_refused_until_its_member_has_heard_so() -> None:
    table = Table(NameRecord("n", "x > 0", 10, {}, 1, is_shared=True, redeliver_us=1_000_000))
    table.join("ann")
    table.come(1)
    table.report("ann", 1, 0)
    table.dealer.tick(2_000_000)
    assert table.got("ann") == [(1, 1, False)], "there is nobody else"
    table.join("bob", 2_000_000)
    table.dealer.tick(2_500_000)
    assert table.got("bob") == [(1, 1, True)]
    table.report("ann", 1, 1, 2_500_000)
    assert not table.dealer.confirming(1, 0).done
    table.dealer.tick(2_600_000)
    assert [deal.refused for client, deal in table.said if client == "ann"][-1] == [1]
    table.report("ann", 1, 1, 2_600_000, 1)
    table.dealer.tick(2_700_000)
    assert [deal.refused for client, deal in table.said if client == "ann"][-1] == []


def test_a_member_does_not_take_what_may_be_anothers_by_now() -> None:
    member = Member(Subscribe("s", "TRUE", name="n", group=True))
    member.renew()
    member.join(1, "d", "b0", 0, 3_000_000)
    assert member.report(0).number == 1
    assert member.report(2_000_000).number == 2

    def deal(since: int) -> GroupDeal:
        return GroupDeal(1, "s#1", 0, 1, [(1, Event("p", 1, {}), False)], 0, [], False, since)

    assert member.dealt(deal(1), 3_000_000) == [], "after 3 s the dealer may have given it to another"
    assert member.report(3_000_000).received == 0, "so it is not its own"
    assert [number for number, _, _ in member.dealt(deal(2), 3_000_000)] == [1]
    assert member.report(3_000_000).received == 1


def test_the_only_member_is_given_anew_what_did_not_come_in_time() -> None:
    table = Table(NameRecord("n", "x > 0", 10, {}, 1, is_shared=True, redeliver_us=1_000_000))
    table.join("ann")
    table.come(1)
    word = GroupReport(1, "ann#1", 0, 0, None, number=7)
    table.dealer.report("ann", "b0", word, 1_500_000)
    table.dealer.tick(2_000_000)
    assert table.said[-1][1].since == 7
    table.join("bob", 2_000_000)
    table.dealer.tick(2_500_000)
    assert table.got("bob") == [], "it may be on its way to ann"
    table.dealer.tick(3_000_000)
    assert table.got("bob") == [(1, 1, True)]


def test_what_comes_to_a_member_after_it_has_left_is_not_its_own() -> None:
    table = Table()
    table.join("ann")
    table.join("bob")
    table.come(1, 2)
    table.dealer.report("ann", "b0", GroupReport(1, "ann#1", 0, 0, None, 0, [], True), 0)
    assert [deal.refused for client, deal in table.said if client == "ann"][-1] == [1]
    table.dealer.deal(0)
    assert table.got("bob") == [(1, 2, False), (2, 1, True)]


def test_who_is_not_heard_is_given_up_and_has_to_join_again() -> None:
    table = Table()
    table.join("ann")
    table.join("bob")
    table.come(1, 2)
    table.report("bob", 1, 0, SILENT_US)
    table.dealer.tick(SILENT_US + 1)
    table.kept(SILENT_US + 1)
    table.dealer.deal(SILENT_US + 1)
    assert table.got("bob") == [(1, 2, False), (2, 1, True)]
    table.report("ann", 1, 1, SILENT_US + 1)
    assert table.said[-1][0] == "ann"
    assert table.said[-1][1].is_over


def test_who_was_not_granted_it_for_long_asks_again_before_it_deals() -> None:
    table = Table()
    table.join("ann")
    table.come(1, now=LEASE_US + 1)
    assert not table.got("ann")
    assert table.dealer.is_due
    table.kept(LEASE_US + 2)
    table.dealer.deal(LEASE_US + 2)
    assert table.got("ann") == [(1, 1, False)]


def test_what_a_member_has_not_heard_is_told_again_without_what_was_taken_back() -> None:
    table = Table()
    table.join("ann")
    table.come(1, 2, 3)
    table.report("ann", 1, 0)
    table.dealer.tick(1)
    _, deal = table.said[-1]
    assert (deal.after, deal.upto, [number for number, _, _ in deal.items]) == (1, 3, [2, 3])


def test_nobody_speaks_for_another_member() -> None:
    table = Table()
    table.join("ann")
    table.join("bob")
    table.come(1, 2)
    assert [seq for _, seq, _ in table.got("bob")] == [2]
    lie = GroupReport(table.dealer.generation, "bob#1", 1, 1, None)
    table.dealer.report("ann", "b0", lie, 0)
    table.dealer.report("ann", "b0", msgspec.structs.replace(lie, is_leaving=True), 0)
    table.dealer.tick(1)
    assert table.dealer.confirming(1, 0).done == {}
    table.report("bob", 1, 1)
    assert table.dealer.confirming(1, 0).done == {"p": [(2, 2)]}


def test_who_joins_holds_nothing_that_nobody_can_have_dealt_to_it() -> None:
    table = Table()
    table.come(1, 2, 3)
    table.join("liar")
    table.come()
    claims = [("p", 4, 400), ("p", 5, 1)]
    table.join("liar", holds=claims)  # of what is to come
    word = GroupReport(table.dealer.generation, "liar#2", 5, 5, [("p", 1, 100), *claims], 1 << 50)
    table.dealer.report("liar", "b0", word, 0)
    assert table.said[-1][1].refused == [2, 3]
    table.join("ann")
    table.come(4, 5)
    assert {4, 5} <= {seq for client in ("ann", "liar") for _, seq, _ in table.got(client)}
    assert not any(again for _, seq, again in table.got("ann") if seq > 3)


def test_a_dealer_asks_for_no_more_time_than_it_may_have() -> None:
    table = Table()
    message = table.dealer.confirming(1, 0)
    table.dealer.kept(message.serial, 3_600_000_000)
    assert table.dealer.confirming(1, 3_600_000_000).lease_us == LEASE_MAX_US

"""A client at a broker's door: invited, attached, sent on, asked to wait, or told that it was away for too long."""

from typing import Any

import pytest

from gapless.errors import EventError
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import (
    BrokerPlace,
    EndSession,
    Input,
    Received,
    Send,
    SetTimer,
    Start,
    Suspected,
    TimerFired,
    Trusted,
)
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Cut,
    Delivery,
    Expired,
    Gone,
    Invite,
    NotYet,
    Redirect,
    Safe,
    Stable,
    SubscriptionProgress,
    Unsubscribed,
)
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import Epoch
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.messages import Backup, BackupHeld, Frame, SessionRecord
from gapless.protocols.gapless.options import GaplessOptions


class Desk:
    """The broker b0 of a chain; with f = 0 it waits for no backups."""

    def __init__(self, brokers: int = 1, f: int = 0, **options: Any) -> None:
        self.node = GaplessBroker(BrokerPlace("b0", chain(brokers), f), GaplessOptions(**options))
        self.timers: dict[str, int] = {}
        self.give(Start())

    def give(self, item: Input) -> list[tuple[str, Any]]:
        effects = self.node.step(item, 0)
        self.timers.update({effect.key: effect.delay_us for effect in effects if isinstance(effect, SetTimer)})
        return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]

    def hear(self, client: str, message: Any) -> list[Any]:
        """What the client is told for its message."""
        return [answer for peer, answer in self.give(Received(client, message)) if peer == client]

    def attach(self, client: str, attempt: int = 2, *brought: SubscriptionProgress) -> list[Any]:
        return self.hear(client, Attach(attempt, "b0/0", list(brought), {}, [], 1))


def event(seq: int) -> Event:
    return Event("p", seq, {})


def publishing_desk(**options: Any) -> Desk:
    """With a publisher p that may say anything, and a subscriber c that is attached."""
    desk = Desk(**options)
    desk.attach("p")
    desk.hear("p", ClientAdvertise(2, "a", "TRUE", 1))
    desk.attach("c")
    return desk


def test_a_client_without_a_home_is_invited_first() -> None:
    desk = Desk()
    assert desk.hear("c", Attach(1, "", [], {}, [], 1)) == [Invite(1, "b0/0")]
    assert desk.attach("c")[0] == Attached(2, "b0/0", [], ["b0"])


def test_an_attempt_that_is_not_new_is_ignored() -> None:
    desk = Desk()
    desk.attach("c", 3)
    assert desk.attach("c", 3) == []
    assert desk.attach("c", 2) == []
    assert desk.attach("c", 4)[0] == Attached(4, "b0/0", [], ["b0"])


def test_messages_of_an_attempt_that_was_not_granted_do_not_count() -> None:
    desk = publishing_desk()
    assert desk.hear("c", ClientSubscribe(1, "s", "TRUE")) == []
    assert desk.hear("stranger", ClientSubscribe(2, "s", "TRUE")) == []
    assert desk.node.state_size()["subscriptions"] == 0


def test_a_client_whose_home_is_another_living_broker_is_sent_there() -> None:
    desk = Desk(brokers=3)
    assert desk.hear("c", Attach(5, "b1/0", [], {}, [], 1)) == [Redirect(5, "b1")]


def test_a_client_whose_home_nobody_succeeded_has_to_wait() -> None:
    desk = Desk(brokers=3)
    assert desk.hear("c", Attach(5, "b1/7", [], {}, [], 1)) == [NotYet(5)]


def test_a_subscription_starts_at_the_next_number_of_a_publisher_next_door() -> None:
    desk = publishing_desk()
    assert desk.hear("p", ClientPublish(2, [event(1)])) == [Safe(2, 1)]
    assert desk.hear("c", ClientSubscribe(2, "s", "TRUE")) == [
        Cut(2, "s", {"p": 2}),
        Cut(2, "s", {}, is_whole=True, began=1),
    ]
    (first, safe), (second, delivery) = desk.give(Received("p", ClientPublish(2, [event(2)])))
    assert (first, safe) == ("p", Safe(2, 2))
    assert (second, delivery.number, delivery.events[0].id) == ("c", 1, "p:2")


def test_a_subscription_that_nobody_serves_is_active_at_once() -> None:
    desk = Desk()
    desk.attach("c")
    assert desk.hear("c", ClientSubscribe(2, "s", "TRUE")) == [Cut(2, "s", {}, is_whole=True)]


def test_a_subscription_is_ready_when_its_backup_knows_it() -> None:
    desk = Desk(brokers=2, f=1)
    desk.attach("c")
    effects = desk.give(Received("c", ClientSubscribe(2, "s", "TRUE")))
    [backup] = [message.body for peer, message in effects if isinstance(getattr(message, "body", None), Backup)]
    assert "s" in backup.records[0].subscriptions
    assert not [message for peer, message in effects if peer == "c"]
    told = desk.give(Received("b1", Frame(0, 0, 1, 0, 0, BackupHeld(backup.number))))
    assert [message for peer, message in told if peer == "c"] == [Cut(2, "s", {}, is_whole=True)]


def test_an_ending_names_the_last_number_that_came_by() -> None:
    desk = publishing_desk()
    desk.hear("c", ClientSubscribe(2, "s", "x = 1"))
    for seq in (1, 2):
        desk.hear("p", ClientPublish(2, [event(seq)]))
    assert desk.hear("c", ClientUnsubscribe(2, "s")) == [Unsubscribed(2, "s", {"p": 2})]


def test_numbers_of_publications_do_not_jump_and_what_comes_again_is_dropped() -> None:
    desk = publishing_desk()
    with pytest.raises(EventError, match="'p' publishes number 2, but number 1 is next"):
        desk.hear("p", ClientPublish(2, [event(2)]))
    with pytest.raises(EventError, match="'p' publishes number 3, but number 2 is next"):
        desk.hear("p", ClientPublish(2, [event(1), event(3)]))
    assert desk.hear("p", ClientPublish(2, [event(1)])) == [Safe(2, 1)]
    assert desk.hear("p", ClientPublish(2, [event(1)])) == []


def test_who_resumes_gets_what_it_lacks_once() -> None:
    desk = publishing_desk()
    desk.hear("c", ClientSubscribe(2, "s", "TRUE"))
    for seq in (1, 2, 3):
        desk.hear("p", ClientPublish(2, [event(seq)]))
    desk.hear("c", ClientGot(2, 1))
    told = desk.attach("c", 3, SubscriptionProgress("s", "TRUE", {"p": 1}, {"p": 2}, True))
    [delivery] = [message for message in told if isinstance(message, Delivery)]
    assert (delivery.number, [item.id for item in delivery.events]) == (1, ["p:3"])
    assert told[0] == Attached(3, "b0/0", [], ["b0"])


def test_who_resumes_publishes_nothing_twice() -> None:
    desk = publishing_desk()
    desk.hear("p", ClientPublish(2, [event(1)]))
    told = desk.hear("p", Attach(3, "b0/0", [], {"a": ("TRUE", 1)}, [event(1), event(2)], 1))
    assert [message for message in told if isinstance(message, Stable)] == [Stable(3, "a")]
    assert told[-1] == Safe(3, 2)
    assert desk.node.state_size()["retained"] == 2


def test_who_stays_away_for_too_long_is_told_so_and_begins_anew() -> None:
    desk = publishing_desk(session_s=7.0)
    desk.hear("c", ClientSubscribe(2, "s", "TRUE"))
    desk.give(Suspected("c"))
    [key] = [key for key, delay_us in desk.timers.items() if delay_us == 7_000_000]
    desk.give(TimerFired(key))
    assert desk.node.state_size()["subscriptions"] == 0
    assert desk.attach("c", 3, SubscriptionProgress("s", "TRUE", {"p": 1}, {}, True)) == [Expired(3)]
    assert desk.hear("c", Attach(4, "", [], {}, [], 1)) == [Invite(4, "b0/0")]
    assert desk.attach("c", 5)[0] == Attached(5, "b0/0", [], ["b0"])


def test_a_session_that_is_inherited_unclaimed_waits_half_as_long_each_time() -> None:
    desk = Desk(session_s=60.0)
    for epoch, seconds in ((2000, 60), (2001, 30), (2002, 15), (3000, 60)):
        desk.node.step(Start(), 0)
        desk.node.life.clients.inherit(SessionRecord("c", Epoch(epoch), 1, {}, {}, {}, 0, {}))
        timers = [effect for effect in desk.node._effects if isinstance(effect, SetTimer)]
        assert timers[-1] == SetTimer("session/c", seconds * 1_000_000)


def test_a_session_that_ends_holds_no_wave_up_any_longer() -> None:
    for ending in (TimerFired("session/c"), EndSession("c")):
        desk = publishing_desk()
        desk.hear("c", ClientSubscribe(2, "s", "TRUE"))
        desk.hear("p", ClientPublish(2, [event(1)]))
        desk.give(TimerFired("wave"))
        assert desk.node.overview()["held_up_by"] == {"c": {"owes": 1, "took": 0}}
        if isinstance(ending, TimerFired):
            desk.give(Suspected("c"))
        desk.give(ending)
        assert desk.node.overview()["held_up_by"] == {}
        assert desk.node.overview()["waits_for"] == [], "the wave went on in the same step"
        assert desk.attach("c", 3, SubscriptionProgress("s", "TRUE", {"p": 1}, {}, True)) == [Expired(3)]
        assert not desk.node.has_session("c")


def test_that_a_session_has_expired_is_told_until_its_client_has_heard_it() -> None:
    desk = Desk()
    desk.attach("c")
    desk.give(EndSession("c"))
    for attempt in (3, 4):
        assert desk.attach("c", attempt) == [Expired(attempt)], "the first answer may have come too late"
    assert desk.hear("c", Attach(5, "", [], {}, [], 1, heard=2)) == [Invite(5, "b0/0")]
    assert isinstance(desk.attach("c", 6)[0], Attached), "it has heard it, and begins anew"


def test_who_had_a_session_elsewhere_since_is_not_told_of_an_older_one() -> None:
    desk = Desk()
    desk.attach("c")
    desk.give(EndSession("c"))
    answer = desk.hear("c", Attach(9, "b0/0", [], {}, [], 1, heard=7))[0]
    assert isinstance(answer, Attached)


def test_a_subscription_that_was_ready_is_never_begun_afresh_in_silence() -> None:
    desk = Desk()
    assert desk.attach("c", 3, SubscriptionProgress("s", "TRUE", {"p": 1}, {}, True)) == [Expired(3)]
    assert isinstance(desk.attach("c", 4, SubscriptionProgress("s", "TRUE", {"p": 1}, {}, False))[0], Attached)


def test_a_broker_that_is_cut_off_sends_its_clients_away_until_it_hears_others_again() -> None:
    desk = Desk(brokers=4, f=1, partition="go on")
    desk.attach("c")
    assert desk.give(Suspected("b1"))
    assert not desk.node.overview()["cut_off"], "one may fail"
    assert ("c", Gone(2)) in desk.give(Suspected("b2"))
    assert desk.node.overview()["cut_off"]
    assert desk.attach("c", 3) == [NotYet(3)]
    assert ("c", Gone(2)) not in desk.give(TimerFired("overdue/b1")), "once is enough"
    desk.give(Trusted("b2"))
    assert not desk.node.overview()["cut_off"]
    assert desk.attach("c", 4)[0] == Attached(4, "b0/0", [], ["b0", "b1", "b2"])


def test_a_publisher_that_an_operator_ends_leaves_what_was_admitted() -> None:
    desk = publishing_desk()
    desk.hear("p", ClientPublish(2, [event(1)]))
    desk.give(EndSession("p"))
    desk.give(EndSession("p"))
    assert desk.node.overview()["sessions"] == 1
    assert desk.node.state_size()["advertisements"] == 0
    assert desk.hear("p", ClientPublish(2, [event(2)])) == []


def test_a_subscription_that_is_lost_ends_where_it_is_if_it_had_delivered_and_was_not_whole() -> None:
    desk = publishing_desk()
    broken = SubscriptionProgress("s", "TRUE", {"p": 1}, {"p": 1}, False)
    answers = desk.attach("c", 3, broken, SubscriptionProgress("t", "TRUE", {"p": 1}, {}, False))
    assert Unsubscribed(3, "s", {}) in answers
    [attached] = [answer for answer in answers if isinstance(answer, Attached)]
    assert attached.fresh == ["t"]
    assert "s" not in desk.node.life.table.subscriptions


def test_who_asks_for_a_session_that_a_hand_over_may_bring_waits_for_that() -> None:
    desk = Desk()
    desk.node.life.estates.heirs[name_life("b1", 0)] = name_life("b0", 0)
    desk.node.life.table.set_intact(False)
    assert desk.hear("c", Attach(3, "b1/0", [], {}, [], 1)) == [NotYet(3)]
    assert isinstance(desk.attach("d")[0], Attached), "it was invited here"
    desk.node.life.table.set_intact(True)
    assert isinstance(desk.hear("c", Attach(4, "b1/0", [], {}, [], 1))[0], Attached)


def test_a_client_with_many_subscriptions_is_written_to_the_journal_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A publisher is here, so each subscription gets its cut at once. A record for each cut would be quadratic work."""
    records: list[str] = []
    record = Session.record

    def note(self: Session) -> SessionRecord:
        records.append(self.client)
        return record(self)

    monkeypatch.setattr(Session, "record", note)
    desk = publishing_desk()
    records.clear()
    brought = [SubscriptionProgress(f"s{number}", f"x = {number}", {}, {}, False) for number in range(50)]
    answers = desk.attach("c", 3, *brought)
    assert sum(answer.is_whole for answer in answers if isinstance(answer, Cut)) == 50
    assert len(records) < 5

"""The log of a broker: cut by waves, shared in a hand-over."""

from gapless.events import Event
from gapless.protocols.gapless.messages import LogEntry
from gapless.protocols.gapless.retention.event_log import EventLog, Logged


def event(seq: int) -> Event:
    return Event("p", seq, {})


def test_what_lies_before_a_cut_that_is_done_is_dropped() -> None:
    log = EventLog()
    for seq in (1, 2):
        log.append(Logged([event(seq)], "u", seq))
    log.cut(1)
    log.append(Logged([event(3)], "u", 3))
    log.cut(2)
    assert log.forget(0) == []
    assert len(log) == 3
    assert log.forget(1) == [(1, 2)]
    assert len(log) == 1
    assert log.forget(1) == []
    assert log.forget(2) == [(3, 3)]
    assert len(log) == 0


def test_several_cuts_may_be_done_at_once_also_ones_that_nobody_made_here() -> None:
    log = EventLog()
    log.append(Logged([event(1)], "u", 7))
    log.cut(3)
    log.append(Logged([event(2)], "u"))
    log.cut(5)
    log.append(Logged([event(3)], "u", 9))
    assert log.forget(6) == [(7, 7)]
    assert [entry.event for entry in log.share(lambda via: False)] == [event(3)]


def test_it_is_shared_in_order_with_what_entered_on_ones_own_side() -> None:
    log = EventLog()
    for seq, via in enumerate(("u", "", "w"), start=1):
        log.append(Logged([event(seq)], via))
    assert log.share(lambda via: via == "u") == [
        LogEntry(event(1), False, None),
        LogEntry(event(2), True, None),
        LogEntry(event(3), True, None),
    ]


def test_of_what_an_excluded_broker_admitted_the_past_is_told() -> None:
    log = EventLog()
    log.append(Logged([event(1)], "u", after={"q": 4}))
    assert [entry.after for entry in log.share(lambda via: True)] == [{"q": 4}]


def test_what_another_broker_admitted_gets_a_number_where_it_stands() -> None:
    log = EventLog()
    log.append(Logged([event(1)], "u"))
    log.cut(1)
    log.append(Logged([event(2)], "u"))
    log.append(Logged([event(3)], "", 7))
    log.forget(1)
    places = log.places()
    assert {key: number for key, (_, number) in places.items()} == {("p", 2): 0, ("p", 3): 7}
    assert log.has_number(7)
    assert not log.has_number(8)
    log.number(places["p", 2][0], 8)
    assert log.has_number(8)
    assert {number for _, number in log.places().values()} == {7, 8}
    log.cut(2)
    assert log.forget(2) == [(8, 8), (7, 7)]
    assert not log.has_number(8)


def test_what_others_went_on_without_is_kept_and_not_shared_and_has_not_reached_everyone() -> None:
    log = EventLog()
    log.append(Logged([event(1), event(2), event(3)], "u", 5))
    log.append(Logged([Event("q", 4, {})], "u"))
    log.cut(1)
    log.void({"p": 1})
    assert [(entry.event.publisher, entry.event.seq) for entry in log.share(lambda via: False)] == [("p", 1), ("q", 4)]
    assert log.places() == {("p", 1): (0, 5), ("q", 4): (3, 0)}
    log.append(Logged([event(2)], "u", 8))
    assert [entry.event.seq for entry in log.share(lambda via: False)] == [1, 4, 2], "it comes again"
    assert log.forget(1) == [(5, 7)]
    assert log.done == {"p": 1, "q": 4}

"""History: what is kept, who is asked for it, and that whoever reads it is told what is missing."""

from itertools import pairwise

import pytest

from gapless.events import Attributes, Event
from gapless.overlay import chain
from gapless.protocols.gapless.history.index import Index
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.history.retrieval import Retrieval
from gapless.protocols.gapless.history.store import PAGE_BYTES, RUN_BYTES, History
from gapless.protocols.gapless.messages import Fetch, Fetched, Fetching, FetchIntervals, HistoryMessage, Interval


def run(publisher: str, seq: int, stamp: int, size: int = 0, count: int = 1) -> list[Event]:
    return [Event(publisher, seq + place, {"x": seq + place}, b"." * size, stamp) for place in range(count)]


def everything(attributes: Attributes) -> bool:
    return True


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


# ---- the store


def test_a_journal_is_read_by_stamp_whatever_the_order_in_which_it_came() -> None:
    history = History(1 << 20)
    history.keep("b0", run("p", 1, 10, count=2))
    history.keep("b0", run("q", 1, 30))
    history.keep("b0", run("p", 3, 20))
    history.keep("b1", run("r", 1, 15))
    page = history.read("b0", 10, 30, everything)
    assert ids(page.events) == ["p:3", "q:1"]
    assert (page.held, page.upto) == ({"p": [(3, 3)], "q": [(1, 1)]}, 30)
    assert history.read("b7", 0, 99, everything).held == {}


def test_a_page_tells_what_is_held_whether_it_matches_or_not() -> None:
    history = History(1 << 20)
    history.keep("b0", run("p", 1, 10, count=5))
    page = history.read("b0", 0, 50, lambda attributes: attributes["x"] == 3)
    assert ids(page.events) == ["p:3"]
    assert page.held == page.passed == {"p": [(1, 5)]}


def test_a_long_answer_comes_in_pages_that_end_between_stamps() -> None:
    history = History(1 << 24)
    for seq in range(1, 11):
        history.keep("b0", run("p", seq, 10 * seq, size=PAGE_BYTES // 4))
    since, came = 0, list[str]()
    while since < 1000:
        page = history.read("b0", since, 1000, everything)
        assert page.held["p"][0][1] == 10, "all that is asked for is told with each page"
        came += ids(page.events)
        since = page.upto
    assert came == [f"p:{seq}" for seq in range(1, 11)]


def test_beyond_its_bytes_the_oldest_goes_and_it_is_known_up_to_where() -> None:
    history = History(5 * (RUN_BYTES + 1_100))
    for seq in range(1, 101):
        history.keep(f"b{seq % 2}", run("p", seq, 10 * seq, size=1_000))
    assert history.size <= 5 * (RUN_BYTES + 1_100)
    assert 900 <= history.dropped < 1000
    kept = ids(history.read("b0", 0, 2000, everything).events) + ids(history.read("b1", 0, 2000, everything).events)
    assert sorted(kept) == sorted(f"p:{seq}" for seq in range(history.dropped // 10 + 1, 101))


def test_a_journal_that_is_told_again_is_not_kept_twice() -> None:
    history = History(1 << 20)
    history.keep("b0", run("p", 1, 10, count=3))
    history.keep_again("b0", run("p", 2, 10, count=2) + run("p", 4, 12))
    assert len(history) == 2
    assert ids(history.read("b0", 0, 99, everything).events) == ["p:1", "p:2", "p:3", "p:4"]


# ---- the index


def intervals(*positions: int) -> list[Interval]:
    return [Interval(since, until, {}) for since, until in pairwise(positions)]


def test_the_chain_ends_where_an_interval_is_not_known() -> None:
    index = Index()
    for interval in (*intervals(0, 10, 20), *intervals(30, 40, 50)):
        index.note(interval)
    assert index.chain(0) == intervals(30, 40, 50)
    assert index.chain(0, 20) == intervals(0, 10, 20)
    index.learn(intervals(20, 30))
    assert index.chain(5) == intervals(0, 10, 20, 30, 40, 50)
    assert index.chain(10) == intervals(10, 20, 30, 40, 50)


def test_who_was_gone_round_forgets_what_it_knew_to_be_final_since() -> None:
    desk = Desk()
    forgotten: list[Interval] = []
    desk.library.index.forgotten = forgotten.append
    for since, until, last in ((0, 10, 1), (10, 20, 2), (20, 30, 3)):
        desk.library.note(Interval(since, until, {"b0": {"p": [(last, last)]}}))
    desk.library.reach(20)
    assert desk.library.done == {"p": 2}
    desk.library.forget_after(25)
    assert [interval.until for interval in forgotten] == [30]
    assert desk.library.done == {"p": 2}, "that had reached everyone"
    desk.library.forget_after(15)
    assert ([interval.until for interval in forgotten], desk.library.done) == ([30, 20], {})


# ---- reading from others


class Desk:
    """The library of b0 in a chain of four, and what it says to the others."""

    def __init__(self, *out: str) -> None:
        self.asked: list[tuple[str, HistoryMessage]] = []
        self.library = Library(
            "b0", 4, 1 << 20, lambda since, until: {}, chain(4), 3, out.__contains__,
            send=lambda peer, message: self.asked.append((peer, message)), set_timer=lambda effect: None,
            may_return=lambda name: name in self.may_return,
        )  # fmt: skip
        self.may_return: set[str] = set()
        self.begun: list[Retrieval] = []
        self.others = {name: History(1 << 20) for name in ("b1", "b2", "b3") if name not in out}
        self.silent: set[str] = set()
        self.slow: set[str] = set()

    def advance(self, retrieval: Retrieval) -> None:
        self.begun.append(retrieval)

    def begin(self, since: int, until: int) -> Retrieval:
        retrieval = self.library.begin(self, "TRUE", since, until)
        assert retrieval is not None
        return retrieval

    def answer(self) -> None:
        """All that is asked is answered by those who are there."""
        while self.asked:
            peer, message = self.asked.pop(0)
            if peer in self.slow and isinstance(message, Fetch):
                self.library.receive(peer, Fetching(message.life, message.request))
            elif peer in self.others and peer not in self.silent and isinstance(message, Fetch):
                page = self.others[peer].read(message.journal, message.since, message.until, everything)
                fetched = Fetched(message.life, message.request, page.held, page.passed, page.upto, page.events)
                self.library.receive(peer, fetched)

    def read(self, retrieval: Retrieval, ticks: int = 40) -> list[str]:
        """All that there is, with time passing while somebody is silent."""
        came: list[str] = []
        for _ in range(ticks):
            self.library.go_on(self, retrieval)
            self.answer()
            came += ids(retrieval.take(100))
            if retrieval.is_over:
                break
            self.library.tick()
        return came


def between(since: int, until: int, **admitted: dict[str, list[tuple[int, int]]]) -> Interval:
    return Interval(since, until, admitted)


def test_what_several_journals_got_is_merged_by_stamp() -> None:
    desk = Desk()
    desk.library.index.note(between(0, 50, b1={"p": [(1, 2)]}, b0={"q": [(1, 2)]}))
    desk.library.index.note(between(50, 90, b3={"r": [(1, 1)]}))
    desk.others["b1"].keep("b1", run("p", 1, 10))
    desk.others["b1"].keep("b1", run("p", 2, 30))
    desk.library.history.keep("b0", run("q", 1, 20))
    desk.library.history.keep("b0", run("q", 2, 40))
    desk.others["b3"].keep("b3", run("r", 1, 60))
    assert desk.read(desk.begin(0, 90)) == ["p:1", "q:1", "p:2", "q:2", "r:1"]
    assert desk.read(desk.begin(20, 60)) == ["p:2", "q:2", "r:1"]


def test_what_its_broker_has_lost_comes_from_those_around_it_each_with_a_part() -> None:
    desk = Desk()
    desk.library.index.note(between(0, 50, b2={"p": [(1, 3)]}))
    desk.others["b1"].keep("b2", run("p", 1, 10))
    desk.others["b3"].keep("b2", run("p", 2, 20, count=2))
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval) == ["p:1", "p:2", "p:3"]
    assert retrieval.lost == {}


def test_what_nobody_has_is_told_before_what_may_be_its_effect() -> None:
    desk = Desk()
    desk.library.index.note(between(0, 50, b2={"p": [(1, 3)]}, b1={"q": [(1, 1)]}))
    desk.others["b2"].keep("b2", run("p", 3, 30))
    desk.others["b1"].keep("b1", run("q", 1, 20))
    retrieval = desk.begin(0, 50)
    desk.library.go_on(desk, retrieval)
    assert retrieval.take(10) == [], "nothing is known yet"
    desk.answer()
    assert retrieval.lost == {"p": [(1, 2)]}
    assert ids(retrieval.take(10)) == ["q:1", "p:3"]


def test_who_is_silent_is_waited_for_if_nobody_else_has_it() -> None:
    desk = Desk()
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    desk.others["b2"].keep("b2", run("p", 1, 10))
    desk.silent.add("b2")
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval) == []
    assert (retrieval.lost, retrieval.waits_for()) == ({}, ["b2"])
    desk.silent.clear()
    assert desk.read(retrieval, ticks=200) == ["p:1"]


def test_who_has_a_slow_disk_is_waited_for_however_long_it_takes() -> None:
    desk = Desk()
    desk.others["b2"].keep("b2", run("p", 1, 20))
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    desk.slow.add("b2")
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval, ticks=1_000) == []
    assert (retrieval.lost, retrieval.waits_for()) == ({}, ["b2"])
    desk.slow.clear()
    assert desk.read(retrieval, ticks=100) == ["p:1"]


def test_who_is_silent_for_long_is_dead() -> None:
    desk = Desk()
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    desk.silent.add("b2")
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval, ticks=1_000) == []
    assert retrieval.lost == {"p": [(1, 1)]}
    assert retrieval.is_over


@pytest.mark.parametrize("is_out", [False, True])
def test_who_may_return_is_waited_for_however_long_it_takes(is_out: bool) -> None:
    desk = Desk(*["b2"] * is_out)
    desk.others["b2"] = History(1 << 20)
    desk.others["b2"].keep("b2", run("p", 1, 20))
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    desk.silent.add("b2")
    desk.may_return.add("b2")
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval, ticks=1_000) == []
    assert (retrieval.lost, retrieval.waits_for()) == ({}, ["b2"])
    desk.silent.clear()
    assert desk.read(retrieval, ticks=100) == ["p:1"]


def test_who_is_forgotten_is_not_waited_for() -> None:
    desk = Desk("b2")
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    desk.may_return.add("b2")
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval, ticks=1_000) == []
    assert retrieval.lost == {}
    desk.may_return.clear()
    desk.read(retrieval, ticks=100)
    assert retrieval.lost == {"p": [(1, 1)]}


def test_an_answer_that_comes_late_counts() -> None:
    desk = Desk()
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    desk.others["b2"].keep("b2", run("p", 1, 10))
    retrieval = desk.begin(0, 50)
    desk.library.go_on(desk, retrieval)
    late, desk.asked = desk.asked, []
    for _ in range(5):
        desk.library.tick()
    desk.asked = [item for item in desk.asked if item[0] != "b2"]
    desk.answer()
    assert retrieval.take(10) == []
    desk.asked = late
    desk.answer()
    assert ids(retrieval.take(10)) == ["p:1"]


def test_the_memory_of_who_is_out_is_lost() -> None:
    desk = Desk("b2")
    desk.library.index.note(between(0, 50, b2={"p": [(1, 1)]}))
    retrieval = desk.begin(0, 50)
    assert desk.read(retrieval) == []
    assert retrieval.lost == {"p": [(1, 1)]}


def test_what_there_is_begins_behind_the_last_that_is_missing_of_anybody() -> None:
    desk = Desk()
    desk.others["b1"].keep("b1", run("p", 3, 20, count=2))
    desk.others["b2"].keep("b2", [*run("q", 1, 15), *run("q", 2, 25)])
    desk.library.index.note(between(0, 50, b1={"p": [(1, 4)]}, b2={"q": [(1, 2)]}))
    retrieval = desk.begin(0, 50)
    desk.library.go_on(desk, retrieval)
    assert retrieval.find_beginning() is None, "nobody has answered"
    desk.answer()
    assert retrieval.find_beginning() == 19
    assert retrieval.lost == {}
    assert desk.read(retrieval) == ["p:3", "p:4", "q:2"], "q:1 may be an effect of p:2"


def test_who_has_nothing_left_is_missing_up_to_the_end_of_the_stretch() -> None:
    desk = Desk()
    desk.others["b1"].keep("b1", run("p", 1, 20))
    desk.library.index.note(between(0, 50, b1={"p": [(1, 1)], "q": [(1, 1)]}))
    retrieval = desk.begin(0, 50)
    desk.library.go_on(desk, retrieval)
    desk.answer()
    assert retrieval.find_beginning() == 50
    assert desk.read(retrieval) == []


def test_an_answer_to_an_earlier_life_is_no_answer() -> None:
    desk = Desk()
    desk.others["b1"].keep("b1", run("p", 1, 10))
    desk.library.index.note(between(0, 50, b1={"p": [(1, 1)]}))
    retrieval = desk.begin(0, 50)
    desk.library.go_on(desk, retrieval)
    [(_, asked)] = desk.asked
    assert isinstance(asked, Fetch)
    desk.library.receive("b3", Fetched(asked.life - 1, asked.request, {}, {}, 50, []))
    assert desk.read(retrieval) == ["p:1"]


def test_intervals_that_are_not_known_are_asked_of_others() -> None:
    desk = Desk()
    desk.library.index.note(between(50, 90))
    assert desk.library.begin(desk, "TRUE", 0, 90) is None
    [(peer, message)] = desk.asked
    assert (peer, message) == ("b1", FetchIntervals(4, 1, 0, 50))
    other = Library(
        "b1", 0, 1, lambda since, until: {}, chain(4), 3, lambda name: False,
        send=lambda peer, answer: desk.library.receive("b1", answer), set_timer=lambda effect: None,
    )  # fmt: skip
    for interval in (between(0, 20), between(20, 50)):
        other.index.note(interval)
    other.receive("b0", message)
    [retrieval] = desk.begun
    assert retrieval.gaps == []
    assert desk.read(retrieval) == []
    assert retrieval.position == 90


def test_who_knows_only_what_came_later_is_not_asked_for_ever() -> None:
    desk = Desk("b2", "b3")
    assert desk.library.begin(desk, "TRUE", 10, 50) is None
    other = Library(
        "b1", 0, 1, lambda since, until: {}, chain(4), 3, lambda name: False,
        send=lambda peer, answer: desk.library.receive("b1", answer), set_timer=lambda effect: None,
    )  # fmt: skip
    other.index.note(between(50, 90))
    for _ in range(3):
        for _, message in desk.asked[:1]:
            desk.asked.pop(0)
            other.receive("b0", message)
    [retrieval] = desk.begun
    assert retrieval.gaps == [(10, 50)], "nobody knows what there was"


def test_what_nobody_knows_of_is_told_as_a_gap_between_positions() -> None:
    desk = Desk("b1", "b2", "b3")
    desk.library.index.note(between(50, 90))
    assert desk.begin(10, 90).gaps == [(10, 50)]
    desk.library.index.note(between(120, 150))
    assert desk.begin(10, 130).gaps == [(10, 50), (90, 120)]
    assert desk.begin(95, 110).gaps == [(95, 110)]


def test_nothing_is_read_beyond_what_is_known() -> None:
    desk = Desk("b1", "b2", "b3")
    desk.library.index.note(between(0, 50))
    assert desk.begin(0, 90).until == 50

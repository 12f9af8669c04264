"""What a broker does for readers of history: it keeps it, lends it to other brokers, and reads for its own clients."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from gapless.disk import HistoryRow
from gapless.filters import parse
from gapless.overlay import Overlay
from gapless.protocol import HistoryRead, ReadHistory, SetTimer
from gapless.protocols.gapless.history.index import Index
from gapless.protocols.gapless.history.interval_search import IntervalSearch
from gapless.protocols.gapless.history.retrieval import Retrieval, Source
from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.messages import (
    Cuts,
    Fetch,
    Fetched,
    FetchedIntervals,
    Fetching,
    FetchIntervals,
    HistoryMessage,
    Interval,
    Ranges,
)
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["LIBRARY", "Library", "Reader"]

LIBRARY = "library"
"""The key of its timer."""
TICK_US = 100_000
LOOKED_UP_MAX = 1_000
"""How many questions to the disk may be open. A reader whose question gets no answer asks others, or again."""
DONE_MAX = 10_000
"""Of so many publishers it is remembered what has reached everyone."""
INTERVALS_MAX = 1_000
"""So many intervals are told in one answer."""


class Reader(Protocol):
    """Who reads history."""

    def advance(self, retrieval: Retrieval) -> None:
        """It is known what is to be read, or more of it has come."""
        ...


class Library:
    """One life's history, and the readings of it that are under way here."""

    def __init__(
        self,
        name: str,
        life: int,
        bytes_max: int,
        journal: Callable[[int, int], Ranges],
        overlay: Overlay,
        radius: int,
        is_out: Callable[[str], bool],
        send: Callable[[str, HistoryMessage], None],
        set_timer: Callable[[SetTimer], None],
        read_disk: Callable[[ReadHistory], None] = lambda effect: None,
        age_us: int = 0,
        found: tuple[History, Index] | None = None,
        may_return: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """Those who hold a journal are at most `radius` away from its broker; `is_out` tells who is excluded, and
        `may_return` for whom everybody waits that is not there, because it comes back with what it held.

        What is older than `age_us` is dropped, unless that is 0. `found` is what an earlier life left."""
        self.history, self.index = found or (History(bytes_max), Index())
        self.name = self._name = name
        self._life = life
        self._journal = journal
        self._overlay = overlay
        self._radius = radius
        self._is_out = is_out
        self._may_return = may_return
        self._send = send
        self._set_timer = set_timer
        self._read_disk = read_disk
        self._age_us = age_us
        self._looked_up: dict[ReadHistory, tuple[str, Fetch]] = {}
        """What the disk was asked for: who is to be told, and what."""
        self._open: dict[tuple[str, Fetch], None] = {}
        """The same, whatever the number of the request."""
        self._requests: dict[int, tuple[Reader, Retrieval, Fetch]] = {}
        """What other brokers were asked for. An answer may be late: others may have been asked by then."""
        self._searches: dict[int, tuple[Reader, IntervalSearch]] = {}
        self._number = 0
        self._is_ticking = False
        self.done: Cuts = {}
        """By publisher: the last event up to the position that has reached everyone, as far as it is known."""
        self._done_until = 0

    # ---- what waves ask and tell --------------------------------------------------------------------------

    def admitted(self, since: int, until: int) -> dict[str, Ranges]:
        """What the journal of this broker got between two positions."""
        found = self._journal(since, until)
        return {self._name: found} if found else {}

    def last_admitted(self, since: int, until: int) -> Cuts:
        """By publisher: the last number that is known to have been admitted anywhere between two positions."""
        found: Cuts = {}
        for interval in self.index.between(since, until):
            for ranges in interval.admitted.values():
                for publisher, known in ranges.items():
                    found[publisher] = max(known[-1][1], found.get(publisher, 0))
        return found

    def dropped(self) -> int:
        """Nothing after this position was dropped here."""
        return self.history.dropped

    def note(self, interval: Interval | None) -> None:
        """It is known what was admitted everywhere."""
        if interval is not None:
            self.index.note(interval)
            self.history.forget(interval.until - self._age_us if self._age_us else 0)

    def reach(self, position: int) -> None:
        """Everything up to this position has reached everyone."""
        if position <= self._done_until:
            return
        for interval in self.index.between(self._done_until, position):
            for ranges in interval.admitted.values() if interval.until <= position else ():
                for publisher, known in ranges.items():
                    self.done[publisher] = max(known[-1][1], self.done.get(publisher, 0))
        self._done_until = position
        forget_oldest(self.done, DONE_MAX)

    def forget_after(self, position: int) -> None:
        """Others went on without this broker from a position on: they know what was admitted since, and it does not.

        The smallest story: b0 knows that p:2 was admitted before a position that is final, and nobody else has heard
        that yet. b0 and its backups are gone, and others go on; c reads history with them, and hears nothing of p:2.
        b0 comes back, its journal is lost, and p comes to it. If b0 took p:2 for known to everyone, c would never be
        told that p:2 is lost.
        """
        self.index.forget_after(position)
        if self._done_until > position:
            self.done, self._done_until = {}, position

    # ---- reading ------------------------------------------------------------------------------------------

    def begin(self, reader: Reader, text: str, since: int, until: int, journal: str = "") -> Retrieval | None:
        """Read what lies between two final positions, in one journal or in all. Returns None if it is not known yet
        what that is; the reader is told later."""
        self._number += 1
        others = self._overlay.within(self._name, len(self._overlay.brokers))
        there = [name for name in others if not self._is_out(name)]
        search = IntervalSearch(self._life, self._number, text, since, until, there, journal)
        self._searches[self._number] = reader, search
        return self._advance_search(self._number)

    def go_on(self, reader: Reader, retrieval: Retrieval) -> None:
        """Ask for the next stretch, once the last was taken."""
        while not retrieval.sources and not retrieval.is_over:
            for source in retrieval.next_stretch(self._holders):
                self._ask(reader, retrieval, source)

    def end(self, reader: Reader) -> None:
        """Nobody reads it any more."""
        for number in [n for n, (other, _) in self._searches.items() if other is reader]:
            del self._searches[number]
        for number in [n for n, request in self._requests.items() if request[0] is reader]:
            del self._requests[number]

    def asked(self, reader: Reader) -> list[str]:
        """Who was asked last what there is to read."""
        return [search.asked for other, search in self._searches.values() if other is reader]

    def _holders(self, journal: str) -> list[str]:
        return [journal, *self._overlay.within(journal, self._radius)] if journal in self._overlay else []

    def _advance_search(self, number: int) -> Retrieval | None:
        retrieval = self._searches[number][1].advance(self.index, self._send)
        if retrieval is None:
            self._keep_ticking()
        else:
            del self._searches[number]
        return retrieval

    def _go_on_searching(self, number: int) -> None:
        reader = self._searches[number][0]
        retrieval = self._advance_search(number)
        if retrieval is not None:
            reader.advance(retrieval)

    def _ask(self, reader: Reader, retrieval: Retrieval, source: Source) -> None:
        """Ask those who may hold it; this broker itself may be one of them."""
        while not source.is_over:
            for holder in [holder for holder in source.holders if self._is_lost(holder)]:
                source.refused(holder)
            if not source.holders:
                retrieval.divide(source, source.give_back())
                return
            asked = source.whom_to_ask()
            has_answered = False
            for holder in asked:
                has_answered |= self._ask_one(reader, retrieval, source, holder)
            if not has_answered:
                return

    def _is_lost(self, holder: str) -> bool:
        return self._is_out(holder) and not self._may_return(holder)

    def _ask_one(self, reader: Reader, retrieval: Retrieval, source: Source, holder: str) -> bool:
        """Ask one of them; returns whether the answer is there."""
        if source.is_over:
            return False
        self._number += 1
        fetch = Fetch(self._life, self._number, source.journal, source.since, source.until, retrieval.text)
        if holder == self._name and not self.history.cold(fetch.journal, fetch.since):
            self._take_page(reader, retrieval, source, holder, self._page(fetch, ()))
            return True
        self._requests[self._number] = reader, retrieval, fetch
        if holder == self._name:
            self._answer(holder, fetch)
        else:
            self._send(holder, fetch)
        self._keep_ticking()
        return False

    def _take_page(self, reader: Reader, retrieval: Retrieval, source: Source, holder: str, page: Fetched) -> None:
        lacking = source.take(holder, page)
        if lacking:
            other = retrieval.divide(source, lacking)
            if other is not None:
                self._ask(reader, retrieval, other)

    def _answer(self, peer: str, fetch: Fetch) -> None:
        """Tell a page of what is here; if the memory does not have all of it, when the disk has answered. Who asks for
        the same again is told that it takes a while."""
        cold = self.history.cold(fetch.journal, fetch.since)
        if not cold:
            self._tell(peer, self._page(fetch, ()))
            return
        if (peer, _what(fetch)) not in self._open and len(self._looked_up) < LOOKED_UP_MAX:
            self._look_up(peer, fetch, min(fetch.until, cold))
        self._tell(peer, Fetching(fetch.life, fetch.request))

    def _tell(self, peer: str, answer: Fetching | Fetched) -> None:
        if peer == self._name:
            self.receive(peer, answer)
        else:
            self._send(peer, answer)

    def _look_up(self, peer: str, fetch: Fetch, until: int) -> None:
        self.history.reads += 1
        effect = ReadHistory(self.history.reads, fetch.journal, fetch.since, until)
        self._looked_up[effect] = peer, fetch
        self._open[peer, _what(fetch)] = None
        self._read_disk(effect)

    def looked_up(self, item: HistoryRead) -> None:
        """The disk has answered, perhaps to an earlier life. The memory may have dropped more meanwhile."""
        if item.asked not in self._looked_up:
            return
        peer, fetch = self._looked_up.pop(item.asked)
        del self._open[peer, _what(fetch)]
        cold = min(fetch.until, self.history.cold(fetch.journal, fetch.since))
        if cold > item.asked.until:
            self._look_up(peer, fetch, cold)
        else:
            self._tell(peer, self._page(fetch, item.rows))

    def _page(self, fetch: Fetch, rows: Sequence[HistoryRow]) -> Fetched:
        page = self.history.read(fetch.journal, fetch.since, fetch.until, parse(fetch.filter).test, rows)
        return Fetched(fetch.life, fetch.request, page.held, page.passed, page.upto, page.events)

    # ---- messages and time --------------------------------------------------------------------------------

    def receive(self, peer: str, message: HistoryMessage) -> None:
        """Another broker asks, or answers."""
        match message:
            case Fetch():
                self._answer(peer, message)
            case Fetching():
                self._on_fetching(message)
            case Fetched():
                self._on_fetched(peer, message)
            case FetchIntervals():
                known = self.index.chain(message.since, message.until)
                self._send(peer, FetchedIntervals(message.life, message.request, known[-INTERVALS_MAX:]))
            case FetchedIntervals():
                self.index.learn(message.intervals)
                search = self._searches.get(message.request)
                if search is not None and message.life == self._life and search[1].hear(peer, message.intervals):
                    self._go_on_searching(message.request)

    def _on_fetching(self, message: Fetching) -> None:
        request = self._requests.get(message.request) if message.life == self._life else None
        if request is not None:
            for source in request[1].sources:
                if source.fits(request[2]):
                    source.heard()

    def _on_fetched(self, peer: str, message: Fetched) -> None:
        if message.life != self._life or message.request not in self._requests:
            return
        reader, retrieval, fetch = self._requests.pop(message.request)
        for source in [source for source in retrieval.sources if source.fits(fetch)]:
            self._take_page(reader, retrieval, source, peer, message)
            self._ask(reader, retrieval, source)
        reader.advance(retrieval)

    def tick(self) -> None:
        """Ask others where no answer came."""
        self._is_ticking = False
        for reader, retrieval in {id(r[1]): r[:2] for r in self._requests.values()}.values():
            for source in [source for source in retrieval.sources if not source.is_over]:
                source.wait(self._may_return)
                self._ask(reader, retrieval, source)
                reader.advance(retrieval)
        for number, (_, search) in list(self._searches.items()):
            if search.wait(self._is_out):
                self._go_on_searching(number)
        if self._requests or self._searches:
            self._keep_ticking()

    def _keep_ticking(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._set_timer(SetTimer(LIBRARY, TICK_US))


def _what(fetch: Fetch) -> Fetch:
    """What is asked for, whatever the number of the request."""
    return msgspec.structs.replace(fetch, request=0)

"""The member of a group that listens to its durable subscription, and deals out what comes.

It holds what was delivered and is not confirmed, in order, with the positions among it. Whatever is first in that order
and confirmed is told to the keepers of names as a position and numbers, as by any client (see `named`); what is
confirmed beyond something that is not, as ranges of numbers. Members take turns, but for those that
have clearly more unconfirmed than others. What is to be given again goes first.

It deals an event only when the keepers of names hold a bound that the event's stamp does not exceed. So the next that
deals, also after all members were away, knows what may have been delivered before.

It deals only for a while after it has asked the keepers of names for what they granted; who takes its place waits for
as long. So nothing is given to two members by two dealers that do not know of each other.

Members are told everything again until they say that they have it. One that is not heard for `SILENT_US` is taken for
gone. One that does not confirm an event in time is told that it is another's, if there is another. If there is none, it
is given the event anew, for it does not take what comes late (see `member`).

A member speaks for itself alone: what it says of the line of another does not count. What it says that it holds when it
joins counts only if somebody can have dealt it: an earlier dealer, or this one, to the same client.
"""

from collections import deque
from collections.abc import Callable

from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.client_messages import (
    DELIVERED_AHEAD_US,
    HOLDS_MAX,
    LEASE_MAX_US,
    LEASE_US,
    ClientConfirm,
)
from gapless.protocols.gapless.messages import Ranges
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport, NameRecord
from gapless.protocols.parts.forgetting import forget_oldest
from gapless.protocols.parts.ranges import add_range

__all__ = ["SILENT_US", "Dealer", "Hand"]

SILENT_US = 5_000_000
"""Who was not heard for so long is taken for gone."""
GRACE_US = 1_500_000
"""How long who deals in another's place waits for the members to say what they hold."""
ROUNDS = 4
"""It deals for so many times as long as the keepers of names took to answer, within `LEASE_US` and `LEASE_MAX_US`,
after it asked them for what they granted."""
HAND_MAX = 32
"""How many events one member is given ahead of what it confirms."""
STEP = 8
"""Who has so many more unconfirmed than another comes after it; else they take turns."""
GIVEN_MAX = 10_000
WAITING_MAX = 10_000
"""How far it goes beyond an event that nobody confirms."""
REST_MAX_US = 1_000_000
STEP_US = 5_000_000
"""How far a position must have moved, where nothing was delivered, to be told."""

Key = tuple[str, int]
"""An event: publisher and number."""
Hand = Callable[[str, str, GroupDeal], None]
"""To a client at a broker."""


class _Entry:
    """An event, or a position, in the order in which it came."""

    __slots__ = ("deadline", "event", "failed", "is_done", "line", "position", "since")

    def __init__(self, event: Event | None, position: int = 0) -> None:
        self.event = event
        """None for a position; and while only its holder has the event."""
        self.position = position
        self.is_done = False
        self.line = ""
        """Who has it."""
        self.deadline = 0
        self.since = 0
        """The last report of who has it, when it was dealt."""
        self.failed = ""
        """Who had it and did not confirm it."""


class _Share:
    """One member."""

    def __init__(self, line: str, client: str, broker: str, now: int) -> None:
        self.line = line
        self.client = client
        self.broker = broker
        self.heard = now
        self.items: dict[int, _Entry] = {}
        """What it has, by number."""
        self.last = 0
        """The number of what it was given last."""
        self.turn = 0
        """When it was given something last, as the dealer counts."""
        self.report = 0
        """The number of its last report."""
        self.received = 0
        self.sent = 0
        self.confirmed = 0
        self.kept = 0
        self.refused: list[int] = []
        self.is_leaving = False


class Dealer:
    """Of one generation of one name."""

    def __init__(self, call: Subscribe, line: str, record: NameRecord, asked: int, now: int, hand: Hand) -> None:
        """The record was `asked` for at that time."""
        self.call = call
        self.line = line
        self.generation = record.generation
        self.is_ending = False
        """It deals no more, and what is confirmed is told for the last time."""
        self._hand = hand
        self._redeliver = record.redeliver_us
        self._begins = now + (record.lease_us + GRACE_US if record.generation > 1 else 0)
        self._asked = asked
        self._granted = asked
        """When the keepers were asked for what they granted last."""
        self._lease = LEASE_US
        """How long that counts; so the record says."""
        self._wanted = _lease_for(now - asked)
        """How long the next is to count."""
        self._known: Ranges = {name: list(ranges) for name, ranges in record.done.items()}
        """What was confirmed beyond the position before, and has not come by."""
        self._position = self._told_position = record.position
        self._got = {publisher: (seq, record.latest) for publisher, seq in record.got.items()}
        self._entries: deque[_Entry] = deque()
        self._by_key: dict[Key, _Entry] = {}
        """Of all events that it holds, and those that members said they have."""
        self._early: dict[Key, _Entry] = {}
        """Those of them that have not come by."""
        self._latest = self._dealt = self._reserved = record.delivered
        """What has no larger stamp than the first of these may have been dealt by an earlier one, and what has no
        larger one than the second by this one. The third is the bound that the keepers hold."""
        self._newest = record.position
        """No stamp of what came is larger."""
        self._fresh: deque[_Entry] = deque()
        self._again: deque[_Entry] = deque()
        self._shares: dict[str, _Share] = {}
        self._given: dict[str, int] = {}
        """By client: the largest stamp of what it was given."""
        self._turn = 0
        self._serial = 0
        self._under_way: tuple[int, dict[str, int], int] | None = None
        """The serial of what the keepers were asked to hold, how far each member had confirmed then, and the bound on
        what is dealt."""
        self.rests_until = 0
        """The keepers of names are asked for nothing before."""
        self._is_changed = True
        """Whether the keepers have to hold something new; at first, how far it may deal."""
        self.has_left = False

    # ---- what comes ---------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether so much waits that no more should come."""
        return len(self._entries) >= WAITING_MAX

    def delivered(self, event: Event) -> None:
        """An event was delivered, in its place."""
        self._newest = max(self._newest, event.stamp)
        key = (event.publisher, event.seq)
        entry = self._by_key.get(key)
        if entry is None:
            entry = self._by_key[key] = _Entry(event)
            if self._was_done(*key):
                entry.is_done = True
            else:
                self._fresh.append(entry)
        else:
            del self._early[key]
            entry.event = event
            if not entry.line and not entry.is_done:
                self._again.append(entry)
        self._entries.append(entry)
        known = self._known.get(event.publisher)
        while known and known[0][1] <= event.seq:
            known.pop(0)
        self._advance()

    def _was_done(self, publisher: str, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self._known.get(publisher, ()))

    def reached(self, position: int) -> None:
        """All up to this position was delivered."""
        self._newest = max(self._newest, position)
        if self._entries and self._entries[-1].position:
            self._entries.pop()
        self._entries.append(_Entry(None, position))
        self._advance()

    # ---- members ------------------------------------------------------------------------------------------

    def report(self, client: str, broker: str, word: GroupReport, now: int) -> None:
        """A member tells what it has.

        One that is about to end takes members in, too: they hear when it has left. The smallest story of what happened
        without: c leaves, and asks the keepers of names to let it go. p joins meanwhile. If c told p at once that it
        deals no more, p would ask the keepers who does. Its ballot beats that of c, they say that it is c, p joins c,
        and so on: c never leaves, and nobody deals.
        """
        share = self._shares.get(word.line)
        if share is not None and share.client != client:
            return
        if share is None:
            if word.holds is None:
                self._hand(client, broker, GroupDeal(self.generation, word.line, 0, 0, [], 0, [], True))
                return
            share = self._join(client, broker, word, now)
        share.heard, share.broker, share.report = now, broker, max(share.report, word.number)
        share.received = min(max(share.received, word.received), share.last)
        for number in range(share.confirmed + 1, min(word.confirmed, share.last) + 1):
            entry = share.items.pop(number, None)
            if entry is not None:
                entry.is_done, entry.line = True, ""
                self._is_changed = True
            share.confirmed = number
        share.refused = [number for number in share.refused if number not in word.refused]
        if word.is_leaving:
            share.is_leaving = True
            share.refused += sorted(share.items)  # some of it may still come to it
            self._release(share)
            self._say_goodbye(share)
        elif word.holds is not None:
            self._tell(share)
        self._advance()

    def _join(self, client: str, broker: str, word: GroupReport, now: int) -> _Share:
        for other in [other for other in self._shares.values() if other.client == client]:
            self._drop(other)
        share = self._shares[word.line] = _Share(word.line, client, broker, now)
        latest = word.latest if self.generation > 1 else min(word.latest, self._given.get(client, 0))
        self._latest = max(self._latest, latest)
        for key in (word.holds or [])[:HOLDS_MAX]:
            self._leave_with(share, *key, now)
        share.received = share.sent = share.last
        return share

    def _leave_with(self, share: _Share, publisher: str, seq: int, stamp: int, now: int) -> None:
        """A member has an event of an earlier dealer: it is its own, unless it is another's or confirmed by now."""
        share.last += 1
        entry = self._by_key.get((publisher, seq))
        is_over = seq <= self._got.get(publisher, (0, 0))[0] or stamp <= self._position
        is_over = is_over or not self._may_hold(share.client, entry)
        if is_over or self._was_done(publisher, seq) or (entry is not None and (entry.line or entry.is_done)):
            share.refused.append(share.last)
            return
        if entry is None:
            entry = self._by_key[publisher, seq] = self._early[publisher, seq] = _Entry(None)
        for waiting in (self._fresh, self._again):
            if entry in waiting:
                waiting.remove(entry)
        self._assign(entry, share, share.last, now)

    def _may_hold(self, client: str, entry: _Entry | None) -> bool:
        """Whether somebody can have dealt it to that client: without an earlier dealer, only this one."""
        if self.generation > 1:
            return True
        return entry is not None and entry.event is not None and entry.event.stamp <= self._given.get(client, 0)

    def _assign(self, entry: _Entry, share: _Share, number: int, now: int) -> None:
        entry.line, entry.deadline, entry.since = share.line, now + self._redeliver, share.report
        share.items[number] = entry

    def _drop(self, share: _Share) -> None:
        del self._shares[share.line]
        self._release(share)

    def _release(self, share: _Share) -> None:
        """What it has is to be given to others, first what came first."""
        for number in sorted(share.items, reverse=True):
            self._take_back(share, number)

    def _take_back(self, share: _Share, number: int) -> None:
        entry = share.items.pop(number)
        entry.line, entry.failed = "", share.line
        if entry.event is not None:
            self._again.appendleft(entry)

    def _say_goodbye(self, share: _Share) -> None:
        """A member that leaves is let go when all that it had confirmed is held."""
        if share.kept >= share.confirmed:
            del self._shares[share.line]
            self._say_over(share)

    def _say_over(self, share: _Share) -> None:
        deal = GroupDeal(self.generation, share.line, share.last, share.last, [], share.kept, share.refused, True)
        self._hand(share.client, share.broker, deal)

    def end(self) -> None:
        """All members are told that it deals no more."""
        for share in self._shares.values():
            self._say_over(share)
        self._shares.clear()

    # ---- dealing ------------------------------------------------------------------------------------------

    def deal(self, now: int) -> None:
        """Give out what can be given."""
        if now < self._begins or self.is_ending or not (self._again or self._fresh):
            return
        if now - self._granted > self._lease:
            self._is_changed = True  # ask the keepers again: another may deal by now
            return
        given: dict[str, None] = {}
        while self._again or self._fresh:
            waiting = self._again or self._fresh
            event = waiting[0].event
            assert event is not None, "what only its holder has is not dealt"
            if event.stamp > self._reserved:
                self._is_changed = True  # whoever deals after this one has to know
                break
            share = self._next(waiting[0])
            if share is None:
                break
            self._turn += 1
            share.last, share.turn = share.last + 1, self._turn
            entry = waiting.popleft()
            self._dealt = max(self._dealt, event.stamp)
            self._given[share.client] = max(self._given.pop(share.client, 0), event.stamp)
            forget_oldest(self._given, GIVEN_MAX)
            self._assign(entry, share, share.last, now)
            given[share.line] = None
        for line in given:
            self._tell(self._shares[line])

    def _next(self, entry: _Entry) -> _Share | None:
        """Whom to give it: not the one that failed, if there is another."""
        free = [share for share in self._shares.values() if not share.is_leaving and len(share.items) < HAND_MAX]
        others = [share for share in free if share.line != entry.failed]
        return min(others or free, key=lambda share: (len(share.items) // STEP, share.turn), default=None)

    def _tell(self, share: _Share) -> None:
        """Tell a member what it has not been told."""
        items = [
            (number, entry.event, bool(entry.failed) or entry.event.stamp <= self._latest)
            for number, entry in share.items.items()
            if number > share.sent and entry.event is not None
        ]
        since = min((share.items[number].since for number, _, _ in items), default=0)
        deal = GroupDeal(
            self.generation, share.line, share.sent, share.last, items, share.kept, list(share.refused), False, since
        )  # fmt: skip
        share.sent = share.last
        self._hand(share.client, share.broker, deal)

    def hear_all(self, now: int) -> None:
        """The client was out of sight itself: nobody is gone for that."""
        for share in self._shares.values():
            share.heard = now

    def tick(self, now: int) -> None:
        """Take back what was not confirmed in time, and from those who are gone; tell all again what they lack."""
        for share in list(self._shares.values()):
            if now - share.heard > SILENT_US:
                self._drop(share)
        for share in self._shares.values():
            overdue = [number for number, entry in share.items.items() if entry.deadline <= now]
            if any(other is not share and not other.is_leaving for other in self._shares.values()):
                for number in reversed(overdue):
                    self._take_back(share, number)
                share.refused += overdue
            else:
                for number in (number for number in overdue if number > share.received):
                    self._assign(share.items[number], share, number, now)
        for share in list(self._shares.values()):
            share.sent = share.received
            self._tell(share)
        self.deal(now)

    # ---- what is confirmed --------------------------------------------------------------------------------

    def _advance(self) -> None:
        """What is confirmed, and has nothing before it that is not, is told by a position and numbers."""
        entries = self._entries
        while entries and (entries[0].is_done or entries[0].position):
            entry = entries.popleft()
            event, position = entry.event, entry.position
            if event is not None:
                del self._by_key[event.publisher, event.seq]
                self._got[event.publisher] = (event.seq, event.stamp)
                self._is_changed = True
            elif position > self._position:
                self._position = position
                self._got = {name: last for name, last in self._got.items() if last[1] > position}
                self._is_changed = self._is_changed or position - self._told_position >= STEP_US

    @property
    def is_due(self) -> bool:
        """Whether there is something to confirm, and nothing under way."""
        return self._under_way is None and (self._is_changed or self.is_ending)

    def confirming(self, attempt: int, now: int) -> ClientConfirm:
        """All that is confirmed by now."""
        self._serial += 1
        self._asked = now
        bound = self._dealt if self.is_ending else max(self._reserved, self._newest + DELIVERED_AHEAD_US)
        self._under_way = (self._serial, {share.line: share.confirmed for share in self._shares.values()}, bound)
        self._is_changed = False
        self.has_left = self.is_ending
        self._told_position = self._position
        got = {publisher: seq for publisher, (seq, _) in self._got.items()}
        latest = max((stamp for _, stamp in self._got.values()), default=0)
        return ClientConfirm(
            attempt, self.line, self.call.name, self.generation, self._serial, self._position, got, latest,
            self.is_ending, self._done(), self._wanted, bound,
        )  # fmt: skip

    def _done(self) -> Ranges:
        """What is confirmed beyond something that is not."""
        found: Ranges = {publisher: list(ranges) for publisher, ranges in self._known.items()}
        for (publisher, seq), entry in self._early.items():
            if entry.is_done:
                add_range(found, publisher, seq, seq)
        runs: dict[str, tuple[int, int]] = {}
        for entry in self._entries:
            if entry.event is None:
                continue
            publisher, seq = entry.event.publisher, entry.event.seq
            if entry.is_done:
                runs[publisher] = (runs.get(publisher, (seq, seq))[0], seq)
            elif publisher in runs:
                add_range(found, publisher, *runs.pop(publisher))
        for publisher, run in runs.items():
            add_range(found, publisher, *run)
        return found

    def kept(self, serial: int, now: int) -> bool:
        """The keepers hold what was confirmed; whether that was the last that they were asked for.

        Then it leaves them alone for twice as long as that took: else who wants to join would be beaten by its ballots
        again and again.
        """
        if self._under_way is None or self._under_way[0] != serial:
            return False
        self.rests_until = now + min(2 * (now - self._asked), REST_MAX_US)
        self._reserved = self._under_way[2]
        self._granted, self._lease = self._asked, self._wanted
        self._wanted = _lease_for(now - self._asked)
        for line, confirmed in self._under_way[1].items():
            share = self._shares.get(line)
            if share is not None and confirmed > share.kept:
                share.kept = confirmed
                if share.is_leaving:
                    self._say_goodbye(share)
                else:
                    self._tell(share)
        self._under_way = None
        return True


def _lease_for(round_us: int) -> int:
    return min(max(LEASE_US, ROUNDS * round_us), LEASE_MAX_US)

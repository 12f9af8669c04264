"""Changes of records, each agreed by a majority of the keepers.

Lamport's single-decree synod, once for each change of a record (as in CASPaxos, Rystsov 2018): ask a majority to listen
to no smaller ballot, take the record with the largest ballot that any of them holds, change it, and let a majority
hold what comes out. Two who change the same record at a time hinder each other, but each finds what the other has done.
A change that makes nothing new goes to a majority, too, before anyone is told: perhaps only a few held what was found.

Messages may get lost, come twice or late. What was not answered is asked again. Who finds a larger ballot gives way: it
begins anew when a majority of the keepers tell it that they hold what they were asked to. So those who want the same
record take turns, the one with the largest ballot first. After some defeats they have to hold it for the same ballot.
The smallest story of that: b0, b1 and b2 are the keepers, and each wants a name. Each holds what it asked for itself,
and tells the others. If b0 began anew when b1 and b2 hold something, each for another ballot, and b1 and b2 likewise,
all three could find larger ballots for ever. If the one with the largest died, it waits for a while that is drawn from
its ballot, up to twice as long each time: if two waited for about as long, each would find the other's ballot again and
again, where messages take long. So it is with who was refused by one keeper and has no answer of another, which may be
dead: of b0, b1 and b2, b2 is. If b0 and b1 asked again every half second, each would beat the other for ever. A ballot
begins with the time, so that a broker that has forgotten which it used takes none twice.
"""

from collections import Counter, deque
from collections.abc import Callable
from itertools import islice
from typing import Any
from zlib import crc32

from gapless.protocol import SetTimer
from gapless.protocols.gapless.lives import Home
from gapless.protocols.gapless.name_messages import (
    AskName,
    Ballot,
    KeepName,
    NameAnswer,
    NameEntry,
    NameMessage,
    NameRecord,
)
from gapless.protocols.gapless.names.register import FULL, NAMES_MAX, NO_MORE
from gapless.protocols.gapless.names.rules import Change, Refusal

__all__ = ["NAMES", "Proposal", "Proposals"]

NAMES = "names"
"""The key of the timer."""
TICK_US = 100_000
PATIENCE = 5
"""Ticks until something is asked again."""
BACK_OFF_MAX = 6
HASTY = 2
"""After so many defeats it begins anew as soon as a majority holds anything."""


class Proposal:
    """One change of one record."""

    def __init__(
        self,
        name: str,
        change: Change,
        done: Callable[[NameRecord | None, str], None],
        is_wanted: Callable[[], bool],
        user: str = "",
    ) -> None:
        """`done` is told the record that is agreed, or why the change was not made."""
        self.user = user
        """Whose client wants it."""
        self.name = name
        self.change = change
        self.done = done
        self.is_wanted = is_wanted
        self.number = 0
        """How many were proposed by this broker, with it."""
        self.request = 0
        self.ballot: Ballot = (0, "")
        self.record: NameRecord | None = None
        """What the keepers are to hold; None while they are asked what they do hold."""
        self.refusal = ""
        self.answers: dict[str, NameEntry] = {}
        self.waits = 0
        """Ticks until it goes on."""
        self.is_beaten = False
        """Whether somebody listens to a larger ballot only."""
        self.refused: set[str] = set()
        """Keepers who will not hold the record, for that reason."""
        self.free: dict[str, Ballot] = {}
        """The keepers who hold what a larger ballot was for, and that ballot."""
        self.defeats = 0


class Proposals:
    """Those of one broker."""

    def __init__(
        self,
        home: Home,
        keepers: list[str],
        now: Callable[[], int],
        send: Callable[[str, NameMessage], None],
        set_timer: Callable[[SetTimer], None],
    ) -> None:
        self._home = home
        self._keepers = keepers
        self._majority = len(keepers) // 2 + 1
        self._now = now
        self._send = send
        self._set_timer = set_timer
        self._seen = 0
        """The largest number of a ballot that anybody has used."""
        self._number = 0
        self._proposed = 0
        self._queues: dict[str, deque[Proposal]] = {}
        """By name. One at a time is under way."""
        self._is_ticking = False

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def told(self, most: int) -> dict[str, dict[str, Any]]:
        """For operators: the names whose records are changed, how many changes came before, who has not answered."""
        found = {}
        for name, queue in islice(self._queues.items(), most):
            missing = [keeper for keeper in self._keepers if keeper not in queue[0].answers]
            found[name] = {"change": queue[0].number, "waits_for": missing}
        return found

    def propose(self, proposal: Proposal) -> None:
        """Make a change, after those of the same name that were wanted before."""
        queue = self._queues.setdefault(proposal.name, deque())
        queue.append(proposal)
        self._proposed += 1
        proposal.number = self._proposed
        if len(queue) == 1:
            self._begin(proposal)
        self.keep_ticking()

    def _begin(self, proposal: Proposal) -> None:
        self._number += 1
        proposal.request = self._number
        self._seen = max(self._seen + 1, self._now())
        proposal.ballot = (self._seen, self._home)
        proposal.record, proposal.refusal, proposal.is_beaten = None, "", False
        proposal.refused.clear()
        proposal.free.clear()
        self._ask(proposal)

    def _ask(self, proposal: Proposal) -> None:
        proposal.waits = PATIENCE
        for keeper in self._keepers:
            if keeper in proposal.answers:
                continue
            if proposal.record is None:
                self._send(keeper, AskName(proposal.request, proposal.name, proposal.ballot, proposal.user))
            else:
                self._send(keeper, KeepName(proposal.request, proposal.ballot, proposal.record))

    def hear(self, peer: str, answer: NameAnswer) -> None:
        """A keeper answers."""
        queue = self._queues.get(answer.entry.name)
        proposal = queue[0] if queue else None
        if proposal is None or proposal.request != answer.request or proposal.ballot != answer.ballot:
            return
        if answer.entry.promised in (FULL, NO_MORE):
            self._end(proposal)
            proposal.done(None, _no_room(proposal.user if answer.entry.promised == NO_MORE else ""))
            return
        if proposal.is_beaten:
            self._hear_free(proposal, peer, answer.entry)
            return
        if answer.is_kept != (proposal.record is not None):
            return
        self._seen = max(self._seen, answer.entry.promised[0])
        if answer.entry.promised > answer.ballot:
            proposal.refused.add(peer)
            if proposal.record is None or len(proposal.refused) > len(self._keepers) - self._majority:
                self._give_way(proposal)
            self._hear_free(proposal, peer, answer.entry)
            return
        proposal.answers[peer] = answer.entry
        if len(proposal.answers) >= self._majority:
            self._go_on(proposal)

    def _give_way(self, proposal: Proposal) -> None:
        proposal.is_beaten = True
        proposal.answers.clear()
        proposal.defeats = min(proposal.defeats + 1, BACK_OFF_MAX)
        lot = crc32(f"{proposal.ballot}".encode())
        proposal.waits = PATIENCE + lot % (1 << proposal.defeats)

    def _hear_free(self, proposal: Proposal, peer: str, entry: NameEntry) -> None:
        """A keeper tells what it holds by now for a larger ballot."""
        self._seen = max(self._seen, entry.promised[0])
        if entry.accepted == entry.promised > proposal.ballot:
            proposal.free[peer] = entry.accepted
            alike = proposal.defeats <= HASTY or max(Counter(proposal.free.values()).values()) >= self._majority
            if proposal.is_beaten and alike and len(proposal.free) >= self._majority:
                self._begin(proposal)

    def _go_on(self, proposal: Proposal) -> None:
        if proposal.record is not None:
            self._end(proposal)
            proposal.done(proposal.record, proposal.refusal)
            return
        known = max(proposal.answers.values(), key=lambda entry: entry.accepted).record
        proposal.answers.clear()
        try:
            proposal.record = proposal.change(known)
        except Refusal as refusal:
            proposal.record, proposal.refusal = known, str(refusal)
        if proposal.record is None:
            self._end(proposal)
            proposal.done(None, proposal.refusal)
        else:
            self._ask(proposal)

    def _end(self, proposal: Proposal) -> None:
        queue = self._queues[proposal.name]
        queue.remove(proposal)
        if queue:
            self._begin(queue[0])
        else:
            del self._queues[proposal.name]

    def tick(self) -> None:
        """Go on with what has waited for long enough."""
        self._is_ticking = False
        for queue in list(self._queues.values()):
            proposal = queue[0]
            proposal.waits -= 1
            if not proposal.is_wanted():
                self._end(proposal)
            elif proposal.waits <= 0:
                if proposal.is_beaten:
                    proposal.answers.clear()
                    self._begin(proposal)
                elif proposal.refused:
                    self._give_way(proposal)
                else:
                    self._ask(proposal)
        if self._queues:
            self.keep_ticking()

    def keep_ticking(self) -> None:
        """Let the clock run."""
        if not self._is_ticking:
            self._is_ticking = True
            self._set_timer(SetTimer(NAMES, TICK_US))


def _no_room(user: str) -> str:
    if user:
        return f"user {user!r} has as many durable subscriptions as it may have; end one first"
    return f"there are {NAMES_MAX:,} durable subscriptions already, which is the limit; end some"

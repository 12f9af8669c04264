"""Who lives: a lattice that only grows, and who may say what.

Opinions on a broker's status merge by the maximum (`status`), so everyone who hears the same news in any order ends
with the same view, and an excluded life stays excluded: a broker that was wrongly suspected must come back as a new
life.

- Only a broker itself declares a new life.
- Only one broker may exclude another: its nearest settled ancestor. Where none is near (the root, or a broker below an
  excluded root), any settled broker nearby may, if every neighbour of the accused that it can hear accuses it too.
- Two failure detectors have to agree: its own and that of another broker near the accused. So a single wrong suspicion
  does no harm, and a broker that is itself cut off, or was asleep, excludes nobody. If nobody else ever joins in,
  because only the link is broken or nobody else is left, the suspicion counts after a while (`overdue`). Only one end
  of a link may judge the other, so only the lower end of a broken link is then excluded.
- Where brokers wait in a cut (`partition`), more than half of those around the accused have to agree, and no suspicion
  counts alone (`quorum`). Only a broker that hears more than half of those around itself accuses, excludes and hands
  over. Any other may be out itself, and not have heard it yet. A broker that was suspected and is trusted again counts
  as heard once it has said something: if it had excluded this life meanwhile, it would say that instead.
- A broker that suspects more than f at a time, and more than it hears, excludes nobody: it is more likely cut off
  itself. It sends its clients away until it hears others again.

A suspicion counts against the life that was known when it arose. If a new life turns up while the detector still
suspects the broker, the suspicion is renewed after a while.
"""

from collections.abc import Iterable, Mapping

from gapless.overlay import Overlay
from gapless.protocols.gapless.lives import Status
from gapless.protocols.gapless.members.contraction import stand_in
from gapless.protocols.gapless.members.quorum import is_majority
from gapless.protocols.gapless.members.status import (
    FIRST,
    Statuses,
    alive_status,
    excluded_status,
    is_excluded,
    is_unsettled,
    life_of,
)
from gapless.protocols.gapless.parting import TOGETHER, Parting, join

__all__ = ["Membership"]


class Membership:
    """One broker's knowledge of who lives, around it."""

    def __init__(self, name: str, life: int, overlay: Overlay, f: int, *, needs_majority: bool = False) -> None:
        self.name = name
        self.overlay = overlay
        self.status: Statuses = {name: alive_status(life)} if life else {}
        self._out: set[str] = set()
        """Whose last known life is out: every message asks for that."""
        self.has_disk = False
        """Whether what brokers held before they failed is on disks. Then it waits until enough of them are there."""
        self.is_patient = False
        """Whether others may still be about to return: for a while after this one did, or another around it."""
        self.stood_still = False
        """Whether others may have excluded this life while it stood still, for all it knows."""
        self.version = 0
        """Grows whenever a status does."""
        self.f = f
        self.needs_majority = needs_majority
        """Whether no two halves of a cut network can go on without each other."""
        self.watch = f + 1
        """How far failure detectors look."""
        self._watched = overlay.within(name, self.watch)
        self._suspected: dict[str, int] = {}
        self._overdue: dict[str, int] = {}
        self._accusers: dict[str, dict[str, int]] = {}
        self.forgotten: dict[str, int] = {}
        """By broker: the last of its lives that will not return, as an operator said."""
        self.parted = TOGETHER
        """Between which positions halves of the network had last gone on without each other."""
        self._unsure: dict[str, None] = {}
        """Where a majority is needed, or there are disks: who is trusted again, but has not said since that this life
        still counts, or in which life it is."""

    @property
    def was_taken_in(self) -> bool:
        """Whether this life has been settled once."""
        return self._was_taken_in(self.name)

    def _was_taken_in(self, name: str) -> bool:
        status = self.status.get(name, FIRST)
        return status == FIRST or status > alive_status(life_of(status))

    def life(self, name: str) -> int:
        """The life of the broker that is, or was last, known."""
        return life_of(self.status.get(name, FIRST))

    def lives(self, name: str, life: int) -> bool:
        """Whether that life of the broker is its last known one, and not out."""
        return life_of(self.status.get(name, FIRST)) == life and name not in self._out

    def excluded(self, name: str) -> bool:
        """Whether the broker's last known life is out."""
        return name in self._out

    def stand_in(self, name: str) -> str:
        """Who stands in for the excluded broker; this broker, if nobody else is left."""
        return stand_in(self.overlay, self.status, name) or self.name

    def merge(self, status: Mapping[str, Status]) -> Statuses:
        """Take over what is news; return it."""
        news = {b: s for b, s in status.items() if s > self.status.get(b, FIRST)}
        if news:
            self.status.update(news)
            self._out.difference_update(news)
            self._out.update(name for name, status in news.items() if is_excluded(status))
            self.version += 1
        return news

    def forget(self, forgotten: Mapping[str, int]) -> dict[str, int]:
        """Nobody waits for these lives, nor for earlier ones; return what is news of that."""
        news = {name: life for name, life in forgotten.items() if life > self.forgotten.get(name, -1)}
        self.forgotten |= news
        return news

    def part(self, parted: Parting) -> bool:
        """Halves of the network had gone on without each other; whether that is news."""
        before, self.parted = self.parted, join(self.parted, parted)
        return self.parted != before

    def apart(self, status: Mapping[str, Status]) -> list[str]:
        """Who is out here, and lives for one who knows these statuses; in another life, too, if more than f are out.

        The smallest story of these: b4 goes on without all others, which go on without b4. One of them is out there,
        too, for another reason, and back when they meet.
        """
        is_beyond_f = sum(name in self._out for name in self._watched) > self.f
        return [
            name
            for name in self._out
            if (known := status.get(name, FIRST)) < self.status[name] or (is_beyond_f and known > self.status[name])
        ]

    def is_forgotten(self, name: str) -> bool:
        """Whether the broker is out, and nobody has to wait for it."""
        return self.excluded(name) and self.forgotten.get(name, -1) >= self.life(name)

    def may_return(self, name: str) -> bool:
        """Whether everybody waits for the broker, should it be gone, because it comes back with what it held."""
        return self.has_disk and self.needs_majority and self.forgotten.get(name, -1) < self.life(name)

    def is_news(self, status: Mapping[str, Status]) -> bool:
        """Whether any of it is not known here yet."""
        return any(s > self.status.get(b, FIRST) for b, s in status.items())

    def select(self, names: Iterable[str]) -> Statuses:
        """The statuses of these brokers."""
        return {name: self.status.get(name, FIRST) for name in names}

    def suspects(self, name: str) -> bool:
        """Whether the failure detector suspects the broker now."""
        return name in self._suspected

    def unheard(self) -> list[str]:
        """The brokers that the failure detector suspects and nobody has excluded."""
        return [name for name, life in self._suspected.items() if self.lives(name, life)]

    def suspect(self, name: str) -> None:
        """The failure detector suspects the broker's current life."""
        self._suspected[name] = self.life(name)
        self._unsure.pop(name, None)

    def hear(self, name: str) -> bool:
        """The broker has said something to this life; tell whether it was not heard before."""
        return self._unsure.pop(name, self) is None

    def trust(self, name: str) -> None:
        """The failure detector trusts the broker again."""
        if self._suspected.pop(name, None) is not None and (self.needs_majority or self.has_disk):
            self._unsure[name] = None
        self._overdue.pop(name, None)

    def accuse(self, accuser: str, name: str, life: int, guilty: bool) -> None:
        """A broker's failure detector spoke about another."""
        accusers = self._accusers.setdefault(name, {})
        if guilty:
            accusers[accuser] = life
        else:
            accusers.pop(accuser, None)

    def grow_overdue(self, name: str) -> None:
        """The failure detector has suspected the broker for long."""
        if name in self._suspected:
            self._overdue[name] = self._suspected[name]

    def hears_somebody(self) -> bool:
        """Whether any broker around is neither excluded nor suspected."""
        return any(not self._is_silent(name) for name in self._watched)

    def verdicts(self) -> Statuses:
        """The brokers that this one has to exclude now, with their new statuses."""
        found: Statuses = {}
        again = not self.is_cut_off()
        while again:
            again = False
            for name, life in sorted(self._suspected.items(), key=lambda item: self.overlay.rank[item[0]]):
                if self.lives(name, life) and self._may_exclude(name, life):
                    found |= self.merge({name: excluded_status(life)})
                    again = True
        return found

    def is_cut_off(self) -> bool:
        """Whether it is more likely this broker that is cut off than the others that are dead.

        A broker that has returned with a disk and was not taken in yet may be the first after a blackout. Others hold
        what it lacks. So if it misses more than f of those around, whether they are out or not, it waits for them. And
        for a while it waits for each that is missing: one that is late must not be taken for dead, because others may
        have lost their disks.

        One that was there all the time does not count on those who have just come back with their disks. The smallest
        story: b2 stands still while all others lose their power. b0, b5 and b6 are the first to be back, and wait for
        b1, b3 and b4. If b2 took these for dead because it hears as many as it misses, what only they hold would be
        told to be lost, and they come back with it a moment later.

        And for a while it misses them as well. The smallest story, with f = 2: b0 and b2 are gone, b1 and b3 go on
        without them, and die. b2 had only stood still, and b0 is back with its disk. If b2 missed no more than f now,
        it would take b1 and b3 for dead. They come back a moment later, and the two pairs never listen to each other.
        So it is with who is trusted again: b1 is there, and has not said yet that this is another life. If it counted
        as heard, b2 would take b3 for dead.

        Who stood still waits for a while for each that is missing, as if it had returned. The smallest story, with
        f = 2: b1 and b2 stand still, b0 and b3 go on without them, confirm what they admit, and lose their power. b1
        and b2 go on, and miss no more than f. If they took b0 and b3 for dead, these could only come back as others'
        heirs, and what they confirmed would be told to be lost.

        Nobody misses those who are far away: that they are out, it may never hear. The smallest story, with f = 2:
        three keepers of names die one after the other, which b9 had asked. It would wait for them for ever.

        Who was excluded a moment ago is missed all the same. The smallest story, with f = 1: b0 is cut off from b1, b2
        and b3, and does not notice it of all at once. If it took b1 for dead, and then b2, and then b3, and they took
        b0 for dead, both would go on.
        """
        if self.has_disk and not self.was_taken_in:
            is_early = self.is_patient and any(self.lives(name, life) for name, life in self._suspected.items())
            return is_early or len(self.missing()) > self.f
        heard = sum(not self._is_silent(name) for name in self._watched)
        if self.needs_majority:
            return not self._is_majority(self.name, 1 + heard)
        missed = {
            name for name, life in self._suspected.items()
            if name in self._watched and (self.lives(name, life) or self._is_newly_suspected(name))
        }  # fmt: skip
        if self.has_disk:
            if self.is_patient and self.stood_still and missed:
                return True
            heard = sum(not self._is_silent(name) and self._may_judge(name) for name in self._watched)
            missed |= {name for name in self._unsure if name in self._watched and name not in self._out}
            if self.is_patient:
                missed.update(name for name in self._watched if not self._was_taken_in(name))
        return len(missed) > max(1, self.f, heard)

    def _is_newly_suspected(self, name: str) -> bool:
        """Whether the failure detector has not suspected the broker for long."""
        return name not in self._overdue and not self.is_forgotten(name)

    def may_hand_over(self) -> bool:
        """Whether a hand-over that this broker completes counts: where a majority is needed, it hears its own."""
        return not (self.needs_majority and self.is_cut_off())

    def missing(self) -> list[str]:
        """The brokers around that this one does not hear, and that may return."""
        return [name for name in self._watched if self._is_silent(name) and not self.is_forgotten(name)]

    def _is_majority(self, name: str, voices: int) -> bool:
        """Whether so many are more than half of those around a broker who may ever be heard again."""
        forgotten = sum(self.is_forgotten(other) for other in self.overlay.within(name, self.f + 1))
        return is_majority(self.overlay, self.f, name, voices, forgotten)

    def _may_exclude(self, name: str, life: int) -> bool:
        hearing = [b for b in self.overlay.within(name, self.watch) if not self._is_silent(b)]
        judge = self._judge(name)
        if judge is None:
            settled = [b for b in hearing if self._may_judge(b)]
            if self.name not in (settled or hearing):
                return False
        elif judge != self.name:
            return False
        accusers = self._accusers.get(name, {})
        witnesses = [b for b in hearing if b != self.name]
        if judge is None and not all(
            accusers.get(b, -1) >= life for b in self.overlay.neighbours(name) if b in witnesses
        ):
            return False
        agreeing = sum(accusers.get(b, -1) >= life for b in witnesses)
        if self.needs_majority:
            return self._is_majority(name, 1 + agreeing)
        return self._overdue.get(name) == life or agreeing > 0

    def _is_silent(self, name: str) -> bool:
        return self.excluded(name) or name in self._suspected or name in self._unsure

    def _judge(self, name: str) -> str | None:
        """The nearest ancestor of the broker that may judge it, and watches it.

        The smallest story, with f = 2: all lose their power but the root, which only stood still. b8 does not come
        back, four links below it. Those between have not been taken in, and the root is too far away to suspect b8.
        """
        above = self.overlay.parent[name]
        for _ in range(self.watch):
            if above is None or self._may_judge(above):
                return above
            above = self.overlay.parent[above]
        return None

    def _may_judge(self, name: str) -> bool:
        """Whether the broker has been taken in by those around it, as far as is known here."""
        if name == self.name:
            return self.was_taken_in
        return not is_unsettled(self.status.get(name, FIRST))

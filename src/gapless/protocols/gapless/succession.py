"""One life of a broker after another.

A life that the others have excluded is over. The broker sends its clients away and begins the next one, mostly at once;
if its lives were short (`members.resting`), or if it does not hear a neighbour, it stays away for a while. The next one
knows what this one knew of who lives, and nothing else, but for what is on the disk, or would be.
"""

from gapless.protocol import Input, SetTimer, Suspected, TimerFired, Trusted
from gapless.protocols.gapless.life import Life
from gapless.protocols.gapless.lives import Status
from gapless.protocols.gapless.members.resting import Rests
from gapless.protocols.gapless.members.status import life_of
from gapless.protocols.gapless.recovery.found import Found
from gapless.protocols.gapless.site import Site

__all__ = ["Succession"]

REST = "rest"
"""The key of the timer."""
DEAF_US = 2_000_000
"""How long a broker stays away, at most, that was excluded and does not hear a neighbour.

The smallest story: b0 and b1 do not hear each other, and b1 excludes b0. If b0 returned at once, the hand-over in which
it is taken in would wait for b1, and nothing would get through until b1 excludes it again. Where brokers wait for each
other anyway, it returns at once.
"""


class Succession:
    """All lives of one broker since it was started."""

    def __init__(self, site: Site, number: int, found: Found | None) -> None:
        self._site = site
        self._rests = Rests()
        self._away: Status | None = None
        """While it stays away: the status of its life that was excluded."""
        self._is_deaf = False
        """Whether it stays away because it does not hear a neighbour."""
        self.now = self._begin(site, number, found)
        """The life that is, or was last."""

    def _begin(self, site: Site, number: int, found: Found | None) -> Life:
        return Life(site, number, found, self._leave)

    @property
    def is_away(self) -> bool:
        """Whether the last life is over, and the next has not begun."""
        return self._away is not None

    def take_while_away(self, item: Input) -> None:
        """Only who is heard matters, and when to return."""
        assert self._away is not None, "it is there"
        if isinstance(item, TimerFired) and item.key == REST:
            self._return(self._away)
        elif isinstance(item, Suspected) and item.peer in self._site.overlay:
            self.now.membership.suspect(item.peer)
        elif isinstance(item, Trusted) and item.peer in self._site.overlay:
            self.now.membership.trust(item.peer)
            if self._is_deaf and not self._unheard():
                self._return(self._away)

    def _return(self, status: Status) -> None:
        self._away, self._is_deaf = None, False
        self._start_over(status)

    def _unheard(self) -> bool:
        """Whether there is a neighbour that this broker does not hear, and that nobody has excluded."""
        unheard = self.now.membership.unheard()
        return any(name in unheard for name in self._site.overlay.neighbours(self._site.name))

    def _leave(self, status: Status) -> None:
        """This life was excluded: send the clients away and come back as a new one, mostly at once."""
        life = self.now
        rest_us = self._rests.end(life.clock.now)
        self._is_deaf = not rest_us and not self._site.waits and self._unheard()
        if self._is_deaf:
            rest_us = DEAF_US
        if not rest_us:
            self._start_over(status)
            return
        life.clients.dismiss_all()
        life.handovers.has_work = False
        self._away = status
        self._site.emit(SetTimer(REST, rest_us))

    def _start_over(self, status: Status) -> None:
        """Begin the next life."""
        site, last = self._site, self.now
        found = last.persistence.give_up(last.number) if site.disk.is_there or site.waits else None
        known = dict(last.membership.status) if last.membership.hears_somebody() else {}
        suspected = [name for name in site.near if last.membership.suspects(name)]
        last.clients.dismiss_all()
        self._rests.begin(last.clock.now)
        self.now = self._begin(site, life_of(status) + 1, found)
        self.now.membership.merge({name: value for name, value in known.items() if name != site.name})
        self.now.membership.forget(last.membership.forgotten)
        self.now.estates.learn_ends(last.estates)
        self.now.members.learn_parted(last.membership.parted)
        for name in suspected:
            self.now.membership.suspect(name)
        self.now.members.start()
        self.now.names.start()

"""What is heard of who lives, and what follows from it.

`members` knows who lives. Here its news are taken and told, and all that depends on them is brought in line
(`refresh`): who is excluded, whether clients are served, who the backups are, what has to be handed over or read again.
"""

from collections.abc import Callable, Mapping, Sequence

from gapless.protocol import SetTimer
from gapless.protocols.gapless.backup_course import BackupCourse
from gapless.protocols.gapless.history.refill import Refill
from gapless.protocols.gapless.lives import Status
from gapless.protocols.gapless.members.contraction import Region, effective_links
from gapless.protocols.gapless.members.news import StatusNews
from gapless.protocols.gapless.members.status import (
    FIRST,
    Statuses,
    alive_status,
    excluded_status,
    is_excluded,
    is_unsettled,
    life_of,
    next_phase,
)
from gapless.protocols.gapless.messages import Accuse, Fenced
from gapless.protocols.gapless.messages import Membership as MembershipNews
from gapless.protocols.gapless.parting import Parting, parting
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.state import BrokerState
from gapless.protocols.gapless.site import Site
from gapless.protocols.gapless.streams import Streams
from gapless.protocols.gapless.wave_course import WaveCourse

__all__ = ["MEMBER_TIMERS", "MemberCourse"]

RENEW = "renew"
OVERDUE = "overdue"
RETURNING = "returning"
GIVE_IN = "give in"
MEMBER_TIMERS = frozenset({RENEW, OVERDUE, RETURNING, GIVE_IN})
"""The keys of timers; behind some of them stands a broker."""
RENEW_US = 500_000
"""How long a suspicion against an old life must last to count against a new one."""
GIVE_IN_US = 5_000_000
"""How long two halves that have excluded each other may insist on it. Who alone is out has heard that by then."""


class MemberCourse:
    """One life's part in it."""

    def __init__(
        self,
        site: Site,
        life: int,
        state: BrokerState,
        streams: Streams,
        handovers: Handovers,
        refill: Refill,
        waves: WaveCourse,
        backups: BackupCourse,
        leave: Callable[[Status], None],
    ) -> None:
        """`leave` is told the status of this life that others have excluded: it is over then, or soon."""
        self._site = site
        self._life = life
        self._state = state
        self._membership = state.membership
        self._clients = state.clients
        self._news = StatusNews(state.membership, site.f, streams.send)
        self._streams = streams
        self._fenced_off: dict[str, Fenced] = {}
        """What brokers that are out say of this one, if they stand above it."""
        self._handovers = handovers
        self._refill = refill
        self._waves = waves
        self._backups = backups
        self._leave = leave

    def start(self) -> None:
        """This life begins. All but the first have to be taken in.

        What the last one said of whom it suspects went with it. Its smallest story: b1 dies, b0 says so to b2 and b3,
        is told that it is out itself, and begins anew. b2 and b3 wait for b0's word, and nobody excludes b1.

        Those who are out may be back as well, and not know it of each other: they hear of this life, too. The smallest
        story: b0 and b1 go on without each other. When they meet, each hears that it is out, and begins anew. Neither
        would have anything to say to the other, whose last life is out.
        """
        if self._life:
            self._news.announce()
            for name in self._site.near:
                if self._membership.excluded(name):
                    self._streams.fence(name)
            self._news.repeat_accusations()
            self._wait_for_others()
        self.refresh()

    def _wait_for_others(self) -> None:
        """Somebody has returned. Where it has a disk, that may be after a blackout."""
        if self._site.disk.is_there:
            self._membership.is_patient = True
            self._site.emit(SetTimer(RETURNING, int(self._site.options.return_ms * 1000)))

    # ---- news ---------------------------------------------------------------------------------------------

    def learn(self, status: Mapping[str, Status]) -> None:
        """Someone knows more of who lives, or of who is settled."""
        if not self._membership.is_news(status):
            return
        regions = self._handovers.regions()
        before = dict(self._membership.status)
        news = self._membership.merge(status)
        if not self._site.waits and self._membership.was_taken_in:
            self.part([name for name in news if self._was_taken_in_elsewhere(name, before)])
        news |= self._membership.merge(self._handovers.doubt(news))
        name = self._site.name
        if self._membership.excluded(name) or life_of(news.get(name, FIRST)) > self._life:
            self._leave(news[name])
        else:
            born = [name for name, value in news.items() if life_of(value) > life_of(before.get(name, FIRST))]
            born = [name for name in born if not self._membership.excluded(name)]
            for name in born:
                self._streams.meet(name)
            if born and self._membership.was_taken_in:
                self._wait_for_others()
            self._tell(news, regions)
            for name in born:
                if self._membership.suspects(name):
                    self._site.emit(SetTimer(f"{RENEW}/{name}", RENEW_US))
            for name in born:
                self._news.introduce(name)
            self._news.repeat_accusations()
            self.refresh()

    def forget(self, broker: str) -> None:
        """An operator knows that a broker will not return. Whoever it names by mistake comes back as a new life."""
        if broker in self._site.overlay and broker != self._site.name:
            life = self._membership.life(broker)
            self.learn_forgotten({broker: life})
            self.learn({broker: excluded_status(life)})

    def learn_forgotten(self, forgotten: Mapping[str, int]) -> None:
        """Wait for these lives no more, and tell those who may wait for them."""
        news = self._membership.forget({name: life for name, life in forgotten.items() if name != self._site.name})
        if news:
            self._news.spread_forgotten(news)
            self.refresh()

    def learn_parted(self, parted: Parting) -> None:
        """Halves of the network had gone on without each other: tell the clients, and those who may not know it."""
        if self._membership.part(parted):
            self._news.spread_parted()
            self._clients.tell_parted()

    def part(self, brokers: Sequence[str]) -> None:
        """These and others had gone on without each other: tell everyone."""
        if brokers and "parting" not in self._site.options.switched_off:
            clock = self._state.journal.clock
            since = min(map(self._state.estates.ended_at, brokers))
            self.learn_parted(parting(since, max(clock.now, clock.last)))

    def _find_parting(self, message: Fenced) -> None:
        """This life is out. If it has gone on without some who live, there were two halves."""
        is_out = message.status.get(self._site.name, FIRST) >= excluded_status(self._life)
        if is_out and not self._site.waits:
            self.part(self._membership.apart(message.others))

    def _was_taken_in_elsewhere(self, name: str, before: Mapping[str, Status]) -> bool:
        """Whether others have taken in a broker that was out, though this one should have taken part in it.

        The smallest story: b0 goes on without b1, b2 and b3, which go on, too, and take b3 in as a new life, though it
        is b0 that they do not hear. When they meet, b1 and b2 give in, and b3 has nothing to give in for.

        Who has returned between the two, and was not taken in here, is none that the others could ask instead.
        """
        life = self._membership.life(name)
        begins = alive_status(life)
        if not life or self._membership.status[name] != next_phase(begins) or self._handovers.has_taken_in(name, life):
            return False
        still_out = {
            other: excluded_status(life_of(status))
            for other, status in before.items()
            if is_unsettled(status) and not self._handovers.has_taken_in(other, life_of(status))
        }
        status = {**before, **still_out, name: begins, self._site.name: FIRST}
        links = effective_links(self._membership.overlay, status, self._site.name)
        return any(name == peer != via for via, peer in links)

    def _tell(self, news: Mapping[str, Status], regions: Sequence[Region] = ()) -> None:
        """Tell who must know, and listen to nobody who is out: the given regions count, and those that are now."""
        self._news.spread(news, (*regions, *self._handovers.regions()))
        for name in news:
            if self._membership.excluded(name):
                self._streams.end(name)

    def correct(self, peer: str, status: Mapping[str, Status]) -> None:
        """Tell a peer what it should know of these brokers, and does not."""
        newer = {name: self._membership.status.get(name, FIRST) for name in status}
        newer = {name: value for name, value in newer.items() if value > status[name]}
        if newer:
            self._streams.send(peer, MembershipNews(newer))

    def fenced(self, peer: str, message: Fenced) -> None:
        """Believe it, unless it comes from one who is out itself, while others are still to be heard.

        A life that is not known here is none that is out. The smallest story: b4 stands still and is excluded; before
        it goes on, the whole network is killed and comes back. Everyone that b4 hears then is in another life.

        Who else is out has to be known to the next life. The smallest story: b0 and b1 are cut off, and others go on
        without them. b0 hears b3 again, and that it is out. If it did not hear that b1 is, too, b1 would take its next
        life in, with what b0 had admitted meanwhile, though positions are final without that.

        Two halves may have gone on without each other, and each hears its own. Then those give in that stand below, if
        it stays like that.
        """
        is_new = message.life > self._membership.life(peer)
        if is_new:
            self._find_parting(message)
            self.learn({**message.status, peer: alive_status(message.life)})
        elif self._membership.lives(peer, message.life) or not self._membership.hears_somebody():
            self._find_parting(message)
            self.learn({**_out(message.others), **message.status})
        elif not self._site.waits and self._stands_above(peer):
            self._fenced_off[peer] = message
            self._site.emit(SetTimer(f"{GIVE_IN}/{peer}", GIVE_IN_US))

    def _stands_above(self, peer: str) -> bool:
        """Whether the peer is on the way from here to the root of the tree."""
        overlay = self._site.overlay
        return peer in overlay.path(self._site.name, overlay.root)

    def _give_in(self, peer: str) -> None:
        """A broker that is out has said that this one is. If both are still there, this one gives in.

        So do all with whom it has gone on, and at once. The smallest story: b0 and b1 are cut off from b2 and b3. b2
        alone gives in, and b3 tells its new life that b0 and b1 are out.
        """
        told = self._fenced_off.pop(peer, None)
        if told is not None and self._membership.excluded(peer) and not self._membership.suspects(peer):
            self._find_parting(told)
            self.learn({name: status for name, status in _out(told.others).items() if name not in told.status})
            self.learn(told.status)

    # ---- who is heard -------------------------------------------------------------------------------------

    def listens_to(self, peer: str, life: int) -> bool:
        """Whether that life of a broker may say something: fence off excluded ones, learn of new ones."""
        if not self._membership.lives(peer, life):
            if life > self._membership.life(peer):
                self.learn({peer: alive_status(life)})
            if not self._membership.lives(peer, life):
                self._streams.fence(peer)
                return False
        if self._membership.hear(peer):
            self._news.repeat_accusations()
            self.refresh()
        return True

    def suspected(self, broker: str) -> None:
        """The failure detector suspects a broker."""
        self._membership.suspect(broker)
        self._site.emit(SetTimer(f"{OVERDUE}/{broker}", int(self._site.options.patience_ms * 1000)))
        self._news.speak_of(broker, guilty=True)
        self.refresh()

    def woke(self) -> None:
        """This broker stood still. Others may have gone on without it, and be about to return from a blackout."""
        self._membership.stood_still = True
        self._wait_for_others()

    def trusted(self, broker: str) -> None:
        """The failure detector trusts a broker again."""
        self._membership.trust(broker)
        self._news.speak_of(broker, guilty=False)
        self._clients.serve(not self._membership.is_cut_off())
        if (self._site.waits or self._site.disk.is_there) and not self._membership.excluded(broker):
            self._news.introduce(broker)

    def accused(self, peer: str, body: Accuse) -> None:
        """Another's failure detector has spoken about a broker."""
        self._membership.accuse(peer, body.broker, body.life, body.guilty)
        self.refresh()

    def timer_fired(self, key: str, broker: str) -> None:
        """So long a suspicion has lasted, or others could return.

        While they could, this broker may not have accused anybody. The smallest story: all lose their power, where a
        majority is needed. b0 does not come back, and the others wait for it. Then each is willing to go on without it,
        but has not heard that from any other.
        """
        if key == GIVE_IN:
            self._give_in(broker)
        elif key == RENEW:
            if self._membership.suspects(broker):
                self.suspected(broker)
        elif key == OVERDUE:
            self._membership.grow_overdue(broker)
            self.refresh()
        else:
            self._membership.is_patient = self._membership.stood_still = False
            self._news.repeat_accusations()
            self.refresh()

    # ---- what follows -------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring everything in line with who lives."""
        verdicts = self._membership.verdicts()
        if verdicts:
            self._tell(verdicts)
            self._news.repeat_accusations()
        self._clients.serve(not self._membership.is_cut_off())
        if self._site.waits and self._life and self._membership.was_taken_in:
            self._state.estates.drop_found()
        self._backups.choose()
        self._handovers.follow()
        self._refill.follow()
        self._waves.tick_if_root()


def _out(status: Mapping[str, Status]) -> Statuses:
    return {name: value for name, value in status.items() if is_excluded(value)}

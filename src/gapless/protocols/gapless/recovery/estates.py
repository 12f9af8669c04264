"""What a broker holds of others' journals, and where the clients of lives that are over have gone.

A backup keeps its copy of a life's journal until that life has other backups. If the life is excluded, the backup
keeps the copy until the heir has secured what is in it. So does every member of a hand-over with the estates that were
divided in it: the heir may fail, too.

A client asks for its session by the life that held it last. An inherited session is with its heir. A life that is over
has an heir, or at least a successor in its place; either may begin the session afresh.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from gapless.events import Event
from gapless.protocols.gapless.disk import OVER_KEYS, Disk
from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.lives import NOWHERE, Home, broker_of, name_life, parse_life
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.messages import (
    PUT_TOGETHER,
    Backup,
    BackupAll,
    Estate,
    PutOff,
    Ranges,
    Resolved,
    SessionRecord,
)
from gapless.protocols.gapless.parting import Parting
from gapless.protocols.gapless.recovery.plan import TakeoverPlan
from gapless.protocols.gapless.retention.journal import Journal, JournalCopy
from gapless.protocols.gapless.tombstones import is_lost
from gapless.protocols.parts.forgetting import forget_oldest
from gapless.protocols.parts.ranges import add_range

__all__ = ["Estates"]

Name = TypeVar("Name", str, Home)

REMEMBERED_MAX = 10_000
"""How many clients and lives a broker can direct; who asks for an older one begins afresh."""


class Estates:
    """One broker's copies of others' journals, and its knowledge of heirs."""

    def __init__(
        self,
        home: Home,
        membership: Membership,
        journal: Journal,
        history: History,
        tell: Callable[[Resolved | PutOff], None],
        disk: Disk | None = None,
    ) -> None:
        self.heirs: dict[Home, Home] = {}
        """By life, the life that took over its clients."""
        self._home = home
        self._history = history
        self._membership = membership
        self._journal = journal
        self._tell = tell
        self._disk = disk or Disk(False, 0)
        self._copies: dict[tuple[str, int], JournalCopy] = {}
        self._homes: dict[str, Home] = {}
        self._seen_at: dict[str, Home] = {}
        """By client: the life of another member that held its session in a hand-over."""
        self._successors: dict[str, Home] = {}
        self._resolving: dict[tuple[str, int], int] = {}
        self._reached_at: dict[tuple[str, int], int] = {}
        """By broker and life: the position that everything had reached when that life was known to be over."""
        self._gone_round: dict[Home, int] = {}
        """By life without which a hand-over was completed, and whose journal nobody had: what had been reached then."""
        self._passed_over: dict[Home, None] = {}
        """All such lives that this broker has heard of."""
        self.lost: Ranges = {}
        """By client: what it had published and is known to be lost, until it comes and is told."""
        self.gone: dict[str, None] = {}
        """The publishers whose sessions hand-overs found to be lost, perhaps lost, or on disks that may be old."""
        self._divided: dict[Home, None] = {}
        """The lives whose clients this broker has divided with others: it still has those that were not among them."""
        self._over: dict[Home, None] = {}
        """The lives of which the disk knows that they are over, and that what they held is secured elsewhere."""

    def __len__(self) -> int:
        return sum(len(copy) for copy in self._copies.values())

    # ---- backups ------------------------------------------------------------------------------------------

    def restore(self, broker: str, life: int, message: BackupAll) -> None:
        """Become a backup of that life."""
        is_known = (broker, life) in self._copies
        copy = self._copies[broker, life] = JournalCopy()
        copy.restore(message)
        self._disk.write(broker, life, message, afresh=is_known)
        self._history.keep_again(broker, [admission.event for admission in message.admissions])

    def note(self, broker: str, life: int, message: Backup) -> bool:
        """Another entry of that life's journal; False if this broker is no backup of it."""
        copy = self._copies.get((broker, life))
        if copy is None:
            return False
        copy.note(message)
        self._disk.append(broker, life, message)
        if message.events:
            keep = self._history.keep
            if self._disk.is_there and message.original is not None:
                keep = self._history.keep_inherited
            keep(broker, message.events)
        return True

    def end(self, broker: str, life: int) -> None:
        """That life keeps its journal elsewhere now."""
        self._drop(broker, life)

    def whole(self, broker: str, life: int) -> BackupAll | None:
        """The copy of that life's journal, if there is one."""
        copy = self._copies.get((broker, life))
        return None if copy is None else copy.whole(copy.number)

    def _drop(self, broker: str, life: int) -> None:
        if self._copies.pop((broker, life), None) is not None:
            self._disk.drop(broker, life)

    # ---- what was found on a disk -------------------------------------------------------------------------

    def find(self, copies: dict[tuple[str, int], JournalCopy], over: dict[Home, Home]) -> None:
        """Take over what an earlier start left: copies of journals, its own among them, and which lives are over."""
        for copy in copies.values():
            copy.is_found = True
        self._copies.update(copies)
        self.heirs.update(over)
        self._over = dict.fromkeys(over)

    def drop_found(self) -> None:
        """This life was taken in: drop what was found on the disk and nobody has asked for."""
        for life in [life for life, copy in self._copies.items() if copy.is_found]:
            self._drop(*life)

    def over(self) -> dict[Home, Home]:
        """The lives that are over and secured, with their heirs."""
        return {name: self.heirs[name] for name in self._over if name in self.heirs}

    def all_copies(self) -> dict[tuple[str, int], JournalCopy]:
        """All copies, for the next life."""
        return dict(self._copies)

    # ---- hand-over ----------------------------------------------------------------------------------------

    def share(self, region: Region) -> list[Estate]:
        """The estates to be divided in the region: of its own lives, and of those whose heir is in it."""
        return [
            copy.estate(broker, life)
            for (broker, life), copy in self._copies.items()
            if not self._membership.lives(broker, life)
            and (broker in region.core or broker_of(self.heirs.get(name_life(broker, life), NOWHERE)) in region.core)
        ]

    def homes(self) -> dict[str, Home]:
        """The lives that hold inherited clients, of those that still live."""
        return {client: home for client, home in self._homes.items() if self._lives(home)}

    def divided(self, plan: TakeoverPlan, name: str, successors: dict[str, str]) -> None:
        """A hand-over has divided estates: remember who got what, and keep them until the heir has secured them."""
        for broker, successor in successors.items():
            self._successors[broker] = self._current_life(successor)
        for life, heir in plan.heirs.items():
            self._remember(self.heirs, name_life(*life), self._current_life(heir))
            self._divided[name_life(*life)] = None
            forget_oldest(self._divided, REMEMBERED_MAX)
            if name_life(*life) not in self._over:  # else the heir was quicker than this broker
                self._keep(*life, plan.estates[life], plan)
        for member, sync in plan.contributions.items():
            for client in sync.owned if member != name else ():
                self._remember(self._seen_at, client, self._current_life(member))
        for client, holder in plan.holders.items():
            self._remember(self._homes, client, self._current_life(holder))
        for share in plan.inherited:
            self._remember(self._homes, share.record.client, self._current_life(share.heir))
        for client, owner in plan.owners.items():
            self._remember(self._homes, client, self._current_life(owner))
        self._drop_outdated(plan)
        self._note_gone_round(plan)
        self._note_lost(plan)
        for life, heir in plan.heirs.items():
            if heir == name:
                self._resolving[life] = self._journal.number
                self._tell(Resolved(*life, False))
        self.resolve()

    def _drop_outdated(self, plan: TakeoverPlan) -> None:
        """Drop what was found here of the region's lives and is not in the plan: others knew that these are over."""
        for life in [life for life, copy in self._copies.items() if copy.is_found]:
            if life[0] in plan.region.core and life not in plan.heirs:
                self._drop(*life)

    def _note_gone_round(self, plan: TakeoverPlan) -> None:
        """Note the lives whose journals nobody had, unless an earlier hand-over, which this broker missed, had them."""
        known = {home for sync in plan.contributions.values() for home in sync.heirs}
        for broker in plan.region.core:
            life = self._membership.life(broker)
            home = name_life(broker, life)
            if self._membership.excluded(broker) and (broker, life) not in plan.heirs and home not in known:
                self._gone_round.setdefault(home, self.lost_at(home))
                self._passed_over[home] = None
        for sync in plan.contributions.values():
            self._passed_over.update(dict.fromkeys(sync.passed_over))
        forget_oldest(self._gone_round, REMEMBERED_MAX)
        forget_oldest(self._passed_over, REMEMBERED_MAX)

    def gone_round(self, region: Region) -> dict[Home, int]:
        """The lives of the region's brokers without which a hand-over was completed; see `Sync`."""
        return {
            home: position
            for home, position in self._gone_round.items()
            if broker_of(home) in region.core and home not in self._over
        }

    def passed_over(self, region: Region) -> list[Home]:
        """The same, whoever has taken over their clients since, and of members, too."""
        return [home for home in self._passed_over if broker_of(home) in (*region.core, *region.group)]

    def learn(self, heirs: dict[Home, Home]) -> None:
        """Take over what others know of heirs. What this broker knows from a hand-over of its own counts more."""
        for life, heir in heirs.items():
            if life not in self.heirs:
                self._remember(self.heirs, life, heir)

    def resolve(self) -> None:
        """Tell everyone to forget the estates that this broker inherited and its backups hold."""
        for life, number in list(self._resolving.items()):
            if number <= self._journal.held:
                del self._resolving[life]
                self._end_life(*life, self._home)
                self._tell(Resolved(*life, True))

    def resolved(self, peer: str, message: Resolved) -> None:
        """The peer is the heir of a life, and may have secured its estate.

        If this broker is its heir, too, by another hand-over, it stays that. The smallest story: b1 and b3 divide what
        b8 left twice, once b1 is the heir and once b3, and each tells the other. If each believed the other, a client
        that b8 had invited would be sent to and fro between them for ever.
        """
        life = name_life(message.broker, message.life)
        if self.heirs.get(life) != self._home:
            self._remember(self.heirs, life, self._current_life(peer))
        if message.secured:
            self._end_life(message.broker, message.life, self._current_life(peer))

    def _end_life(self, broker: str, life: int, heir: Home) -> None:
        """What a life held is secured. An old disk that comes back later must not bring it again."""
        self._drop(broker, life)
        if self._disk.is_there:
            name = name_life(broker, life)
            self._over[name] = None
            self._disk.put(f"{OVER_KEYS}{name}", heir)
            while len(self._over) > REMEMBERED_MAX:
                oldest = next(iter(self._over))
                del self._over[oldest]
                self._disk.delete(f"{OVER_KEYS}{oldest}")

    def _keep(self, broker: str, life: int, records: dict[str, SessionRecord], plan: TakeoverPlan) -> None:
        copy = self._copies[broker, life] = JournalCopy()
        copy.note_records(records.values())
        for item in plan.admissions[broker, life]:
            copy.keep(item)
        copy.number = PUT_TOGETHER
        self._disk.write(broker, life, copy.whole(copy.number), afresh=True)

    # ---- clients ------------------------------------------------------------------------------------------

    def find_home(self, client: str, home: Home) -> Home | None:
        """The life that holds the client's session, or may begin one, if that is known.

        An heir may have died before anybody else held what it inherited: then it counts who has succeeded it. Two
        halves that went on without each other may have inherited from each other: so it counts there, too.
        """
        inherited = self._homes.get(client)
        if inherited is not None and inherited != self._home:
            home = inherited
        ways: list[Home | None] = [home]
        asked: set[Home] = set()
        while ways:
            life = ways.pop()
            if life is None or life in asked:
                continue
            if self._lives(life):
                return life
            asked.add(life)
            ways += [self._successors.get(broker_of(life)), self.heirs.get(life)]
        return None

    def was_divided(self, home: Home) -> bool:
        """Whether this broker took part when the clients of that life were divided."""
        return home in self._divided

    def note_end(self, broker: str, reached: int) -> None:
        """The broker is out, or returns: its last life, or the one before, is over."""
        life = self._membership.life(broker)
        over = life if self._membership.excluded(broker) else life - 1
        self._reached_at.setdefault((broker, over), reached)
        forget_oldest(self._reached_at, REMEMBERED_MAX)

    def learn_ends(self, other: "Estates") -> None:
        """Of lives that are over: take over what the last life of this broker knew."""
        self._reached_at = dict(other._reached_at)

    def lost_at(self, home: Home) -> int:
        """The position that everything had reached while that life was there, as far as is known."""
        broker, life = parse_life(home)
        known = [reached for (name, over), reached in self._reached_at.items() if name == broker and over >= life]
        return min(known, default=0)

    def ended_at(self, broker: str) -> int:
        """The same for the last life of a broker that is over."""
        life = self._membership.life(broker)
        return self.lost_at(name_life(broker, life if self._membership.excluded(broker) else max(0, life - 1)))

    @property
    def parted(self) -> Parting:
        """Between which positions halves of the network had last gone on without each other."""
        return self._membership.parted

    def agreed(self, home: Home, position: int) -> int:
        """Of a position that a life told its clients: what it means the same by as this one.

        Who is out may have gone on by itself. The smallest story: p:1 waits for the backups of p's broker, b2. b1, cut
        off from b2, admits p:1, too, and stamps it later. c, at b1, has read up to a position between the two stamps.
        Then b1 gives in. If c went on from that position here, where p:1 stands before it, c would miss p:1. Where
        nothing is known of the end of that life, c is told of the parting (`parting`).
        """
        if self._membership.needs_majority or self._lives(home):
            return position
        return min(position, self.lost_at(home) or position)

    def _note_lost(self, plan: TakeoverPlan) -> None:
        self.bury(plan.events)
        for sync in plan.contributions.values():
            for client, ranges in sync.lost.items():
                for first, last in ranges:
                    self.lose(client, first, last)
            self.gone.update(dict.fromkeys(sync.gone))
        self.gone.update(dict.fromkeys(plan.gone))
        self.gone.update(dict.fromkeys(sorted(plan.unsure)))
        forget_oldest(self.gone, REMEMBERED_MAX)

    def lose(self, client: str, first: int, last: int) -> None:
        """These numbers of what a client published are lost. It is told when it comes."""
        add_range(self.lost, client, first, last)
        forget_oldest(self.lost, REMEMBERED_MAX)

    def bury(self, events: Iterable[Event]) -> None:
        """Tombstones are among these: their publishers are told when they come, to whichever broker.

        The smallest story: all who held p:1 die, and a hand-over makes a tombstone of it. It reaches b3. Then p comes
        to b3, which takes p:1 for known, for the tombstone has its number.
        """
        for event in events:
            if is_lost(event.attributes):
                self.lose(event.publisher, event.seq, event.seq)

    def tell_lost(self, client: str, last: int) -> list[tuple[int, int]]:
        """What the client had published, up to a number, and is known to be lost. It is told once."""
        return [(first, min(end, last)) for first, end in self.lost.pop(client, []) if first <= last]

    def tell_put_off(self, message: PutOff) -> None:
        """A client waits somewhere. Those who did not know it pass it on."""
        self._tell(message)

    def find_elsewhere(self, client: str) -> Home | None:
        """The life that was seen to hold the client's session, though this one should: it may have been given back."""
        home = self._seen_at.get(client)
        return home if home is not None and self._lives(home) else None

    def _lives(self, home: Home) -> bool:
        broker, life = parse_life(home)
        return broker in self._membership.overlay and self._membership.lives(broker, life)

    def _current_life(self, broker: str) -> Home:
        return name_life(broker, self._membership.life(broker))

    def _remember(self, where: dict[Name, Home], key: Name, value: Home) -> None:
        where[key] = value
        forget_oldest(where, REMEMBERED_MAX)

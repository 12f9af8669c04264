"""The hand-overs of one life of a broker: begins them, hears the other members, completes them, settles who returned.

What a hand-over is, `handover` explains; what its completion does, `takeover`. Here is when: a unit that is new is
begun, one that has become another is dropped, and those who came back are settled when every member of their unit
has completed. While one is under way the table sends nothing that assumes a whole tree, and no wave starts.

Links that are not used (`_retired`) are always inside a unit that is handed over, which will put others in their place.
A unit that grows keeps this true. It shrinks when a broker is settled; this broker may have stopped using its links to
that one since, for a hand-over that it did not complete, and then it must be taken in once more (`doubt`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from gapless.events import Event
from gapless.protocols.gapless.clients.client_side import ClientSide
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.members.contraction import Unit, units_at
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import is_unsettled
from gapless.protocols.gapless.messages import Body, Completed, Cuts, SideSubscription, Sync, TreeBody
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.contribution import (
    is_inside,
    side_advertisements,
    side_marks,
    side_subscriptions,
)  # fmt: skip
from gapless.protocols.gapless.recovery.estates import Estates
from gapless.protocols.gapless.recovery.handover import Handover
from gapless.protocols.gapless.recovery.takeover import Takeover
from gapless.protocols.gapless.retention.event_log import EventLog
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.routing_table import Link, RoutingTable

__all__ = ["Handovers", "Missing"]

COMPLETED_MAX = 1_000
"""How many hand-overs a broker remembers to have completed."""
TOLD_MAX = 16
"""How many hand-overs may come to nothing, one after the other, before the first is forgotten."""


class Missing(msgspec.Struct, frozen=True):
    """What a hand-over waits for."""

    core: tuple[str, ...]
    """The brokers on whose account it is made."""
    what: Literal["contribution", "completion"]
    members: tuple[str, ...]
    """Who has not contributed yet; or, where this broker has completed it and is to be settled, who has not."""


class Handovers:
    """All hand-overs at one broker."""

    def __init__(
        self,
        options: GaplessOptions,
        membership: Membership,
        table: RoutingTable,
        clients: ClientSide,
        journal: Journal,
        estates: Estates,
        log: EventLog,
        waves: Waves,
        *,
        send: Callable[[str, Body], None],
        send_tree: Callable[[Link, TreeBody], None],
        process: Callable[[Event, str, Cuts | None, dict[str, Session], int], None],
        replay: Callable[[Link, TreeBody], None],
        links_changed: Callable[[], None],
        settled: Callable[[dict[str, int]], None],
    ) -> None:
        self._name = membership.name
        self._options = options
        self._membership = membership
        self._table = table
        self._clients = clients
        self._journal = journal
        self._estates = estates
        self._log = log
        self._waves = waves
        self._send = send
        self._send_tree = send_tree
        self._process = process
        self._replay = replay
        self._links_changed = links_changed
        self._settled = settled
        self.under_way: dict[int, Handover] = {}
        """By the tag of the unit."""
        self._units: tuple[int, list[Unit]] = (-1, [])
        """As of a version of the statuses."""
        self._told: deque[tuple[Unit, list[SideSubscription]]] = deque(maxlen=TOLD_MAX)
        """What was told in those that came to nothing here, but that others may have completed; until the next is."""
        self._retired: dict[str, Link] = {}
        self._completed: dict[int, None] = {}
        self._taken_in: dict[int, dict[str, None]] = {}

    def follow(self) -> None:
        """Begin what the statuses ask for; drop what they no longer do."""
        current = {unit.tag: None for unit in self.units()}
        for tag in [tag for tag in self.under_way if tag not in current]:
            dropped = self.under_way.pop(tag)
            self._told.append((dropped.unit, dropped.own.subscriptions))
        while fresh := [u for u in self.units() if u.tag not in self._completed and u.tag not in self.under_way]:
            self._begin(fresh[0])
        assert not self._stray(), "a link that is not used has to be in a unit that is handed over"
        self._settle_table()

    def units(self) -> list[Unit]:
        """The units that this broker is a member of."""
        membership = self._membership
        if self._units[0] != membership.version:
            self._units = (membership.version, units_at(membership.overlay, membership.status, self._name))
        return self._units[1]

    def doubt(self, news: Mapping[str, int]) -> dict[str, int]:
        """Of those who are settled, by this news: who has to be taken in once more, with their new statuses.

        This broker has stopped using its links to them in a hand-over that it did not complete, so they are not.
        """
        if not self._stray():
            return {}
        busy = {name for handover in self.under_way.values() for name in handover.unit.core}
        return {name: status + 1 for name, status in news.items() if name in busy and not is_unsettled(status)}

    def missing(self) -> list[Missing]:
        """For each hand-over under way, and each that was completed here alone so far: who is waited for."""
        waiting = [
            Missing(unit.core, "contribution", tuple(member for member in unit.group if member not in handover.syncs))
            for handover in self.under_way.values()
            for unit in (handover.unit,)
        ]
        for unit in self.units():
            if self._name in unit.core and unit.tag in self._completed:
                waiting.append(Missing(unit.core, "completion", self._not_completed(unit)))
        return waiting

    def receive(self, peer: str, body: Sync) -> None:
        """A member's contribution."""
        handover = self.under_way.get(body.tag)
        if handover is not None and peer in handover.unit.group:
            handover.syncs[peer] = body
            self._complete_if_ready(handover)

    def note(self, events: Iterable[Event], via: str) -> None:
        """Events were processed; those from this broker's own side are not in the log that it sent."""
        for handover in self.under_way.values():
            if not is_inside(handover.unit, self._name, via):
                handover.late += events

    def receive_completed(self, peer: str, body: Completed) -> None:
        """A member has completed a hand-over; when all have, those who returned are settled."""
        self._taken_in.setdefault(body.tag, {})[peer] = None
        while len(self._taken_in) > COMPLETED_MAX:
            del self._taken_in[next(iter(self._taken_in))]
        for unit in self.units():
            if unit.tag == body.tag:
                self._settle_if_taken_in(unit)

    # ---- one of them --------------------------------------------------------------------------------------

    def _begin(self, unit: Unit) -> None:
        for peer, link in list(self._table.links.items()):
            if is_inside(unit, self._name, link.via):
                self._retired[peer] = self._table.links.pop(peer)
        self._waves.void(self._waves.number)
        self._table.settle(False)
        own = self._contribution(unit)
        handover = self.under_way[unit.tag] = Handover(
            unit, own, self._name, {item.name: dict(item.cuts) for item in self._table.subscriptions.values()}
        )
        self._tell(unit, own)
        self._complete_if_ready(handover)

    def _contribution(self, unit: Unit) -> Sync:
        def is_own(link: Link | None) -> bool:
            return link is None or not is_inside(unit, self._name, link.via)

        inside = {peer for peer, link in self._retired.items() if not is_own(link)}
        told = {
            item.ended or item.subscription: item
            for earlier, items in self._told
            if earlier.touches(unit)
            for item in items
        }
        return Sync(
            tag=unit.tag,
            core=list(unit.core),
            status=self._membership.select([*unit.core, *unit.group]),
            subscriptions=side_subscriptions(self._name, self._table, is_own, self._options.coverage, told),
            advertisements=side_advertisements(self._table, is_own, inside),
            marks=side_marks(self._table, is_own),
            log=self._log.share(lambda via: is_inside(unit, self._name, via)),
            passed=dict(self._table.passed),
            wave=self._waves.number,
            estates=self._estates.share(unit),
            owned={client: session.epoch for client, session in self._clients.sessions.items()},
            heirs=dict(self._estates.heirs),
            homes=self._estates.homes(),
        )

    def _complete_if_ready(self, handover: Handover) -> None:
        if not handover.is_ready:
            return
        unit = handover.unit
        del self.under_way[unit.tag]
        self._completed[unit.tag] = None
        for item in [item for item in self._told if item[0].touches(unit)]:
            self._told.remove(item)
        takeover = Takeover(
            self._name,
            self._membership.overlay,
            self._membership.status,
            handover,
            self._table,
            self._retired,
            self._clients,
            send=self._send_tree,
            process=self._process,
            journal=self._journal,
            log=self._log,
            with_logs="hand-over" not in self._options.switched_off,
        )
        takeover.run()
        for _, sync in handover.ordered():
            self._estates.learn(sync.heirs)
        for session in takeover.sessions.values():
            self._clients.secure(session)
        successors = {name: name if name in unit.group else self._membership.stand_in(name) for name in unit.core}
        self._estates.divided(takeover, self._name, successors)
        self._settle_table()
        self._waves.void(max(sync.wave for sync in handover.syncs.values()))
        self._links_changed()
        while len(self._completed) > COMPLETED_MAX:
            del self._completed[next(iter(self._completed))]
        if any(member in unit.group for member in unit.core):
            self._tell(unit, Completed(unit.tag))
        for peer, early in handover.early:
            link = self._table.links.get(peer)
            if link is not None and link.tag == unit.tag:
                self._replay(link, early)
        self._settle_if_taken_in(unit)

    def _settle_table(self) -> None:
        self._table.settle(not self.under_way)
        if not self.under_way:
            self._clients.go_on()

    def _settle_if_taken_in(self, unit: Unit) -> None:
        if self._name in unit.core and unit.tag in self._completed and not self._not_completed(unit):
            self._taken_in.pop(unit.tag, None)
            status = self._membership.status
            self._settled({name: status[name] + 1 for name in unit.core if name in unit.group})

    def _not_completed(self, unit: Unit) -> tuple[str, ...]:
        """The members that are not known to have completed, this one aside."""
        taken_in = self._taken_in.get(unit.tag, {})
        return tuple(member for member in unit.group if member != self._name and member not in taken_in)

    def _stray(self) -> list[Link]:
        """Links that are not used and that no hand-over would install again."""
        units = self.units()
        return [
            link for link in self._retired.values() if not any(is_inside(unit, self._name, link.via) for unit in units)
        ]

    def _tell(self, unit: Unit, body: Body) -> None:
        for member in unit.group:
            if member != self._name:
                self._send(member, body)

"""The hand-overs of one life of a broker: begins them, hears the other members, completes them, settles who returned.

What a hand-over is, `handover` explains; what its completion does, `takeover`. Here is when: a region that is new is
begun, one that has become another is dropped, and those who came back are settled when every member of their region
has completed. While one is under way the table sends nothing that assumes a whole tree, and no wave starts.

Links that are not used (`_retired`) are always inside a region that is handed over: the hand-over will replace them. A
region that grows keeps this true. It shrinks when a broker is settled. This broker may have stopped using its links to
that one since, for a hand-over that it did not complete; then it must be taken in once more (`doubt`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from gapless.events import Event
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.members.contraction import Region, regions_at
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import is_unsettled
from gapless.protocols.gapless.messages import Body, Completed, Cuts, SideSubscription, Sync, TreeBody
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.contribution import (
    is_inside,
    side_advertisements,
    side_known_cuts,
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
        clients: Desk,
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
        """By the tag of the region."""
        self._regions: tuple[int, list[Region]] = (-1, [])
        """As of a version of the statuses."""
        self._told: deque[tuple[Region, list[SideSubscription]]] = deque(maxlen=TOLD_MAX)
        """What was told in those that came to nothing here, but that others may have completed; until the next is."""
        self._retired: dict[str, Link] = {}
        self._completed: dict[int, None] = {}
        self._taken_in: dict[int, dict[str, None]] = {}

    def follow(self) -> None:
        """Begin what the statuses ask for; drop what they no longer do."""
        current = {region.tag: None for region in self.regions()}
        for tag in [tag for tag in self.under_way if tag not in current]:
            dropped = self.under_way.pop(tag)
            self._told.append((dropped.region, dropped.own.subscriptions))
        while fresh := [u for u in self.regions() if u.tag not in self._completed and u.tag not in self.under_way]:
            self._begin(fresh[0])
        assert not self._stray(), "a link that is not used has to be in a region that is handed over"
        self._settle_table()

    def regions(self) -> list[Region]:
        """The regions that this broker is a member of."""
        membership = self._membership
        if self._regions[0] != membership.version:
            self._regions = (membership.version, regions_at(membership.overlay, membership.status, self._name))
        return self._regions[1]

    def doubt(self, news: Mapping[str, int]) -> dict[str, int]:
        """Of those who are settled, by this news: who has to be taken in once more, with their new statuses.

        This broker has stopped using its links to them in a hand-over that it did not complete, so they are not.
        """
        if not self._stray():
            return {}
        busy = {name for handover in self.under_way.values() for name in handover.region.core}
        return {name: status + 1 for name, status in news.items() if name in busy and not is_unsettled(status)}

    def missing(self) -> list[Missing]:
        """For each hand-over under way, and each that was completed here alone so far: who is waited for."""
        waiting = [
            Missing(handover.region.core, "contribution", tuple(handover.missing()))
            for handover in self.under_way.values()
        ]
        for region in self.regions():
            if self._name in region.core and region.tag in self._completed:
                waiting.append(Missing(region.core, "completion", self._not_completed(region)))
        return waiting

    def receive(self, peer: str, body: Sync) -> None:
        """A member's contribution."""
        handover = self.under_way.get(body.tag)
        if handover is not None and peer in handover.region.group:
            handover.syncs[peer] = body
            self._complete_if_ready(handover)

    def note(self, events: Iterable[Event], via: str) -> None:
        """Events were processed; those from this broker's own side are not in the log that it sent."""
        for handover in self.under_way.values():
            if not is_inside(handover.region, self._name, via):
                handover.late += events

    def receive_completed(self, peer: str, body: Completed) -> None:
        """A member has completed a hand-over; when all have, those who returned are settled."""
        self._taken_in.setdefault(body.tag, {})[peer] = None
        while len(self._taken_in) > COMPLETED_MAX:
            del self._taken_in[next(iter(self._taken_in))]
        for region in self.regions():
            if region.tag == body.tag:
                self._settle_if_taken_in(region)

    # ---- one of them --------------------------------------------------------------------------------------

    def _begin(self, region: Region) -> None:
        for peer, link in list(self._table.links.items()):
            if is_inside(region, self._name, link.via):
                self._retired[peer] = self._table.links.pop(peer)
        self._waves.void(self._waves.number)
        self._table.settle(False)
        own = self._contribution(region)
        handover = self.under_way[region.tag] = Handover(
            region, own, self._name, {item.name: dict(item.cuts) for item in self._table.subscriptions.values()}
        )
        self._tell(region, own)
        self._complete_if_ready(handover)

    def _contribution(self, region: Region) -> Sync:
        def is_own(link: Link | None) -> bool:
            return link is None or not is_inside(region, self._name, link.via)

        inside = {peer for peer, link in self._retired.items() if not is_own(link)}
        told = {
            item.ended or item.subscription: item
            for earlier, items in self._told
            if earlier.touches(region)
            for item in items
        }
        return Sync(
            tag=region.tag,
            core=list(region.core),
            status=self._membership.select([*region.core, *region.group]),
            subscriptions=side_subscriptions(
                self._name, self._table, is_own, self._options.coverage, told, self._log.first
            ),
            advertisements=side_advertisements(self._table, is_own, inside),
            known_cuts=side_known_cuts(self._table, is_own),
            log=self._log.share(lambda via: is_inside(region, self._name, via)),
            passed=dict(self._table.passed),
            wave=self._waves.number,
            estates=self._estates.share(region),
            owned={client: session.epoch for client, session in self._clients.sessions.items()},
            heirs=dict(self._estates.heirs),
            homes=self._estates.homes(),
        )

    def _complete_if_ready(self, handover: Handover) -> None:
        if not handover.is_ready:
            return
        region = handover.region
        del self.under_way[region.tag]
        self._completed[region.tag] = None
        for item in [item for item in self._told if item[0].touches(region)]:
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
        successors = {name: name if name in region.group else self._membership.stand_in(name) for name in region.core}
        self._estates.divided(takeover, self._name, successors)
        self._settle_table()
        self._waves.void(max(sync.wave for sync in handover.syncs.values()))
        self._links_changed()
        while len(self._completed) > COMPLETED_MAX:
            del self._completed[next(iter(self._completed))]
        if any(member in region.group for member in region.core):
            self._tell(region, Completed(region.tag))
        for peer, early in handover.early:
            link = self._table.links.get(peer)
            if link is not None and link.tag == region.tag:
                self._replay(link, early)
        self._settle_if_taken_in(region)

    def _settle_table(self) -> None:
        self._table.settle(not self.under_way)
        if not self.under_way:
            self._clients.go_on()

    def _settle_if_taken_in(self, region: Region) -> None:
        if self._name in region.core and region.tag in self._completed and not self._not_completed(region):
            self._taken_in.pop(region.tag, None)
            status = self._membership.status
            self._settled({name: status[name] + 1 for name in region.core if name in region.group})

    def _not_completed(self, region: Region) -> tuple[str, ...]:
        """The members that are not known to have completed, this one aside."""
        taken_in = self._taken_in.get(region.tag, {})
        return tuple(member for member in region.group if member != self._name and member not in taken_in)

    def _stray(self) -> list[Link]:
        """Links that are not used and that no hand-over would install again."""
        regions = self.regions()
        return [
            link
            for link in self._retired.values()
            if not any(is_inside(region, self._name, link.via) for region in regions)
        ]

    def _tell(self, region: Region, body: Body) -> None:
        for member in region.group:
            if member != self._name:
                self._send(member, body)

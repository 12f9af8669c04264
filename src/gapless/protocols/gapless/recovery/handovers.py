"""When a hand-over begins, is dropped, is complete; and when those who returned are settled.

`handover` explains what a hand-over is, `plan` and `takeover` what its completion does. A broker begins one for each
new region, and drops it when the region has become another. While one is under way, the table sends nothing that
assumes a whole tree, and no wave starts. When every member of a region has completed, those who returned are settled.

`follow` only notes what the statuses ask for. `work` does it, in pieces, and the broker takes no other input meanwhile.

A link that is not used (`_retired`) always leads into a region that is handed over: the hand-over replaces it. A region
that grows keeps this true. A region shrinks when a broker is settled. This broker may have stopped using its link to
that one since, for a hand-over that it has not completed. Then the other must be taken in once more (`doubt`).
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from gapless.events import Event
from gapless.protocol import SetTimer
from gapless.protocol.carrying import events_of
from gapless.protocols.gapless.lives import Status, broker_of
from gapless.protocols.gapless.members.contraction import Region, regions_at
from gapless.protocols.gapless.members.status import FIRST, Statuses, is_unsettled, next_phase
from gapless.protocols.gapless.messages import Body, Completed, Estate, SideSubscription, Sync
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.recovery.contribution import (
    is_inside,
    side_advertisements,
    side_known_cuts,
    side_subscriptions,
)  # fmt: skip
from gapless.protocols.gapless.recovery.gone_round import when_gone_round
from gapless.protocols.gapless.recovery.handover import Handover, has_two_owners
from gapless.protocols.gapless.recovery.plan import TakeoverView, plan_in_pieces
from gapless.protocols.gapless.recovery.state import BrokerState, Outlets
from gapless.protocols.gapless.recovery.takeover import Takeover
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["Handovers", "Missing"]

COMPLETED_MAX = 1_000
"""How many hand-overs a broker remembers to have completed."""
RETURN_US = 1_000_000
"""How long after a broker's return those clients go home to it that were too busy at first."""
CALMING_US = 50_000
CALMING_MAX = 10
"""How often it is looked whether they stand still, and after what time."""
LOOKED_AT = 16
"""Small things that are looked at, for one unit of work."""
TOLD_MAX = 16
"""How many hand-overs may come to nothing, one after the other, before the first is forgotten."""


class Missing(msgspec.Struct, frozen=True):
    """What a hand-over waits for."""

    core: tuple[str, ...]
    """The brokers on whose account it is made."""
    what: Literal["contribution", "completion"]
    members: tuple[str, ...]
    """Who has not contributed yet. If this broker has completed it and waits to be settled: who has not completed."""


class Handovers:
    """All hand-overs at one broker."""

    def __init__(self, state: BrokerState, outlets: Outlets) -> None:
        self._state = state
        self._outlets = outlets
        self._name = state.name
        self._options = state.options
        self._membership = state.membership
        self._table = state.table
        self._clients = state.clients
        self._estates = state.estates
        self._log = state.log
        self._waves = state.waves
        self.under_way: dict[int, Handover] = {}
        """By the tag of the region."""
        self.has_work = False
        """Whether there may be something to do for `work`."""
        self._regions: tuple[int, list[Region]] = (-1, [])
        """As of a version of the statuses."""
        self._told: deque[tuple[Region, list[SideSubscription], int]] = deque(maxlen=TOLD_MAX)
        """What this broker contributed to hand-overs that it dropped, and where its log began then. Others may have
        completed them."""
        self._retired: dict[str, Link] = {}
        self._completed: dict[int, None] = {}
        self._taken_in: dict[int, dict[str, None]] = {}
        self._taken_in_here: dict[tuple[str, int], None] = {}
        """The brokers, in these lives, that were in the core of a hand-over that this broker has completed."""
        self._contested: dict[tuple[str, int], bool] = {}
        """What came from two sides, with the tag of the link, and whether that is still to be settled."""
        self._calming: dict[str, int] = {}
        """By broker: how often it was looked whether the clients that are to go back to it stand still."""

    def follow(self) -> None:
        """Begin what the statuses ask for; drop what they no longer do."""
        current = {region.tag: None for region in self.regions()}
        for tag in [tag for tag in self.under_way if tag not in current]:
            dropped = self.under_way.pop(tag)
            if dropped.is_told:
                self._told.append((dropped.region, dropped.own.subscriptions, dropped.log_first))
            self._clients.home.go_on_here()
        for region in self.regions():
            if region.tag not in self._completed and region.tag not in self.under_way:
                self._begin(region)
        assert not self._stray(), "a link that is not used has to be in a region that is handed over"
        self.has_work = True

    def work(self) -> Pieces[None]:
        """Contribute to what has begun, complete what is ready. No other input is taken before this is done."""
        self.has_work = False
        while True:
            if untold := [item for item in self.under_way.values() if not item.is_told]:
                yield from self._contribute(untold[0])
            elif ready := [item for item in self.under_way.values() if self._may_complete(item)]:
                yield from self._complete(ready[0])
            else:
                break
        yield from self._follow_up()

    def regions(self) -> list[Region]:
        """The regions that this broker is a member of."""
        membership = self._membership
        if self._regions[0] != membership.version:
            self._regions = (membership.version, regions_at(membership.overlay, membership.status, self._name))
        return self._regions[1]

    def doubt(self, news: Mapping[str, Status]) -> Statuses:
        """The brokers that this news calls settled and that must be taken in once more, with their new statuses.

        Their smallest story: b1 returns, b0 and b2 complete, and b1 is settled. But b0 has begun another hand-over
        around b1 before it hears that, and uses no link to b1. If b0 believed the news, no region would be left to
        install one.
        """
        if not self._stray():
            return {}
        busy = {name for handover in self.under_way.values() for name in handover.region.core}
        return {name: next_phase(status) for name, status in news.items() if name in busy and not is_unsettled(status)}

    def has_taken_in(self, broker: str, life: int) -> bool:
        """Whether this broker took part in taking that life in."""
        return (broker, life) in self._taken_in_here

    def missing(self) -> list[Missing]:
        """Whom each hand-over waits for: who has to contribute or, before this broker is settled, to complete."""
        waiting = [
            Missing(handover.region.core, "contribution", tuple(handover.missing()))
            for handover in self.under_way.values()
        ]
        for region in self.regions():
            if self._name in region.core and region.tag in self._completed:
                waiting.append(Missing(region.core, "completion", self._not_completed(region)))
        return waiting

    def _may_complete(self, handover: Handover) -> bool:
        return handover.is_ready and not self.unheld(handover) and self._membership.may_hand_over()

    def unheld(self, handover: Handover) -> list[str]:
        """The excluded brokers that have to return, since nobody has what they had confirmed.

        If no more than f of the core are out, or have lost their memory, a backup of each is among the members: if it
        has no journal, nothing was confirmed.
        """
        if self._options.partition != "wait" or "holders" in self._options.switched_off:
            return []
        if not handover.is_ready or handover.lost_count(self._membership.status) <= self._membership.f:
            return []
        return [name for name in handover.unheld(self._membership.status) if not self._membership.is_forgotten(name)]

    def receive(self, peer: str, body: Sync) -> None:
        """A member's contribution."""
        handover = self.under_way.get(body.tag)
        if handover is not None and peer in handover.region.group:
            handover.syncs[peer] = body
            self.has_work |= handover.is_ready

    def note(self, events: Iterable[Event], via: str) -> None:
        """Events were processed. Those from this broker's own side are late: the log that it sent lacks them."""
        for handover in self.under_way.values():
            if not is_inside(handover.region, self._name, via):
                handover.late += events

    def receive_completed(self, peer: str, body: Completed) -> None:
        """A member has completed a hand-over; when all have, those who returned are settled."""
        self._taken_in.setdefault(body.tag, {})[peer] = None
        forget_oldest(self._taken_in, COMPLETED_MAX)
        for region in self.regions():
            if region.tag == body.tag:
                self._settle_if_taken_in(region)

    # ---- one of them --------------------------------------------------------------------------------------

    def _begin(self, region: Region) -> None:
        for peer, link in list(self._table.links.items()):
            if is_inside(region, self._name, link.via):
                self._retired[peer] = self._table.links.pop(peer)
        for broker in region.core:
            self._estates.note_end(broker, self._waves.reached)
        self._waves.void(self._waves.number)
        self._table.set_intact(False)
        self.under_way[region.tag] = Handover(region, self._name)

    def _contribute(self, handover: Handover) -> Pieces[None]:
        """Tell the other members what is here: all of it, so nothing is late yet."""
        own = yield from self._contribution(handover.region)
        cuts = {item.name: {**item.former, **item.cuts} for item in self._table.subscriptions.values()}
        handover.tell(own, cuts, self._log.first)
        self._tell(handover.region, own)
        yield 1 + len(own.subscriptions) // LOOKED_AT

    def _contribution(self, region: Region) -> Pieces[Sync]:
        def is_own(link: Link | None) -> bool:
            return link is None or not is_inside(region, self._name, link.via)

        inside = {peer for peer, link in self._retired.items() if not is_own(link)}
        told = {
            item.ended or item.subscription: replace(item, log_from=max(0, item.log_from + first - self._log.first))
            for earlier, items, first in self._told
            if earlier.touches(region)
            for item in items
        }
        subscriptions = yield from side_subscriptions(
            self._name, self._table, is_own, self._options.coverage, told, self._log.first
        )
        estates = self._estates.share(region) + self._give_back(region)
        publishers = self._log.publishers()
        publishers.update(item.event.publisher for estate in estates for item in estate.admissions)
        known_cuts = side_known_cuts(self._table, is_own)
        may_be_lost = known_cuts if len(region.core) > self._membership.f else {}
        return Sync(
            tag=region.tag,
            core=list(region.core),
            status=self._membership.select([*region.core, *region.group]),
            subscriptions=subscriptions,
            advertisements=side_advertisements(self._table, is_own, inside),
            known_cuts=known_cuts,
            log=self._log.share(lambda via: is_inside(region, self._name, via)),
            passed=dict(self._table.passed),
            wave=self._waves.number,
            estates=estates,
            owned={client: session.epoch for client, session in self._clients.sessions.items()},
            heirs=dict(self._estates.heirs),
            homes=self._estates.homes(),
            inside={
                item.publisher: self._clients.done(item.publisher)
                for item in self._table.advertisements.values()
                if not is_own(item.origin)
            },
            gone_round=self._estates.gone_round(region),
            passed_over=self._estates.passed_over(region),
            lost={client: list(ranges) for client, ranges in self._estates.lost.items()},
            done={name: seq for name in sorted(publishers) if (seq := self._clients.done(name))},
            unreached=self._waves.unreached(),
            has_memory=self._state.has_memory,
            filters={name: self._table.subscriptions[name].filter.text for name in may_be_lost},
            gone=list(self._estates.gone),
            final=self._waves.final,
        )

    def _plan_return(self, broker: str, delay_us: int) -> None:
        if self._clients.home.belongs_to(broker):
            self._outlets.set_timer(SetTimer(f"return/{broker}", delay_us))

    def send_home(self, broker: str) -> None:
        """Clients that were too busy to go home in the hand-over in which their broker returned do so in another one.

        They stand still until their publications are out. Then all on the way to the broker are to be taken in once
        more, so that it and this one are members of one region.
        """
        way = self._membership.overlay.path(self._name, broker)[1:]
        status = {name: self._membership.status.get(name, FIRST) for name in way}
        is_possible = not self.under_way and not any(is_unsettled(value) for value in status.values())
        if not is_possible or not self._clients.home.belongs_to(broker, is_there=True):
            self._calming.pop(broker, None)
            self._plan_return(broker, RETURN_US)
        elif self._clients.home.hold_still(broker):
            self._calming.pop(broker, None)
            self._outlets.learn({name: next_phase(value) for name, value in status.items()})
        elif self._calming.get(broker, 0) < CALMING_MAX:
            self._calming[broker] = self._calming.get(broker, 0) + 1
            self._plan_return(broker, CALMING_US)
        else:
            del self._calming[broker]
            self._clients.home.go_on_here()
            self._plan_return(broker, RETURN_US)

    def contest(self, name: str, tag: int) -> None:
        """Something comes over a link that is known from another side (see `tree_course`).

        If this broker is taken in once more, those around it agree on who has the session.
        """
        self._contested.setdefault((name, tag), True)
        forget_oldest(self._contested, COMPLETED_MAX)
        self._settle_contested()

    def _settle_contested(self) -> None:
        if not self.under_way and any(self._contested.values()):
            self._contested = dict.fromkeys(self._contested, False)
            self._outlets.learn({self._name: next_phase(self._membership.status.get(self._name, FIRST))})

    def _give_back(self, region: Region) -> list[Estate]:
        """The sessions that brokers of the region get back, since they have returned.

        Each is told like the estate of a life that is over, so that all members keep it until it is held there. It is
        named after this hand-over. Its smallest story: b11 gets c2 back, and soon after, in another hand-over, c0.
        Before it has completed that one it says that c2 is held. Who takes that to be about both forgets c0.
        """
        found = []
        for broker in region.core:
            if broker in region.group and broker != self._name:
                records = self._clients.home.give_back(broker)
                if records:
                    found.append(Estate(broker, -region.tag, records, {}, []))
        return found

    def _complete(self, handover: Handover) -> Pieces[None]:
        region = handover.region
        del self.under_way[region.tag]
        self._completed[region.tag] = None
        for item in [item for item in self._told if item[0].touches(region)]:
            self._told.remove(item)
        view = TakeoverView(
            self._name,
            self._membership.overlay,
            self._membership.status,
            region,
            {item.name: item.filter for item in self._table.subscriptions.values()},
            with_logs="hand-over" not in self._options.switched_off,
            with_tombstones="tombstones" not in self._options.switched_off,
            window=self._options.window,
            f=self._membership.f,
            goes_on=self._options.partition != "wait",
        )
        contributions = handover.contributions()
        if view.goes_on and has_two_owners(contributions.values()):
            self._outlets.part(region.core)
        plan = yield from plan_in_pieces(view, contributions)
        without_us = [at for home, at in when_gone_round(contributions).items() if broker_of(home) == self._name]
        if without_us:
            self._outlets.forget_after(min(without_us))
        takeover = Takeover(self._state, self._outlets, handover, plan, self._retired)
        self._clients.gather()
        yield from takeover.apply()
        for sync in plan.contributions.values():
            self._estates.learn(sync.heirs)
        for session in takeover.sessions.values():
            self._clients.secure(session)
        changed = self._clients.gathered()
        for session in changed:
            self._clients.secure(session)
            yield 1 + (len(changed) + len(session.subscriptions)) // LOOKED_AT
        successors = {name: name if name in region.group else self._membership.stand_in(name) for name in region.core}
        self._estates.divided(plan, self._name, successors)
        if not self.under_way:
            self._clients.home.go_on_here()
        for broker in region.core:
            if broker in region.group and broker != self._name:
                self._plan_return(broker, RETURN_US)
        yield from self._follow_up()
        self._waves.void(max(sync.wave for sync in handover.syncs.values()))
        self._outlets.links_changed()
        forget_oldest(self._completed, COMPLETED_MAX)
        self._taken_in_here |= {(name, self._membership.life(name)): None for name in region.core}
        forget_oldest(self._taken_in_here, COMPLETED_MAX)
        if any(member in region.group for member in region.core):
            self._tell(region, Completed(region.tag))
        for peer, early in handover.early:
            link = self._table.links.get(peer)
            if link is not None and link.tag == region.tag:
                self._outlets.replay(link, early)
                yield 1 + len(events_of(early))
        self._settle_if_taken_in(region)

    def _follow_up(self) -> Pieces[None]:
        for subscription in self._table.set_intact(not self.under_way):
            self._table.answer(subscription)
            yield 1 + len(self._table.advertisements) // LOOKED_AT
        if not self.under_way:
            self._clients.publications.go_on()
            self._settle_contested()

    def _settle_if_taken_in(self, region: Region) -> None:
        if self._name in region.core and region.tag in self._completed and not self._not_completed(region):
            self._taken_in.pop(region.tag, None)
            status = self._membership.status
            self._outlets.learn({name: next_phase(status[name]) for name in region.core if name in region.group})

    def _not_completed(self, region: Region) -> tuple[str, ...]:
        """The other members of which this broker has not heard that they completed."""
        taken_in = self._taken_in.get(region.tag, {})
        return tuple(member for member in region.group if member != self._name and member not in taken_in)

    def _stray(self) -> list[Link]:
        """The links that this broker does not use and that no hand-over would replace."""
        regions = self.regions()
        return [
            link
            for link in self._retired.values()
            if not any(is_inside(region, self._name, link.via) for region in regions)
        ]

    def _tell(self, region: Region, body: Body) -> None:
        for member in region.group:
            if member != self._name:
                self._outlets.send(member, body)

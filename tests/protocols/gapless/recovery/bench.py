"""Small things to build hand-overs of: events, contributions, and the parts of one broker without its streams.

The unit tests of recovery were tried with these changes of its rules, one at a time. Below each is the first test that
noticed it, of those of this wing alone. A change that no test notices gets one.

`plan`:

- `is_first = view.name == next` as `is_first = view.name != next`:
  test_only_the_first_member_adopts_what_is_in_no_journal
- `if view.name in core: return MERGED` as `if view.name not in core: return MERGED`:
  test_the_lowest_in_rank_is_linked_to_all_others_and_they_to_it_alone
- `if share.is_given_back else ()` as `if not share.is_given_back else ()`:
  test_an_inherited_subscription_starts_with_the_first_event_of_publishers_that_came_after_it
- `if item.event.seq <= processed.get` as `if item.event.seq < processed.get`:
  test_what_nobody_is_known_to_have_processed_is_doubtful
- without `merge_cuts(processed, item.after)`:
  test_what_is_in_the_past_of_an_admission_was_processed
- `if awaited is None:` as `if awaited is not None:`:
  test_an_inherited_subscription_starts_with_the_first_event_of_publishers_that_came_after_it
- `if e.stamp > began` as `if e.stamp >= began`:
  test_after_a_blackout_what_has_the_stamp_with_which_a_subscription_began_was_there_before_it
- `.keys() | set(awaited)` as `.keys()`:
  test_an_inherited_subscription_starts_with_the_first_event_of_publishers_that_came_after_it
- `events if is_return else []` as `events`:
  test_after_a_blackout_an_inherited_subscription_starts_where_an_inherited_publisher_began_after_it
- `if view.name in core or via in core` as `if via in core`:
  test_one_who_has_returned_takes_its_own_place_again

`takeover`:

- `session.subscriptions.keys() - share.record.subscriptions.keys()` as `set()`:
  test_what_a_client_ended_elsewhere_is_over_where_its_session_is_inherited_again
- `is_new = event.seq > self` as `is_new = event.seq >= self`:
  test_what_never_came_by_the_heir_though_later_ones_did_is_in_its_log
- `event.seq >= self.plan.doubtful` as `event.seq > self.plan.doubtful`:
  test_what_the_dead_had_admitted_is_in_the_journal_of_the_heir
- without `own |= self.plan.adopted`:
  test_what_is_in_no_journal_is_noted_by_the_first_member_alone
- `if publisher not in told}` as `if publisher in told}`:
  test_cuts_fixed_since_the_contribution_are_told_over_the_new_link
- `if link is not advertisement.origin` as `if link is advertisement.origin`:
  test_an_advertisement_that_is_awaited_is_answered_when_all_behind_have
- `session.epoch >= share.record.epoch` as `session.epoch > share.record.epoch`:
  test_who_came_back_with_the_same_state_is_not_inherited_over
- `share.record.awaited.get(name) != []` as `share.record.awaited.get(name) == []`:
  test_an_inherited_subscription_without_any_cut_has_delivered_nothing_unless_it_had_all
- without `merge_cuts(self._table.passed, sync.passed)`:
  test_what_passed_any_member_has_passed_afterwards
- `share.record.client, NEVER) - 1)` as `share.record.client, NEVER))`:
  test_what_is_doubtful_waits_for_the_backups_of_the_heir
- `elif number and not is_new:` as `elif False:`:
  test_what_never_came_by_the_heir_though_later_ones_did_is_in_its_log
- `if other.name in shared or other.name in inherited or` as `if other.name in shared or`:
  test_an_inherited_subscription_does_not_take_the_cuts_of_one_that_covers_it_at_the_heir
- `if not self._table.is_complete: self._table.is_complete = True` as `if False: self._table.is_complete = True`:
  test_a_subscription_that_was_not_told_takes_the_cuts_of_what_covers_it

`handovers`:

- `len(handover.region.core) <= self` as `len(handover.region.core) < self`:
  test_journals_that_nobody_has_are_waited_for_only_where_more_than_f_are_dead
- `if name in busy and not is_unsettled(status)` as `if name in busy`:
  test_who_is_not_settled_anyway_is_not_doubted
- `if handover is not None and peer in handover.region.group:` as `if handover is not None:`:
  test_what_is_no_contribution_of_a_member_is_ignored
- `if not is_inside(handover.region, self._name, via):` as `if is_inside(handover.region, self._name, via):`:
  test_events_from_the_own_side_that_come_after_the_log_was_sent_are_late
- `if member != self._name and member not in taken_in` as `if member not in taken_in`:
  test_who_returned_is_settled_when_all_have_completed
- `if dropped.is_told:` as `if not dropped.is_told:`:
  test_one_that_has_become_another_is_dropped_and_told_again
- `Estate(broker, -region.tag,` as `Estate(broker, region.tag,`:
  test_a_session_that_is_given_back_is_named_after_the_hand_over
- `link.tag == region.tag: self._outlets.replay` as `link.tag != region.tag: self._outlets.replay`:
  test_what_came_early_over_a_new_link_is_taken_when_it_is_installed
- without `if earlier.touches(region)`:
  test_what_was_told_in_a_hand_over_that_was_dropped_concerns_only_those_that_touch_it
- `any(member in region.group for member in region.core)` as `not any(member in region.group for member in
  region.core)`:
  test_who_returned_is_settled_when_all_have_completed
- `not self.under_way and not any(is_unsettled` as `not any(is_unsettled`:
  test_clients_are_sent_home_only_while_nothing_else_is_handed_over
- `< CALMING_MAX` as `<= CALMING_MAX`:
  test_clients_that_do_not_calm_down_go_on_and_are_asked_again_later

`estates`:

- `if not self._membership.lives(broker, life) and` as `if`:
  test_only_estates_of_the_dead_of_the_region_are_shared
- `if number <= self._journal.held` as `if number < self._journal.held`:
  test_the_heir_says_so_at_once_and_again_when_its_backups_hold_it
- `else life - 1` as `else life`:
  test_it_is_known_what_had_reached_everyone_when_a_life_was_over
- `over >= life]` as `over > life]`:
  test_it_is_known_what_had_reached_everyone_when_a_life_was_over
- `inherited is not None and inherited != self._home` as `inherited is not None and inherited == self._home`:
  test_a_client_that_was_inherited_is_with_its_heir_or_unknown_if_that_died
- `and life not in plan.heirs:` as `and life in plan.heirs:`:
  test_what_was_found_of_the_region_and_is_not_in_the_plan_is_over
- `self._lost.pop(client, {})` as `self._lost.get(client, {})`:
  test_what_a_hand_over_found_to_be_lost_is_told_once
- `for client in sync.owned if member != name else ():` as `for client in sync.owned:`:
  test_a_session_that_is_held_here_is_not_elsewhere
- without `copy.is_found = True`:
  test_what_was_found_of_the_region_and_is_not_in_the_plan_is_over
- `if self._disk.is_there and message.original is not None:` as `if False:`:
  test_what_a_life_had_inherited_is_told_apart_in_history_where_there_are_disks

`inference`:

- `if known or cut < bound.following` as `if known or cut <= bound.following`:
  test_what_passed_on_its_way_counts_as_got
- `if place >= log_from[name]` as `if place > log_from[name]`:
  test_what_passed_on_its_way_counts_as_got
- `if entry.entered:` as `if True:`:
  test_what_passed_on_its_way_counts_as_got
- `self._passed.get(publisher, 0) + 1)` as `self._passed.get(publisher, 0))`:
  test_where_no_event_comes_after_those_the_next_one_is_the_cut
- `seq > self._passed.get(publisher, 0):` as `seq >= self._passed.get(publisher, 0):`:
  test_what_somebody_has_processed_needs_no_inference
- `Bound(min(bounds), following)` as `Bound(max(bounds), following)`:
  test_the_earliest_of_several_covering_ones_counts

`starting_cut`:

- `event.seq >= bound.least` as `event.seq > bound.least`:
  test_with_the_cut_no_effect_of_what_it_gets_is_left_out
- `past.get(other, 0) >= cut` as `past.get(other, 0) > cut`:
  test_the_cut_is_the_first_effect_of_what_the_subscription_gets
- without `and pattern.matches(event.attributes)`:
  test_what_the_covering_one_did_not_attract_or_the_subscription_does_not_match_is_no_start

`contribution`:

- `via == MERGED or via in` as `via in`:
  test_what_comes_from_the_dead_or_through_a_merged_log_is_inside
- `subscription.name in told or not (` as `not (`:
  test_what_was_told_before_is_told_again_also_if_it_has_ended_or_is_covered_by_now
- `(coverage and is_covered` as `(is_covered`:
  test_each_is_told_or_covered_by_one_that_is_and_came_before
- `{**item.former, **item.cuts}` as `{**item.cuts, **item.former}`:
  test_of_a_publisher_that_left_and_came_back_the_cut_that_counts_now_is_told
- `max(0, item.entered_at - log_first)` as `item.entered_at`:
  test_it_is_told_what_passed_before_a_subscription_came
- `and not is_own(subscription.origin) }` as `}`:
  test_the_cuts_of_the_others_subscriptions_are_told_and_none_of_the_own_side

`holes`:

- `range(gone[publisher] + 1,` as `range(gone[publisher],`:
  test_where_nothing_before_it_is_held_a_tombstone_comes_first
- `, last + 1):` as `, last):`:
  test_a_tombstone_stands_right_after_the_event_before_it_and_before_every_effect
- `if seq <= gone[publisher])` as `if seq < gone[publisher])`:
  test_a_tombstone_stands_right_after_the_event_before_it_and_before_every_effect
- without `held |= {broker_of(life) for sync in contributions.values() for life in sync.heirs}`:
  test_nobody_is_gone_where_a_member_has_the_journal_or_knows_the_heir
- `stamp = 1 + max(` as `stamp = max(`:
  test_a_tombstone_has_the_stamp_of_the_next_that_is_held
- `[min(later)]` as `[max(later)]`:
  test_a_tombstone_has_the_stamp_of_the_next_that_is_held

`persistence`:

- `self._entries[0][0] <= number` as `self._entries[0][0] < number`:
  test_the_own_journal_is_held_when_the_own_disk_has_it
- `self._answers[0][0] <= number` as `self._answers[0][0] < number`:
  test_an_answer_waits_until_the_disk_has_the_batch_that_it_is_about
- `if item[1] != peer` as `if item[1] == peer`:
  test_who_keeps_its_journal_elsewhere_is_not_answered
- `if name != state.name}` as `}`:
  test_what_an_earlier_life_left_is_taken_over_but_not_its_opinion_of_itself
- `if state.journal.number:` as `if not state.journal.number:`:
  test_the_next_life_gets_the_copies_and_the_own_journal_if_there_is_one
- `self._life > 0` as `self._life >= 0`:
  test_only_a_later_life_has_to_wait_for_what_may_be_on_disks
- `if self._life and state.membership.was_taken_in` as `if self._life`:
  test_what_was_found_is_dropped_once_this_life_is_taken_in
- `state.journal.number > self._noted` as `state.journal.number >= self._noted`:
  test_steps_that_keep_nothing_leave_nothing_to_wait_for
- without `state.waves.see(max(found.index.last, found.history.last))`:
  test_what_an_earlier_life_left_is_taken_over_but_not_its_opinion_of_itself
"""

from typing import Any

import msgspec

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocol import SetTimer
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.readings import Sources
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import Epoch
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.contraction import Region, regions_at
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import Statuses
from gapless.protocols.gapless.messages import Body, Cuts, LogEntry, SessionRecord, Sync, TreeBody
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.pieces import finish
from gapless.protocols.gapless.recovery.estates import Estates
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.state import BrokerState, Outlets
from gapless.protocols.gapless.retention.event_log import EventLog
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.parts.clock import Clock


def event(publisher: str, seq: int, x: int = 0) -> Event:
    """An event with one attribute."""
    return Event(publisher, seq, {"x": x})


def logged(*events: Event, entered: bool = True) -> list[LogEntry]:
    """A log in which all events came in through its owner, or none."""
    return [LogEntry(item, entered, None) for item in events]


def region_at(overlay: Overlay, status: Statuses, name: str) -> Region:
    """The only region that the broker is a member of."""
    [region] = regions_at(overlay, status, name)
    return region


def record(client: str, epoch: int = 1, **fields: Any) -> SessionRecord:
    """A session as backups know it; whatever is not given is empty."""
    empty = SessionRecord(client, Epoch(epoch), 1, {}, {}, {}, 0, {})
    return msgspec.structs.replace(empty, **fields)


def contribution(region: Region, **fields: Any) -> Sync:
    """A member's contribution; whatever is not given is empty."""
    empty = Sync(region.tag, list(region.core), {}, [], [], {}, [], {}, 0, [], {}, {}, {})
    return msgspec.structs.replace(empty, **fields)


class Bench:
    """The parts of one broker, and what it says."""

    def __init__(self, name: str, overlay: Overlay, life: int = 0) -> None:
        self.sent: list[tuple[str, Body]] = []
        self.along: list[tuple[str, TreeBody]] = []
        self.processed: list[tuple[Event, str, Cuts | None, int]] = []
        self.replayed: list[TreeBody] = []
        self.learned: list[Statuses] = []
        self.timers: list[SetTimer] = []
        self.to_clients: list[tuple[str, Any]] = []
        options = GaplessOptions(partition="go on")
        membership = Membership(name, life, overlay, 1)
        self.told: list[tuple[str, Cuts]] = []
        table = RoutingTable(
            send=lambda link, body: self.along.append((link.peer, body)),
            tell_client=lambda subscription, cuts: self.told.append((subscription.name, cuts)),
            advertisement_stable=lambda advertisement: None,
            log_end=lambda: self.state.log.end,
        )
        for peer in overlay.neighbours(name) if life == 0 else ():
            table.links[peer] = Link(peer, peer, 0)
        table.is_complete = life == 0
        clock = Clock()
        journal = Journal(lambda peer, body: self.sent.append((peer, body)), clock)
        log = EventLog()
        library = Library(
            name, 0, options.history_bytes, journal.admitted, overlay, 2, membership.excluded,
            send=lambda peer, message: None, set_timer=lambda effect: None,
        )  # fmt: skip
        waves = Waves(log.cut, lambda done: None, lambda: False, lambda: False, clock, library)
        home = name_life(name, life)
        estates = Estates(home, membership, journal, library.history, lambda body: self.sent.append(("*", body)))
        desk = Desk(
            home, options, table, journal, estates, Sources(library, waves, lambda: None), contacts=(name,),
            send=lambda client, message: self.to_clients.append((client, message)), set_timer=lambda effect: None,
            process=lambda events, number: None,
        )  # fmt: skip
        self.library = library
        self.state = BrokerState(options, membership, table, log, journal, waves, estates, desk)
        self.outlets = Outlets(
            send=lambda peer, body: self.sent.append((peer, body)),
            send_tree=lambda link, body: self.along.append((link.peer, body)),
            process=self._process,
            replay=lambda link, body: self.replayed.append(body),
            links_changed=lambda: None,
            set_timer=self.timers.append,
            learn=self.learned.append,
            forget_after=library.forget_after,
            part=lambda brokers: None,
        )
        self.handovers = Handovers(self.state, self.outlets)

    def _process(self, item: Event, via: str, after: Cuts | None, inherited: dict[str, Session], number: int) -> None:
        self.processed.append((item, via, after, number))
        passed = self.state.table.passed
        passed[item.publisher] = max(item.seq, passed.get(item.publisher, 0))

    def learn(self, status: Statuses) -> None:
        """Others' statuses change; the hand-overs follow, and do what there is to do."""
        self.state.membership.merge(status)
        self.handovers.follow()
        self.work()

    def work(self) -> None:
        """All that there is to do for hand-overs."""
        if self.handovers.has_work:
            finish(self.handovers.work())

    def syncs(self) -> list[tuple[str, Sync]]:
        """The contributions that it sent since they were asked for last."""
        found = [(peer, body) for peer, body in self.sent if isinstance(body, Sync)]
        self.sent = [item for item in self.sent if not isinstance(item[1], Sync)]
        return found

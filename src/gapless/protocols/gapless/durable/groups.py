"""The coordinator of a shared subscription, which reads it and assigns each event to one member.

The coordinator is the broker that owns the record. It reads like a subscription of a client, from the acknowledged
position on. **An event is delivered to a member only after the register contains the assignment** (`outstanding`), and
an acknowledgement takes effect only after the register contains it. So the next coordinator knows exactly which events
members may have, and how often each was delivered; it can assign all other events at once.

A member that is silent for `SILENT_US` is removed, and its events are assigned to others. The same happens to events
that it does not acknowledge in time, or returns with `nack`. Each assignment names the member's last report, and the
member ignores it if that report is older than `SILENT_US`: another member may have the event by then. This is safe
without synchronised clocks. After a change of the coordinator, members attach again and report their events.

`ItemState` describes the states of events and their transitions. A coordinator exists from `found_group` until its last
write, or until another broker owns the record.
"""

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.filters import parse
from gapless.positions import Position as Place
from gapless.protocols.gapless.claims import add_filter_cost
from gapless.protocols.gapless.client_messages import Attach, ClientSubscribe, Delivery, Position, Reached
from gapless.protocols.gapless.client_state import LocalSubscription, Session, SessionPhase
from gapless.protocols.gapless.durable.members import WAITING_MAX, assign, assign_all, part, say_to
from gapless.protocols.gapless.durable.membership import SILENT_US
from gapless.protocols.gapless.durable.messages import Deal, DealItem, DurableRecord, Item, Outstanding
from gapless.protocols.gapless.durable.progress import ProgressTracker
from gapless.protocols.gapless.durable.proposals import propose
from gapless.protocols.gapless.durable.state import (
    GROUP_CLIENT,
    Change,
    Group,
    GroupItem,
    GroupPhase,
    ItemState,
    Member,
    WriteGroup,
)
from gapless.protocols.gapless.identities import Attempt, Name
from gapless.protocols.gapless.local import remove_local, subscribe
from gapless.protocols.gapless.outbox import acknowledge
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.tombstones import first_lost, is_tombstone, publisher_of
from gapless.protocols.parts.ranges import without

__all__ = ["advance_groups", "end_group", "found_group", "written_group"]

# ---- begin and end -------------------------------------------------------------------------------------------


def found_group(s: BrokerState, record: DurableRecord) -> None:
    """Start coordinating a shared subscription that this broker owns now: read from its position, and wait for its
    members."""
    end_group(s, record.name)
    name, now, known = Name(GROUP_CLIENT + record.name, str(record.generation)), s.clock.now, record.progress
    group = s.durable.groups[record.name] = Group(record, name, now, ProgressTracker(record), dict(known.got))
    s.durable.due_groups[record.name] = None
    for each in known.outstanding:
        key = Item(each.publisher, each.seq)
        item = GroupItem(key, each.timestamp, state=ItemState.RETURNED, client=each.client, count=each.deliveries)
        group.by_key[key] = group.outstanding[key] = item
        if each.client:
            member = group.members.setdefault(each.client, Member(each.client, "", "", now))
            assign(group, member, item, now)
    session = Session(name.client, 0, Attach(0, None, 0, 0, 0, 0, 0), phase=SessionPhase.OPEN)
    s.sessions[name.client] = session
    add_filter_cost(session, name.local, parse(record.filter))
    call = ClientSubscribe(0, name.local, record.filter, known.position)
    subscribe(s, session, call, LocalSubscription(name, parse(record.filter), Attempt(0, 0)))


def end_group(s: BrokerState, name: str) -> None:
    """Stop coordinating a subscription that this broker no longer owns. Members are notified at their next report."""
    group = s.durable.groups.pop(name, None)
    if group is not None:
        remove_local(s, group.name)
        del s.sessions[group.name.client]


# ---- reading -------------------------------------------------------------------------------------------------


def advance_groups(s: BrokerState) -> bool:
    """Read and assign events, and write the changes to the register, for all groups that have changed."""
    due, s.durable.due_groups = s.durable.due_groups, {}
    is_busy = False
    for name in due:
        group = s.durable.groups.get(name)
        if group is not None:
            _read(s, group)
            _report_gaps(s, group)
            assign_all(s, group)
            is_busy |= _write(s, group)
    return is_busy


def _read(s: BrokerState, group: Group) -> None:
    session = s.sessions[group.name.client]
    while session.sent and len(group.progress) < WAITING_MAX:
        message = session.sent[0][0]
        acknowledge(s, session, message.number)
        if isinstance(message, Delivery):
            if is_tombstone(message.events.publisher):
                _take_loss(group, message.events)
            else:
                for event in message.events:
                    _take_event(group, event)
        elif isinstance(message, Position | Reached):
            if isinstance(message, Reached):
                _take_reached(group, message)
            group.progress.reached(message.position)
            group.advance()


def _report_gaps(s: BrokerState, group: Group) -> None:
    """Report losses to all current members, or to the next ones to join if there are none."""
    for member in group.members.values() if group.gaps or group.lost else ():
        if member.line and member.losses < group.losses:
            member.losses = group.losses
            deal = Deal(member.line, member.report, gaps=group.gaps, lost=group.lost, losses=group.losses)
            say_to(s, member.broker, group.record.name, member.client, deal)


def _take_event(group: Group, event: Event) -> None:
    record = group.record
    if event.seq <= group.read.get(event.publisher, 0) or event.stamp <= record.progress.position:
        return
    if record.after is not None and Place.after(event.stamp, event.publisher, event.seq) <= record.begin:
        return
    group.read[event.publisher] = event.seq
    key = Item(event.publisher, event.seq)
    item = group.by_key.get(key)
    if item is None:
        item = group.by_key[key] = GroupItem(key, event.stamp, event)
        if group.progress.record_arrival(key, event.stamp):
            group.fresh.append(item)
        else:
            group.mark_done(item)
        return
    item.event = event
    if item.state is ItemState.RETURNED:
        group.returned.append(item)
    if not item.is_lost:
        group.progress.record_arrival(key, event.stamp)


def _take_loss(group: Group, events: EventRun) -> None:
    publisher = publisher_of(events.publisher)
    _lose(group, publisher, first_lost(events), events.last)
    group.read[publisher] = max(events.last, group.read.get(publisher, 0))


def _take_reached(group: Group, message: Reached) -> None:
    """Process the numbers that a read has skipped because no broker has their events any more."""
    if message.gap is not None:
        group.gaps.append(message.gap)
        group.losses += 1
    for publisher, ranges in message.lost.items():
        for first, last in ranges:
            _lose(group, publisher, first, last)


def _lose(group: Group, publisher: str, first: int, last: int) -> None:
    """Mark unreadable events as lost, unless they are acknowledged or assigned to a member."""
    first = max(first, group.read.get(publisher, 0) + 1)
    taken = list(group.progress.earlier(publisher))
    for key, item in list(group.by_key.items()):
        if key.publisher != publisher or not first <= key.seq <= last:
            continue
        if item.event is None and not item.is_lost:
            item.is_lost = True
            group.progress.record_arrival(key, item.timestamp)
            if item.state is ItemState.RETURNED:
                group.mark_done(item)
                continue
        taken.append((item.key.seq, item.key.seq))
    for pair in without(sorted(taken), first, last):
        group.add_lost(publisher, *pair)


# ---- the register --------------------------------------------------------------------------------------------


def _write(s: BrokerState, group: Group) -> bool:
    """Write the group's changes to the register, unless a write is in flight. Return whether a write was started."""
    is_idle = not group.members and s.clock.now - group.idle_since >= SILENT_US
    if group.phase is not GroupPhase.IDLE or not (group.is_changed or is_idle):
        return False
    group.advance()
    group.phase, group.is_changed = GroupPhase.ENDING if is_idle else GroupPhase.WRITING, False
    for member in group.members.values():
        member.writing, member.assigned, member.acked = (member.assigned, member.acked), [], []
    outstanding = [
        Outstanding(*key, item.timestamp, item.client if item.state is ItemState.ASSIGNED else "", item.count)
        for key, item in group.outstanding.items()
    ]
    record = group.record
    propose(s, Change(WriteGroup(record.name, record.generation, group.progress.write(outstanding), is_idle)))
    return True


def written_group(s: BrokerState, command: WriteGroup, refusal: str) -> None:
    """Process the result of the last write; stop coordinating if another broker owns the record."""
    group = s.durable.groups.get(command.name)
    if group is None or group.record.generation != command.generation:
        return
    if refusal or group.phase is GroupPhase.ENDING:
        end_group(s, command.name)
        return
    group.phase = GroupPhase.IDLE
    s.durable.due_groups[command.name] = None
    for member in list(group.members.values()):
        (assigned, acked), member.writing = member.writing, ([], [])
        sent = [each for each in assigned if each.number in member.items]
        if sent or acked:
            since = min((each.since for each in sent), default=0)
            items = [_dealt(group, member.items[each.number]) for each in sent]
            say_to(s, member.broker, command.name, member.client, Deal(member.line, since, items, acked))
        if member.has_left:
            part(s, group, member)


def _dealt(group: Group, item: GroupItem) -> DealItem:
    assert item.event is not None, "only events that were read are reassigned"
    is_again = item.count > 1 or item.timestamp <= group.record.progress.delivered
    return DealItem(item.number, item.count, is_again, item.event)

"""The coordinator of a shared subscription: reads for all members, and delivers each event to one of them.

The coordinator is the broker that owns the record. It reads like a subscription of a client, from the acknowledged
position on. **An event is delivered to a member only after the register contains the assignment** (`outstanding`), and
an acknowledgement counts for a member only after the register contains it. So the next coordinator knows exactly which
events members may have, and how often each was delivered; unassigned events are delivered at once.

A member that is silent for `SILENT_US` is removed, and its events go to others. So do events that it does not
acknowledge in time, or returns with `nack`. A member ignores assignments that were made before a report which it sent
longer ago than that: another member may have them by then. This makes silence safe without synchronised clocks. After a
change of the coordinator, members attach again and report their events.

The states of events are in `ItemState`, with their transitions. A coordinator exists from `found_group` until its last
write, or until another broker owns the record.
"""

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.filters import parse
from gapless.positions import Position as Place
from gapless.protocols.gapless.claims import bear
from gapless.protocols.gapless.client_messages import Attach, ClientSubscribe, Delivery, Position, Reached
from gapless.protocols.gapless.client_state import LocalSubscription, Session, SessionPhase
from gapless.protocols.gapless.durable.members import WAITING_MAX, assign, assign_all, part, say_to, take_report
from gapless.protocols.gapless.durable.membership import SILENT_US
from gapless.protocols.gapless.durable.messages import Deal, DealItem, DurableRecord, Item, Outstanding
from gapless.protocols.gapless.durable.proposals import propose
from gapless.protocols.gapless.durable.state import (
    GROUP_CLIENT,
    Assignment,
    Change,
    Group,
    GroupItem,
    ItemState,
    Member,
    WriteGroup,
)
from gapless.protocols.gapless.identities import Attempt, Name
from gapless.protocols.gapless.local import remove_local, subscribe
from gapless.protocols.gapless.outbox import acknowledge
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.tombstones import first_lost, is_tombstone, publisher_of
from gapless.protocols.parts.ranges import Ranges, add_range, without

__all__ = ["advance_groups", "end_group", "found_group", "written_group"]

POSITION_STEP_US = 5_000_000
"""How far a position advances without acknowledgements before it is written."""


# ---- begin and end -------------------------------------------------------------------------------------------


def found_group(s: BrokerState, record: DurableRecord) -> None:
    """Start coordinating a shared subscription that this broker owns now: read from its position, and wait for the
    members."""
    end_group(s, record.name)
    name, now = Name(GROUP_CLIENT + record.name, str(record.generation)), s.clock.now
    group = s.durable.groups[record.name] = Group(record, name, now, position=record.position)
    group.reported_position, group.delivered = record.position, record.delivered
    group.got = {publisher: (seq, record.latest) for publisher, seq in record.got.items()}
    group.read = dict(record.got)
    group.done = {publisher: list(ranges) for publisher, ranges in record.done.items()}
    for each in record.outstanding:
        key = Item(each.publisher, each.seq)
        item = GroupItem(key, each.timestamp, state=ItemState.RETURNED, client=each.client, count=each.deliveries)
        group.by_key[key] = group.outstanding[key] = item
        if each.client:
            member = group.members.setdefault(each.client, Member(each.client, "", "", now))
            assign(group, member, item, now)
    session = Session(name.client, 0, Attach(0, None, 0, 0, 0, 0, 0), phase=SessionPhase.OPEN)
    s.sessions[name.client] = session
    bear(session, name.local, parse(record.filter))
    call = ClientSubscribe(0, name.local, record.filter, record.position)
    subscribe(s, session, call, LocalSubscription(name, parse(record.filter), Attempt(0, 0)))


def end_group(s: BrokerState, name: str) -> None:
    """Stop coordinating a subscription that this broker no longer owns. Members are notified when they report."""
    group = s.durable.groups.pop(name, None)
    if group is not None:
        remove_local(s, group.name)
        del s.sessions[group.name.client]


# ---- reading -------------------------------------------------------------------------------------------------


def advance_groups(s: BrokerState) -> bool:
    """Process reports and read events, assign events, and write the changes."""
    reports, is_busy = s.durable.reports, bool(s.durable.reports)
    while reports:
        peer, report = reports.popleft()
        take_report(s, peer, report)
    for name, group in list(s.durable.groups.items()):
        _read(s, group)
        _report_gaps(s, group)
        assign_all(s, group)
        is_busy |= _write(s, name, group)
    return is_busy


def _read(s: BrokerState, group: Group) -> None:
    session = s.sessions[group.name.client]
    while session.sent and len(group.order) < WAITING_MAX:
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
            if group.order and group.order[-1].is_position:
                group.order.pop()
            group.order.append(GroupItem(Item("", 0), message.position, is_position=True))
            _pass_done(group)
            group.is_changed |= group.position - group.reported_position >= POSITION_STEP_US


def _report_gaps(s: BrokerState, group: Group) -> None:
    """Report losses to all members; if there are none, to the next ones."""
    for member in group.members.values() if group.gaps or group.lost else ():
        if member.line and member.losses < group.losses:
            member.losses = group.losses
            deal = Deal(member.line, member.report, gaps=group.gaps, lost=group.lost, losses=group.losses)
            say_to(s, member.broker, group.record.name, member.client, deal)


def _take_event(group: Group, event: Event) -> None:
    record = group.record
    if event.seq <= group.read.get(event.publisher, 0) or event.stamp <= record.position:
        return
    if record.after is not None and Place.after(event.stamp, event.publisher, event.seq) <= record.begin:
        return
    group.read[event.publisher] = event.seq
    key = Item(event.publisher, event.seq)
    item = group.by_key.get(key)
    if item is None:
        item = group.by_key[key] = GroupItem(key, event.stamp, event)
        known = group.done.get(event.publisher, [])
        if any(first <= event.seq <= last for first, last in known):
            group.mark_done(item)
        else:
            group.fresh.append(item)
        while known and known[0][1] <= event.seq:
            known.pop(0)
    else:
        item.event = event
        if item.state is ItemState.RETURNED:
            group.returned.append(item)
        if item.is_lost:
            return
    group.order.append(item)


def _take_loss(group: Group, events: EventRun) -> None:
    """Process a publisher's lost numbers that were not read."""
    publisher = publisher_of(events.publisher)
    _lose(group, publisher, first_lost(events), events.last)
    group.read[publisher] = max(events.last, group.read.get(publisher, 0))


def _take_reached(group: Group, message: Reached) -> None:
    """Process numbers that were not read because no broker still holds their events."""
    if message.gap is not None:
        group.gaps.append(message.gap)
        group.losses += 1
    for publisher, ranges in message.lost.items():
        for first, last in ranges:
            _lose(group, publisher, first, last)


def _lose(group: Group, publisher: str, first: int, last: int) -> None:
    """Mark unreadable numbers as lost, unless they are acknowledged, or a member has them."""
    first = max(first, group.read.get(publisher, 0) + 1)
    taken = list(group.done.get(publisher, []))
    for item in [each for key, each in group.by_key.items() if key.publisher == publisher and first <= key.seq <= last]:
        if item.event is None and not item.is_lost:
            item.is_lost = True
            group.order.append(item)
            if item.state is ItemState.RETURNED:
                group.mark_done(item)
                continue
        taken.append((item.key.seq, item.key.seq))
    for pair in without(sorted(taken), first, last):
        group.add_lost(publisher, *pair)


def _pass_done(group: Group) -> None:
    """Compact acknowledged events without an unacknowledged one before them into a position and last numbers."""
    order = group.order
    while order and (order[0].is_position or order[0].state is ItemState.DONE):
        item = order.popleft()
        if not item.is_position:
            del group.by_key[item.key], group.acknowledged[item.key]
            group.got[item.key.publisher] = item.key.seq, item.timestamp
        elif item.timestamp > group.position:
            group.position = item.timestamp
            group.got = {name: last for name, last in group.got.items() if last[1] > item.timestamp}


# ---- the register --------------------------------------------------------------------------------------------


def _write(s: BrokerState, name: str, group: Group) -> bool:
    """Write changes to the register, one write at a time."""
    if group.writing is not None:
        return False
    is_idle = not group.members and s.clock.now - group.idle_since >= SILENT_US
    if not group.is_changed and not is_idle:
        return False
    _pass_done(group)
    group.is_changed, group.is_ending = False, is_idle
    group.writing, group.assigned = group.assigned, []
    group.acking = [(member, member.acked) for member in group.members.values() if member.acked]
    for member, _ in group.acking:
        member.acked = []
    group.reported_position = group.position
    outstanding = [
        Outstanding(*key, item.timestamp, item.client if item.state is ItemState.ASSIGNED else "", item.count)
        for key, item in group.outstanding.items()
    ]
    got = {publisher: seq for publisher, (seq, _) in group.got.items()}
    latest = max((timestamp for _, timestamp in group.got.values()), default=0)
    generation = group.record.generation
    write = WriteGroup(
        name, generation, group.position, got, latest, group.delivered, _done(group), outstanding, is_idle
    )
    propose(s, Change(write))
    return True


def _done(group: Group) -> Ranges:
    """Return the acknowledged events beyond an unacknowledged one."""
    found: Ranges = {publisher: list(ranges) for publisher, ranges in group.done.items() if ranges}
    for publisher, seq in sorted(group.acknowledged):
        add_range(found, publisher, seq, seq)
    return found


def written_group(s: BrokerState, change: Change) -> None:
    """Finish the last write, or stop if another broker owns the record."""
    command = change.command
    group = s.durable.groups.get(command.name)
    if group is None or not isinstance(command, WriteGroup) or group.record.generation != command.generation:
        return
    if change.refusal:
        end_group(s, command.name)
        return
    writing, acking = group.writing or [], group.acking
    group.writing, group.acking = None, []
    acked = {id(member): numbers for member, numbers in acking}
    for member in list(group.members.values()):
        sent = [each for each in writing if each.member is member and member.items.get(each.number) is each.item]
        numbers = acked.get(id(member), [])
        if sent or numbers:
            since = min((each.since for each in sent), default=0)
            items = [_dealt(group, each) for each in sent]
            say_to(s, member.broker, command.name, member.client, Deal(member.line, since, items, numbers))
        if member.is_leaving and not member.acked:
            part(s, group, member)
    if group.is_ending:
        end_group(s, command.name)


def _dealt(group: Group, assignment: Assignment) -> DealItem:
    item = assignment.item
    assert item.event is not None, "only what was read is assigned anew"
    is_again = item.count > 1 or item.timestamp <= group.record.delivered
    return DealItem(assignment.number, item.count, is_again, item.event)

"""The coordinator of a shared subscription: reads for all members, and delivers each event to one of them.

The coordinator is the broker that owns the record. It reads like a subscription of a client, from the acknowledged
position on. **An event is delivered to a member only after the register holds that it is** (`outstanding`), and an
acknowledgement counts for a member only after the register holds it. So whoever becomes the coordinator next knows
exactly which events may be with whom, and how often each was delivered; what nobody has is delivered at once.

A member that is not heard for `SILENT_US` is gone, and what it has goes to others; so does what it does not acknowledge
in time, or gives back. A member takes nothing that was assigned before a report which it sent longer ago than that: by
then it may be another's. That makes silence safe, without clocks that agree. After a change of the coordinator, members
attach again and say what they hold.

The states of events are in `ItemState`, with their transitions. A member of a line is there from its first report until
it leaves or is gone; a coordinator from `found_group` until its last write, or until somebody else owns the record.
"""

from gapless.events import Event
from gapless.filters import parse
from gapless.positions import Position as Place
from gapless.protocols.gapless.client_messages import Attach, ClientSubscribe, Delivery, Position, Reached
from gapless.protocols.gapless.durable.messages import (
    Deal,
    DealItem,
    DurableRecord,
    GroupDealt,
    GroupReport,
    Item,
    Outstanding,
    Ranges,
    Report,
)
from gapless.protocols.gapless.durable.proposals import propose
from gapless.protocols.gapless.durable.relay import receive_dealt
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
from gapless.protocols.gapless.state import BrokerState, LocalSubscription, Session, SessionPhase
from gapless.protocols.gapless.tombstones import first_lost, is_tombstone, publisher_of
from gapless.protocols.parts.ranges import add_range, add_ranges

__all__ = ["advance_groups", "end_group", "found_group", "tick_groups", "written_group"]

SILENT_US = 5_000_000
WINDOW = 32
"""So many events one member has ahead of what it acknowledges."""
STEP = 8
"""A member with so many more unacknowledged than another comes after it; else they take turns."""
WAITING_MAX = 10_000
"""How far a group reads beyond an event that nobody acknowledges."""
HOLDS_MAX = 10_000
POSITION_STEP_US = 5_000_000
"""How far a position moves, where nothing is acknowledged, before it is written."""


# ---- begin and end -------------------------------------------------------------------------------------------


def found_group(s: BrokerState, record: DurableRecord) -> None:
    """This broker owns the record of a shared subscription now: read from its position, and wait for the members."""
    end_group(s, record.name)
    name, now = Name(GROUP_CLIENT + record.name, str(record.generation)), s.clock.now
    group = s.durable.groups[record.name] = Group(record, name, now, position=record.position)
    group.told_position, group.delivered = record.position, record.delivered
    group.got = {publisher: (seq, record.latest) for publisher, seq in record.got.items()}
    group.read = dict(record.got)
    group.done = {publisher: list(ranges) for publisher, ranges in record.done.items()}
    for each in record.outstanding:
        key = Item(each.publisher, each.seq)
        item = GroupItem(key, each.timestamp, state=ItemState.RETURNED, client=each.client, count=each.deliveries)
        group.by_key[key] = group.outstanding[key] = item
        if each.client:
            member = group.members.setdefault(each.client, Member(each.client, "", "", now))
            _assign(group, member, item, now)
    session = Session(name.client, 0, Attach(0, None, 0, 0, 0, 0, 0), phase=SessionPhase.OPEN)
    s.sessions[name.client] = session
    call = ClientSubscribe(0, name.local, record.filter, record.position)
    subscribe(s, session, call, LocalSubscription(name, parse(record.filter), Attempt(0, 0)))


def end_group(s: BrokerState, name: str) -> None:
    """This broker does not own it any more: members hear so when they report."""
    group = s.durable.groups.pop(name, None)
    if group is not None:
        remove_local(s, group.name)
        del s.sessions[group.name.client]


# ---- what is read --------------------------------------------------------------------------------------------


def advance_groups(s: BrokerState) -> bool:
    """Take reports and what was read, assign events, and write what changed."""
    reports, is_busy = s.durable.reports, bool(s.durable.reports)
    while reports:
        peer, report = reports.popleft()
        _take_report(s, peer, report)
    for name, group in list(s.durable.groups.items()):
        _read(s, group)
        _tell_gaps(s, group)
        _assign_all(s, group)
        is_busy |= _write(s, name, group)
    return is_busy


def _read(s: BrokerState, group: Group) -> None:
    session = s.sessions[group.name.client]
    while session.sent and len(group.order) < WAITING_MAX:
        message = session.sent[0][0]
        acknowledge(s, session, message.number)
        if isinstance(message, Delivery):
            for event in message.events:
                _take_event(group, event)
        elif isinstance(message, Position | Reached):
            if isinstance(message, Reached):
                _take_reached(group, message)
            if group.order and group.order[-1].is_position:
                group.order.pop()
            group.order.append(GroupItem(Item("", 0), message.position, is_position=True))
            _pass_done(group)
            group.is_changed |= group.position - group.told_position >= POSITION_STEP_US


def _tell_gaps(s: BrokerState, group: Group) -> None:
    """Tell all members what nobody has any more; if there are none, the first that comes."""
    members = [member for member in group.members.values() if member.line]
    name = group.record.name
    if members and (group.gaps or group.lost):
        for member in members:
            for gap in group.gaps:
                _say(s, member.broker, name, member.client, Deal(member.line, member.report, gap=gap))
            if group.lost:
                _say(s, member.broker, name, member.client, Deal(member.line, member.report, lost=group.lost))
        group.gaps, group.lost = [], {}


def _take_event(group: Group, event: Event) -> None:
    record = group.record
    if is_tombstone(event.publisher):
        _take_loss(group, event)
        return
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
            _mark_done(group, item)
        else:
            group.fresh.append(item)
        while known and known[0][1] <= event.seq:
            known.pop(0)
    else:
        item.event = event
        if item.state is ItemState.RETURNED:
            group.returned.append(item)
    group.order.append(item)


def _take_loss(group: Group, event: Event) -> None:
    """The lost numbers of a publisher that were not read."""
    publisher = publisher_of(event.publisher)
    first = max(first_lost(event), group.read.get(publisher, 0) + 1)
    if first <= event.seq:
        group.read[publisher] = event.seq
        group.lost.setdefault(publisher, []).append((first, event.seq))


def _take_reached(group: Group, message: Reached) -> None:
    """Numbers that were not read because no broker has them any more."""
    if message.gap is not None:
        group.gaps.append(message.gap)
    add_ranges(group.lost, message.lost)


def _mark_done(group: Group, item: GroupItem) -> None:
    group.delivered = max(group.delivered, item.timestamp)
    item.state = ItemState.DONE
    group.outstanding.pop(item.key, None)
    group.acknowledged[item.key] = item


def _pass_done(group: Group) -> None:
    """Acknowledged events without an unacknowledged one before them become a position and last numbers."""
    order = group.order
    while order and (order[0].is_position or order[0].state is ItemState.DONE):
        item = order.popleft()
        if not item.is_position:
            del group.by_key[item.key], group.acknowledged[item.key]
            group.got[item.key.publisher] = item.key.seq, item.timestamp
        elif item.timestamp > group.position:
            group.position = item.timestamp
            group.got = {name: last for name, last in group.got.items() if last[1] > item.timestamp}


# ---- members -------------------------------------------------------------------------------------------------


def _take_report(s: BrokerState, peer: str, message: GroupReport) -> None:
    group, report = s.durable.groups.get(message.name), message.report
    member = None
    if group is not None and group.record.generation == message.generation:
        member = group.members.get(message.client)
        if report.holds is not None and (member is None or member.line != report.line):
            member = _join(s, group, peer, message.client, report)
    if group is None or member is None or member.line != report.line:
        is_gone = group is None or group.record.generation != message.generation
        _say(s, peer, message.name, message.client, Deal(report.line, 0, is_over=True, is_gone=is_gone))
        return
    member.heard, member.broker, member.report = s.clock.now, peer, report.number
    for number in report.acked:
        item = member.items.pop(number, None)
        if item is not None:
            _mark_done(group, item)
            member.acked.append(number)
            group.is_changed = True
    for number, delay_us in report.returned:
        if number in member.items:
            _return(group, member, number, s.clock.now + delay_us)
    for number in report.extended:
        if number in member.items:
            member.items[number].deadline = s.clock.now + group.record.redeliver_us
    if report.is_leaving:
        member.is_leaving = True
        _return_all(group, member, s.clock.now)
        if not member.acked and not any(each is member for each, _ in group.acking):
            _part(s, group, member)


def _join(s: BrokerState, group: Group, peer: str, client: str, report: Report) -> Member:
    """A member begins a line: it keeps what it holds, if that is its own; the rest of what it had goes to others."""
    now = s.clock.now
    old = group.members.get(client)
    member = group.members[client] = Member(client, peer, report.line, now)
    revoked = []
    for held in (report.holds or [])[:HOLDS_MAX]:
        item = group.by_key.get(Item(*held))
        if item is None or item.client != client:
            member.last += 1
            revoked.append(member.last)
        elif item.state is ItemState.DONE:
            member.last += 1
            member.acked.append(member.last)
            group.is_changed = True
        else:
            if old is not None:
                old.items.pop(item.number, None)
            if item in group.returned:
                group.returned.remove(item)
            _assign(group, member, item, now)
    if old is not None:
        _return_all(group, old, now)
    _say(s, peer, group.record.name, client, Deal(report.line, report.number, revoked=revoked))
    return member


def _return(group: Group, member: Member, number: int, not_before: int) -> None:
    """The event that a member was assigned under this number goes to another member, or later to the same."""
    item = member.items.pop(number)
    item.state, item.deadline = ItemState.RETURNED, not_before
    if item.event is not None:
        group.returned.append(item)


def _return_all(group: Group, member: Member, now: int) -> None:
    for number in list(member.items):
        _return(group, member, number, now)


def _part(s: BrokerState, group: Group, member: Member) -> None:
    """Forget a member, and say so."""
    del group.members[member.client]
    _say(s, member.broker, group.record.name, member.client, Deal(member.line, member.report, is_over=True))
    if not group.members:
        group.idle_since = s.clock.now - SILENT_US


def _say(s: BrokerState, broker: str, name: str, client: str, deal: Deal) -> None:
    if not broker:
        return  # it has not attached again after a change of the coordinator
    if broker == s.name:
        receive_dealt(s, s.name, GroupDealt(name, client, deal))
    else:
        s.send(broker, GroupDealt(name, client, deal))


# ---- assignments ---------------------------------------------------------------------------------------------


def _assign(group: Group, member: Member, item: GroupItem, now: int) -> None:
    member.last += 1
    item.state, item.client, item.number = ItemState.ASSIGNED, member.client, member.last
    item.deadline = now + group.record.redeliver_us
    member.items[member.last] = item


def _assign_all(s: BrokerState, group: Group) -> None:
    """Give out what can be given: what was returned first."""
    now = s.clock.now
    while not group.is_ending and (group.returned or group.fresh):
        item = next((each for each in group.returned if each.deadline <= now), None)
        if item is None and (not group.fresh or len(group.outstanding) >= WAITING_MAX):
            return
        member = _next_member(group, item)
        if member is None:
            return
        if item is None:
            item = group.fresh.popleft()
        else:
            group.returned.remove(item)
        item.count += 1
        group.turn += 1
        member.turn = group.turn
        group.outstanding[item.key] = item
        _assign(group, member, item, now)
        group.assigned.append(Assignment(item, member, item.number, member.report))
        group.is_changed = True


def _next_member(group: Group, item: GroupItem | None) -> Member | None:
    """The member that gets it: not the one that had it, if there is another."""
    free = [each for each in group.members.values() if each.line and not each.is_leaving and len(each.items) < WINDOW]
    others = [each for each in free if item is None or each.client != item.client]
    return min(others or free, key=lambda each: (len(each.items) // STEP, each.turn), default=None)


def tick_groups(s: BrokerState) -> None:
    """Take back what is overdue, and what members have that are gone; end the groups that nobody is in."""
    now = s.clock.now
    for group in s.durable.groups.values():
        for member in list(group.members.values()):
            if s.is_frozen:
                member.heard = now  # this broker has not listened
            elif now - member.heard > SILENT_US:
                _return_all(group, member, now)
                del group.members[member.client]
                group.idle_since = now
        for member in list(group.members.values()):
            _take_back_overdue(s, group, member, now)


def _take_back_overdue(s: BrokerState, group: Group, member: Member, now: int) -> None:
    overdue = [number for number, item in member.items.items() if item.deadline <= now]
    if not overdue:
        return
    if any(each is not member and each.line and not each.is_leaving for each in group.members.values()):
        for number in overdue:
            _return(group, member, number, now)
        _say(s, member.broker, group.record.name, member.client, Deal(member.line, member.report, revoked=overdue))
    else:
        for number in overdue:
            member.items[number].deadline = now + group.record.redeliver_us


# ---- the register --------------------------------------------------------------------------------------------


def _write(s: BrokerState, name: str, group: Group) -> bool:
    """Have the register hold what changed, one write at a time."""
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
    group.told_position = group.position
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
    """Acknowledged events beyond an unacknowledged one."""
    found: Ranges = {publisher: list(ranges) for publisher, ranges in group.done.items() if ranges}
    for publisher, seq in sorted(group.acknowledged):
        add_range(found, publisher, seq, seq)
    return found


def written_group(s: BrokerState, change: Change) -> None:
    """The register holds the last write, or another owns the record."""
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
            _say(s, member.broker, command.name, member.client, Deal(member.line, since, items, numbers))
        if member.is_leaving and not member.acked:
            _part(s, group, member)
    if group.is_ending:
        end_group(s, command.name)


def _dealt(group: Group, assignment: Assignment) -> DealItem:
    item = assignment.item
    assert item.event is not None, "only what was read is assigned anew"
    is_again = item.count > 1 or item.timestamp <= group.record.delivered
    return DealItem(assignment.number, item.count, is_again, item.event)

"""The members of a shared subscription: processes their reports, and assigns events to them.

A member of a line exists from its first report until it leaves or is removed.
"""

from collections import deque

from gapless.protocols.gapless.durable.membership import SILENT_US
from gapless.protocols.gapless.durable.messages import Deal, GroupDealt, GroupReport, Item, Report
from gapless.protocols.gapless.durable.state import Assignment, Group, GroupItem, GroupPhase, ItemState, Member
from gapless.protocols.gapless.state import BrokerState

__all__ = ["WAITING_MAX", "assign", "assign_all", "part", "receive_dealt", "say_to", "take_report", "tick_groups"]

WINDOW = 32
"""The maximum number of unacknowledged events of one member."""
STEP = 8
"""The minimum difference in unacknowledged events for which the member with fewer of them comes first. Otherwise
members take turns."""
WAITING_MAX = 10_000
"""The maximum number of events that a group reads beyond an unacknowledged one."""
HOLDS_MAX = 10_000


# ---- reports -------------------------------------------------------------------------------------------------


def take_report(s: BrokerState, peer: str, message: GroupReport) -> None:
    """Process a report of a member, or of a client that takes this broker for its coordinator by mistake."""
    group, report = s.durable.groups.get(message.name), message.report
    member = None
    is_current = group is not None and group.record.generation >= message.generation
    if not is_current and message.name in s.durable.proposals:  # other brokers can know the result before this one
        if report.holds is not None:
            s.durable.early.setdefault(message.name, {})[message.client] = peer, message
        return
    if group is not None and group.record.generation == message.generation:
        member = group.members.get(message.client)
        if report.holds is not None and (member is None or member.line != report.line):
            member = _join(s, group, peer, message.client, report)
    if group is None or member is None or member.line != report.line:
        say_to(s, peer, message.name, message.client, Deal(report.line, 0, is_over=True))
        return
    s.durable.due_groups[message.name] = None
    member.reported_at, member.broker, member.report = s.clock.now, peer, report.at
    member.losses = min(report.losses, group.losses)
    if all(each.losses == group.losses for each in group.members.values() if each.line):
        group.gaps, group.lost = [], {}
    for number in report.acked:
        item = member.items.pop(number, None)
        if item is not None:
            group.mark_done(item)
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
        if member.has_left:
            part(s, group, member)


def _join(s: BrokerState, group: Group, peer: str, client: str, report: Report) -> Member:
    """Begin a member's line. The member keeps the events it reports; its other assignments go to other members."""
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
            assign(group, member, item, now)
    if old is not None:
        _return_all(group, old, now)
    say_to(s, peer, group.record.name, client, Deal(report.line, report.at, revoked=revoked))
    return member


def _return(group: Group, member: Member, number: int, not_before: int) -> None:
    """Return an assignment of the member to the queue. Until `not_before` it is not assigned again."""
    item = member.items.pop(number)
    item.state, item.deadline = ItemState.RETURNED, not_before
    if item.event is not None:
        group.returned.append(item)
    elif item.is_lost:
        group.mark_done(item)
        group.add_lost(item.key.publisher, item.key.seq, item.key.seq)


def _return_all(group: Group, member: Member, now: int) -> None:
    for number in list(member.items):
        _return(group, member, number, now)


def part(s: BrokerState, group: Group, member: Member) -> None:
    """Remove a member from the group, and notify it."""
    del group.members[member.client]
    say_to(s, member.broker, group.record.name, member.client, Deal(member.line, member.report, is_over=True))
    if not group.members:
        group.idle_since = s.clock.now - SILENT_US


def say_to(s: BrokerState, broker: str, name: str, client: str, deal: Deal) -> None:
    if not broker:
        return  # the member has not attached again after a change of the coordinator
    if broker == s.name:
        receive_dealt(s, s.name, GroupDealt(name, client, deal))
    else:
        s.send(broker, GroupDealt(name, client, deal))


def receive_dealt(s: BrokerState, peer: str, message: GroupDealt) -> None:
    """Store a coordinator's message for a member that is attached here, until it can be forwarded (see `relay`)."""
    stamps = [item.event.stamp for item in message.deal.items]
    latest = max(stamps, default=0) if peer != s.name else 0
    s.durable.dealt.setdefault(message.client, deque()).append((latest, message))
    s.durable.dealt_at = min(s.durable.dealt_at, latest)


# ---- assignments ---------------------------------------------------------------------------------------------


def assign(group: Group, member: Member, item: GroupItem, now: int) -> None:
    """Assign an event to a member, with the next number of its line."""
    member.last += 1
    item.state, item.client, item.number = ItemState.ASSIGNED, member.client, member.last
    item.deadline = now + group.record.redeliver_us
    member.items[member.last] = item


def assign_all(s: BrokerState, group: Group) -> None:
    """Assign all events that can be assigned, returned ones first."""
    now = s.clock.now
    while group.phase is not GroupPhase.ENDING and (group.returned or group.fresh):
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
        assign(group, member, item, now)
        member.assigned.append(Assignment(item.number, member.report))
        group.is_changed = True


def _next_member(group: Group, item: GroupItem | None) -> Member | None:
    """Return the next member for an event: if possible not the one that had it before."""
    free = [each for each in group.members.values() if each.line and not each.is_leaving and len(each.items) < WINDOW]
    others = [each for each in free if item is None or each.client != item.client]
    return min(others or free, key=lambda each: (len(each.items) // STEP, each.turn), default=None)


def tick_groups(s: BrokerState) -> None:
    """Revoke overdue assignments and those of silent members; end groups without members."""
    now = s.clock.now
    for name, group in s.durable.groups.items():
        if group.returned or not group.members:
            s.durable.due_groups[name] = None
        for member in list(group.members.values()):
            if s.is_frozen:
                member.reported_at = now  # this broker itself was paused
            elif now - member.reported_at > SILENT_US:
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
        say_to(s, member.broker, group.record.name, member.client, Deal(member.line, member.report, revoked=overdue))
    else:
        for number in overdue:
            member.items[number].deadline = now + group.record.redeliver_us

"""Admits publications, replicates them to f other brokers, and releases them.

An admitted event gets a timestamp larger than those of all its causes, and an entry in the journal. The entry is sent
to the f nearest acceptors that are not suspected. When the present incarnations of any f acceptors hold it, the event
is **released**: processed here, forwarded, and confirmed to its publisher. Nothing is released during a handover.
"""

from gapless.event_runs import EventRun
from gapless.protocols.gapless.client_messages import Confirmed, LossKept
from gapless.protocols.gapless.client_state import Session
from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.events import process
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Entry, Held, Hold
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.tombstones import is_tombstone, publisher_of

__all__ = ["admit", "receive_held", "receive_hold", "release", "replicate", "settle"]


def settle(s: BrokerState) -> None:
    """Remove the entries that all brokers have processed from the window, and notify their publishers."""
    settled: dict[str, Entry] = {}
    while s.stable_entries < s.released and s.journal.entry(s.stable_entries).timestamp <= s.stable:
        entry = s.journal.entry(s.stable_entries)
        settled[entry.publisher] = entry
        s.window_used -= s.journal.cost_at(s.stable_entries)
        s.stable_entries += 1
    if settled and s.busy_clients:
        s.due |= Due.CALLS
    for publisher, entry in settled.items():
        session = s.sessions.get(publisher)
        if session is not None:
            session.settled = entry.last
            s.send_to(publisher, Confirmed(session.number, entry.last, entry.last, entry.first, entry.timestamp))


def admit(s: BrokerState, session: Session, events: EventRun) -> None:
    """Admit a client's events: append them to the journal with a new timestamp."""
    s.journal.append(Entry(events.stamped(s.clock.next())))
    s.window_used += s.journal.cost_at(len(s.journal) - 1)
    session.unreleased += 1
    s.measures.admitted(session, len(events), len(s.journal), s.clock.now)
    s.due |= Due.RELEASE
    for holder in s.holders:
        s.send(holder.broker, Hold(s.journal.last_entry(s.incarnation), False))


def replicate(s: BrokerState) -> None:
    """Choose the holders of the journal, and send new ones all entries that not all brokers have processed."""
    live = [name for name in s.topology.acceptors[s.name] if s.is_live(name) and name not in s.suspects]
    before, s.holders = s.holders, [s.current(name) for name in live[: s.topology.f]]
    for holder in s.holders:
        if holder not in before:
            s.send(holder.broker, Hold(s.journal.copy(s.incarnation, s.journal.place_after(s.stable)), True))
    s.held_by = {each: length for each, length in s.held_by.items() if s.is_current(each) and s.is_live(each.broker)}
    s.needed_holders = s.needed(s.topology.acceptors[s.name], s.topology.f)


def receive_hold(s: BrokerState, peer: str, message: Hold) -> None:
    """Store entries of a peer's journal, unless this broker has promised to seal that journal."""
    incarnation = Incarnation(*message.copy.incarnation)
    acceptor = s.acceptors.get(peer)
    if acceptor is None or incarnation.number < acceptor.promised_below:
        return
    journal = s.journals.setdefault(incarnation, Journal())
    if message.copy.start > len(journal) and not message.is_new:
        return  # sent to an earlier incarnation of this broker; the entries that it needs follow
    journal.extend_from(message.copy)
    s.clock.see(journal.last_timestamp)
    if acceptor.has_recovered:
        say(s, peer, Held(len(journal)))


def receive_held(s: BrokerState, peer: str, message: Held) -> None:
    """Record how much of this broker's journal a holder has."""
    incarnation = s.current(peer)
    if message.length > s.held_by.get(incarnation, 0):
        s.held_by[incarnation] = message.length
        s.due |= Due.RELEASE


def _confirmed_length(s: BrokerState) -> int:
    """Return how many entries are on this broker's disk and at f acceptors, or at all that may still return."""
    own = s.disk.own_length if s.disk.waits else len(s.journal)
    needed = s.needed_holders
    if not needed:
        return own
    if len(s.held_by) < needed:
        return 0
    return min(own, sorted(s.held_by.values(), reverse=True)[needed - 1])


def release(s: BrokerState) -> None:
    """Release the entries that enough acceptors hold."""
    if s.released == len(s.journal) or (s.stage is not Stage.JOINED and s.stage is not Stage.JOINING):
        return
    confirmed = _confirmed_length(s)
    if s.released < confirmed:
        s.due |= (Due.CALLS if s.busy_clients else 0) | (Due.ECHO if s.wave is not None else 0)
    while s.released < confirmed:
        events, cost = s.journal.entry(s.released).events, s.journal.cost_at(s.released)
        s.released += 1
        process(s, events, None, cost)
        session = s.sessions.get(publisher_of(events.publisher))
        if session is not None:
            session.unreleased -= 1
            if session.timed_entry is not None:
                s.measures.confirmed(session, s.released, s.clock.now)
            if is_tombstone(events.publisher):
                s.send_to(session.client, LossKept(session.number, events.last))
            else:
                facts = events.last, session.settled, events.first, events.stamp
                s.send_to(session.client, Confirmed(session.number, *facts))

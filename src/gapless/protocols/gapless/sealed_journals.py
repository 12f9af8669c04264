"""Sealed journals that this broker needs for a handover, a read, or the last number of a client.

The members of the electorate are asked for their copies. A recovering member answers afterwards, when it has what any f
+ 1 others had. While at most f fail, one of them has the whole journal. If all that may still return have answered, and
none of them has the whole journal, then no broker does, and the missing part is **given up**: the length of the journal
shrinks to the existing part, and all brokers learn that. Entries beyond it are lost (`losses`).
"""

from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import JournalCopy, JournalReply, RequestJournal
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.membership import learn
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = ["answer_journal", "ask_journals", "length_of", "receive_journal", "sealed_copy", "want"]


def length_of(s: BrokerState, incarnation: Incarnation) -> int | None:
    """Return the length of the journal; None if the journal is not sealed."""
    status = s.status(incarnation.broker)
    if incarnation.number >= status.sealed_below:
        return None
    return dict(status.lengths).get(incarnation.number, 0)


def sealed_copy(s: BrokerState, incarnation: Incarnation, length: int) -> JournalCopy | None:
    """Return the entries of a sealed journal that not all brokers have processed; None if this broker lacks any of
    them."""
    journal = s.journals.get(incarnation, Journal())
    return journal.copy(incarnation, journal.place_after(s.stable), length) if len(journal) >= length else None


def want(s: BrokerState, incarnation: Incarnation) -> None:
    """Start fetching the journal, which may show that no broker has all of it."""
    if incarnation not in s.wanted_journals:
        s.wanted_journals[incarnation] = set()
        s.due |= Due.REQUESTS
        _ask(s, incarnation)


def ask_journals(s: BrokerState) -> None:
    """Ask the members that have not answered for their copies."""
    for incarnation in list(s.wanted_journals):
        if not _is_settled(s, incarnation):
            _ask(s, incarnation)


def _is_settled(s: BrokerState, incarnation: Incarnation) -> bool:
    """Return whether the whole journal is here. If no other broker can have more of it, give up the missing
    part first."""
    length, held = length_of(s, incarnation) or 0, len(s.journals.get(incarnation, ()))
    answered = s.wanted_journals[incarnation]
    others = [name for name in s.topology.electorate(incarnation.broker) if name != s.name]
    if held < length and not all(s.is_forgotten(name) or s.current(name) in answered for name in others):
        return False
    del s.wanted_journals[incarnation]
    if held < length:
        status = s.status(incarnation.broker)
        lengths = {**dict(status.lengths), incarnation.number: held}
        learn(s, {incarnation.broker: status._replace(lengths=tuple(sorted(lengths.items())))})
    return True


def _ask(s: BrokerState, incarnation: Incarnation) -> None:
    for name in s.topology.electorate(incarnation.broker):
        if name != s.name and s.current(name) not in s.wanted_journals[incarnation]:
            s.send(name, RequestJournal(incarnation))


def answer_journal(s: BrokerState, peer: str, message: RequestJournal) -> None:
    """Send this broker's copy of the journal. A recovering broker answers later."""
    incarnation = Incarnation(*message.incarnation)
    length = length_of(s, incarnation)
    if length is not None and s.acceptors[incarnation.broker].has_recovered:
        journal = s.journals.get(incarnation, Journal())
        s.send(peer, JournalReply(journal.copy(incarnation, journal.place_after(s.stable), length)))


def receive_journal(s: BrokerState, peer: str, message: JournalReply) -> None:
    """Merge the copy of a member of the electorate."""
    incarnation = Incarnation(*message.copy.incarnation)
    journal = s.journals.setdefault(incarnation, Journal())
    journal.extend_from(message.copy)
    s.due |= Due.HANDOVER
    if incarnation in s.wanted_journals:
        s.wanted_journals[incarnation].add(s.current(peer))
        _is_settled(s, incarnation)

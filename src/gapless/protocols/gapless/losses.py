"""Losses beyond f: detected when the publisher returns, and reported in place of the lost events.

A publisher that moves reports its last confirmed number, and the number with which it attached to its last broker. The
sealed journal of that broker contains a last number of the publisher. The numbers in between are lost. So are numbers
beyond that journal that some broker has seen: acknowledgements of advertisements contain the publisher's largest number
that brokers have seen, and come from all of them.

Some lost events may be **settled**: all brokers had processed them, so active subscriptions have received them, and
only history reads miss them. The publisher knows up to which number, because confirmations contain it.

A special event, the **tombstone**, reports a loss. It is admitted like any event, before later events of the publisher.
Therefore f other brokers hold it, it arrives between earlier and later events, it is part of history, and
it arrives once. It goes to every subscription that overlaps with the advertised filters. The client subtracts the
numbers that have arrived or were never due.

*Why the report is exact.* The part of a lost journal that a broker processes is a prefix of it: a handover omits events
beyond the end of the journal, even if other members have processed them (`beyond_journals`). So a subscription lacks
exactly the numbers larger than the last one that arrived.
"""

from collections.abc import Iterable, Iterator

from gapless.event_runs import EventRun
from gapless.protocols.gapless.client_messages import ClientLost, Missing
from gapless.protocols.gapless.client_state import Session
from gapless.protocols.gapless.journal import admit
from gapless.protocols.gapless.membership_messages import AdvertisementRecord
from gapless.protocols.gapless.membership_state import Handover
from gapless.protocols.gapless.sealed_journals import length_of
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.tombstones import tombstone

__all__ = ["admit_loss", "beyond_journals", "note_missing", "without"]


def note_missing(s: BrokerState, session: Session, last: int) -> None:
    """Record that all numbers up to `last` were once admitted. Those not found are lost, and must be reported first."""
    client = session.client
    known = session.admitted
    if last <= known:
        return
    session.admitted = session.last_queued = last
    session.missing = (session.missing[0] if session.missing else known + 1), last
    s.seen[client] = max(s.seen.get(client, 0), last)
    left = [call.after(last) if isinstance(call, EventRun) else call for call in session.queue]
    session.queue.clear()
    session.queue.extend(call for call in left if call is not None)
    session.queued_events = sum(len(call) for call in session.queue if isinstance(call, EventRun))
    s.send_to(client, Missing(session.number, *session.missing, session.settled))


def admit_loss(s: BrokerState, session: Session, message: ClientLost) -> None:
    """Admit a tombstone with the filter that, according to the publisher, the lost events may have matched."""
    if session.missing and message.last >= session.missing[1]:
        session.missing = None
    s.busy_clients[session.client] = None
    s.due |= Due.CALLS
    facts = message.first, message.last, message.settled, message.filter, message.times
    admit(s, session, tombstone(session.client, *facts))


# ---- in handovers --------------------------------------------------------------------------------------------


def beyond_journals(
    s: BrokerState, handover: Handover, contributed: Iterable[AdvertisementRecord]
) -> dict[str, int]:  # fmt: skip
    """Return, for publishers whose broker is excluded, the last number that its journal still has, if that is known."""
    core = handover.region.core
    present = {each.name[0] for each in contributed}
    limits: dict[str, int] = {}
    for advertisement in s.advertisements.values():
        home, publisher = advertisement.home, advertisement.publisher
        if home.broker not in core or publisher in present or not s.is_dead(home):
            continue
        journal, length = s.journals.get(home), length_of(s, home)
        if length is None or (length and (journal is None or len(journal) < length)):
            continue
        last = journal.last_number(publisher) if journal is not None and length else 0
        if last is not None:
            limits[publisher] = max(last, advertisement.base, limits.get(publisher, 0))
    return limits


def without(events: Iterable[EventRun], limits: dict[str, int]) -> Iterator[EventRun]:
    """Yield the events whose numbers do not exceed the limits of their publishers."""
    for each in events:
        limit = limits.get(each.publisher)
        left = each if limit is None else each.upto(limit)
        if left is not None:
            yield left

"""What is lost when more brokers fail than may: found when its publisher comes back, and told in its place.

A publisher that moves brings the number up to which it was told that all is confirmed, and the number with which it
came to its last broker. The sealed journal of that broker tells the last number that it still has. What lies between is
lost. So is what some broker has seen beyond that journal: acknowledgements of advertisements carry what brokers have
seen of the publisher, and come from all of them.

Some of it may be **settled**: all brokers had processed it, so who was subscribed then has it. Only readers of history
miss that. The publisher knows up to which number, because its broker tells it with confirmations.

A loss is told by an event of its own, a **tombstone**. It is admitted like any event, before anything else that the
publisher says. So it is held by f others, comes in its place among all that comes before and after, is found in
history, and comes once. It goes to every subscription that overlaps with what the publisher had advertised. The client
leaves out of it what came, or was never due.

*Why that is exact.* What a broker processes of a lost part of a journal is a prefix of it: a handover leaves out what
other members have processed beyond the end of the journal (`beyond_journals`). So a subscription lacks what is larger
than the last number that came to it, and nothing else.
"""

from collections.abc import Iterable, Iterator

from gapless.events import EventRun, Events
from gapless.protocols.gapless.client_messages import ClientLost, Missing
from gapless.protocols.gapless.journal import admit
from gapless.protocols.gapless.messages import AdvertisementRecord
from gapless.protocols.gapless.sealed_journals import length_of
from gapless.protocols.gapless.state import BrokerState, Handover, Session
from gapless.protocols.gapless.tombstones import tombstone

__all__ = ["admit_loss", "beyond_journals", "note_missing", "without"]


def note_missing(s: BrokerState, session: Session, last: int) -> None:
    """All up to a number is known to have been admitted: what was not found of it is lost, and is told first."""
    client = session.client
    known = session.admitted
    if last <= known:
        return
    session.admitted = session.last_queued = last
    session.missing = (session.missing[0] if session.missing else known + 1), last
    s.seen[client] = max(s.seen.get(client, 0), last)
    left = [_behind(call, last) if isinstance(call, list | EventRun) else call for call in session.queue]
    session.queue.clear()
    session.queue.extend(call for call in left if call is not None)
    session.queued_events = sum(len(call) for call in session.queue if isinstance(call, list | EventRun))
    s.tell(client, Missing(session.number, *session.missing, session.settled))


def _behind(events: Events, last: int) -> Events | None:
    """Those with larger numbers."""
    if events[-1].seq <= last:
        return None
    return events if events[0].seq > last else events[last + 1 - events[0].seq :]


def admit_loss(s: BrokerState, session: Session, message: ClientLost) -> None:
    """The publisher says what may have matched: tell everybody who may lack it."""
    if session.missing and message.last >= session.missing[1]:
        session.missing = None
    s.busy_clients[session.client] = None
    admit(s, session, tombstone(session.client, message.first, message.last, message.settled, message.filter))


# ---- in handovers --------------------------------------------------------------------------------------------


def beyond_journals(
    s: BrokerState, handover: Handover, contributed: Iterable[AdvertisementRecord]
) -> dict[str, int]:  # fmt: skip
    """By publisher whose broker is over: the last number that its journal still has, if that can be said."""
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


def without(events: Iterable[Events], limits: dict[str, int]) -> Iterator[Events]:
    """The events without those that lie beyond these limits."""
    for each in events:
        publisher = each.publisher if isinstance(each, EventRun) else each[0].publisher
        limit = limits.get(publisher)
        if limit is None or each[-1].seq <= limit:
            yield each
        elif each[0].seq <= limit:
            yield each[: limit + 1 - each[0].seq]

"""The certificate: `false-past`.

The table `pasts` claims, for each event, how far its past reaches for each other publisher, and says so only
where it reaches further than for the same publisher's previous event. It is held against the pasts computed from
`history`. There is a `false-past` of event e about publisher q

- if a row claims a number that is not the highest of q in the past of e;
- if there is no row, though the past of e reaches further for q than that of its publisher's previous event;
- if a row is about e's own publisher (its earlier events are in the past by their numbers, and are not written)
  or about an event that was never published.

A row that repeats what the previous event knew already is superfluous, but no lie. Each wrong or missing row is
reported once: later events are held against the truth, not against the lie.
"""

from collections.abc import Iterator

from gapless.checkers.evidence import Evidence
from gapless.checkers.happens_before import HappensBefore
from gapless.checkers.verdict import Anomaly
from gapless.trace import EventRow

__all__ = ["find_false_pasts"]


def find_false_pasts(evidence: Evidence, relation: HappensBefore) -> Iterator[Anomaly]:
    """One for each entry of the certificate that is wrong or missing."""
    nothing: dict[str, int] = {}
    for event_id, event in evidence.events.items():
        claimed, advanced = evidence.pasts.get(event_id, nothing), relation.advances[event_id]
        if claimed != advanced:
            yield from _differences(event, claimed, advanced, relation.pasts[event_id])
    for event_id, claimed in evidence.pasts.items():
        if event_id not in evidence.events:
            for publisher, seq in claimed.items():
                yield _about_nothing(event_id, publisher, seq)


def _differences(
    event: EventRow, claimed: dict[str, int], advanced: dict[str, int], past: dict[str, int]
) -> Iterator[Anomaly]:
    for publisher in sorted(claimed.keys() | advanced.keys()):
        truth = past.get(publisher, 0)
        if publisher == event.publisher:
            yield _false_past(event, publisher, f"has an entry for its own publisher, {publisher}")
        elif publisher not in claimed:
            yield _false_past(event, publisher, f"has no entry for {publisher}, but reaches up to {publisher}:{truth}")
        elif claimed[publisher] != truth:
            up_to = f"up to {publisher}:{truth}" if truth else "nothing of it"
            said = f"{publisher}:{claimed[publisher]}"
            yield _false_past(event, publisher, f"is said to reach up to {said}, but reaches {up_to}")


def _false_past(event: EventRow, publisher: str, flaw: str) -> Anomaly:
    return Anomaly(
        kind="false-past",
        client=event.publisher,
        subscription=None,
        event=event.event_id,
        publisher=publisher,
        witness=(event.event_id,),
        message=f"the past of {event.event_id} {flaw}",
    )


def _about_nothing(event_id: str, publisher: str, seq: int) -> Anomaly:
    return Anomaly(
        kind="false-past",
        client=event_id.rpartition(":")[0],
        subscription=None,
        event=event_id,
        publisher=publisher,
        witness=(event_id,),
        message=f"the past of {event_id} is said to reach up to {publisher}:{seq}, but it was never published",
    )

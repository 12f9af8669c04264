"""Checks causal completeness (the rest of definition 2 of the LoCaPS paper), and finds `missing-effect`.

Let H be the accepted history of a subscription S. Event e of publisher p is a `missing-effect` if

- it matches S and never came;
- it is before the starting cut of p, or p has no starting cut, so that it is neither a gap nor
  unobserved;
- some c in H happens before it;
- it is not a `late-start`;
- it is not after the end of p, as far as the end is known: where p has an ending cut, e is at or
  before it; where S has ended without one, H has an event of p; where S is active and p has no
  starting cut, the run is quiet, so that nothing more can arrive.

The protocol chooses the starting cut. This rule limits the choice: if it starts early enough to
deliver a cause, it must start early enough to deliver all effects.

Pasts grow along a publisher's events. So c happens before e for some c in H if and only if the past
of e reaches the lowest number that H has of some publisher. The search goes back from the last
missing event of p, and ends at the first that has no cause in H.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from gapless.checkers.acceptance import History
from gapless.checkers.causal_chain import Chains
from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly

__all__ = ["cause_of", "find_missing_effects"]


def find_missing_effects(
    history: History,
    before_start: list[Publication],
    quiesced: bool,
    accepted: Sequence[Publication] = (),
    chains: Chains | None = None,
) -> Iterator[Anomaly]:
    """Yield an anomaly for each missing effect of an accepted event that is before the start of its publisher.

    With `chains`, the proof starts at an event of `accepted`, the whole history.
    """
    if not history.accepted:
        return
    for _, group in groupby(before_start, attrgetter("publisher")):
        effects: list[tuple[Publication, str]] = []
        for event in reversed([event for event in group if history.is_reached(event, quiesced)]):
            cause = cause_of(history, event)
            if cause is None:
                break
            effects.append((event, cause))
        for event, cause in reversed(effects):
            chain = chains.shortest(accepted, event) if chains is not None else None
            yield _missing_effect(history, event, chain or (cause, event.event_id))


def cause_of(history: History, event: Publication) -> str | None:
    """Return an event in the history that happens before this one, or None."""
    past = event.past
    for publisher, seq in history.lowest.items():
        if past.get(publisher, 0) >= seq:
            return f"{publisher}:{seq}"
    return None


def _missing_effect(history: History, missing: Publication, chain: tuple[str, ...]) -> Anomaly:
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    start = history.start(publisher)
    where = f"no event of {publisher} was ever delivered" if start is None else f"it starts at {publisher}:{start} only"
    return Anomaly(
        kind="missing-effect",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=chain,
        message=f"{client} was delivered {chain[0]} for {subscription}, but not its effect {missing.event_id}: {where}",
    )

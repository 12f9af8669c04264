"""Causal completeness (the rest of definition 2 of the LoCaPS paper): `missing-effect`.

Let H be the accepted history of a subscription S. Event e of publisher p is a `missing-effect` if

- it matches S and never came;
- it stands before the starting cut of p, or p has no starting cut, so that it is neither a gap nor unobserved;
- some c in H happens before it;
- it is no `late-start`;
- it is not after the end of p, as far as the end is known: where p has an ending cut, e stands at or before it;
  where S has ended without one, H has an event of p; where S lives and p has no starting cut, the run is quiet,
  so that nothing can come any more.

The starting cut is the protocol's own choice. This rule says which choices it has: if it starts early enough to
deliver a cause, it starts early enough to deliver all effects.

Pasts grow along a publisher's events. So c happens before e for some c in H if and only if the past of e reaches
the lowest number that H has of some publisher, and going back from the last missing event of p, the first that
has no cause in H ends the search.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from gapless.checkers.acceptance import AcceptedHistory
from gapless.checkers.causal_order import CausalOrder
from gapless.checkers.verdict import Anomaly
from gapless.trace import EventRow

__all__ = ["find_missing_effects"]


def find_missing_effects(
    history: AcceptedHistory, before_start: list[EventRow], order: CausalOrder, quiesced: bool
) -> Iterator[Anomaly]:
    """One for each effect of something in the history that is missing before the start of its publisher."""
    if not history.events:
        return
    for _, group in groupby(before_start, attrgetter("publisher")):
        missing = [event for event in group if history.is_reached(event, quiesced)]
        effects = []
        for event in reversed(missing):
            past = order.relation.pasts[event.event_id]
            if not any(past.get(publisher, 0) >= seq for publisher, seq in history.lowest.items()):
                break
            effects.append(event)
        for event in reversed(effects):
            yield _missing_effect(history, event, order)


def _missing_effect(history: AcceptedHistory, missing: EventRow, order: CausalOrder) -> Anomaly:
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    chain = order.chains.shortest(history.events, missing)
    start = history.start(publisher)
    where = f"nothing of {publisher} ever came" if start is None else f"it starts at {publisher}:{start} only"
    return Anomaly(
        kind="missing-effect",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=chain,
        message=f"{client} was delivered {chain[0]} for {subscription}, but not its effect {missing.event_id}: {where}",
    )

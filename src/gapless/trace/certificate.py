"""Computes the certificate of causality: for each event, its past by publisher.

The past of an event is everything that happens before it. Publishers number their events in order,
so a past contains, of each publisher, exactly the events up to some number: it is a vector.

A client's knowledge is such a vector too. It only matters when the client publishes; so deliveries
are recorded, the latest of each publisher, and merged at the next publication. They are merged
latest first: under causal delivery the latest ones include most of the others in their pasts, and
known entries are skipped.

A publication's rows are the entries that advanced since the same publisher's previous publication.
The publisher's own entry is never written: the past of its event n always contains its own events
up to n - 1.
"""

__all__ = ["KnownPasts"]


class KnownPasts:
    """Processes the actions of all clients, in an order in which each publication precedes its deliveries."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}
        self._fresh: dict[str, dict[str, int]] = {}
        self._pasts: dict[tuple[str, int], dict[str, int]] = {}

    def deliver(self, client: str, publisher: str, seq: int) -> None:
        """Record that the event was delivered to the client."""
        if client == publisher:
            return
        fresh = self._fresh.setdefault(client, {})
        before = fresh.pop(publisher, 0)  # removed first, so that the latest delivery becomes the last entry
        fresh[publisher] = before if before > seq else seq

    def publish(self, client: str, seq: int) -> dict[str, int]:
        """Return the entries that advanced since the client's previous publication."""
        fresh = self._fresh.pop(client, None)
        before = self._known.setdefault(client, {})
        if not fresh:
            self._pasts[client, seq] = before
            return {}
        after = self._merged(before, fresh)
        after.pop(client, None)
        self._known[client] = self._pasts[client, seq] = after
        return {publisher: last for publisher, last in sorted(after.items()) if last > before.get(publisher, 0)}

    def _merged(self, before: dict[str, int], fresh: dict[str, int]) -> dict[str, int]:
        known = before.copy()
        for publisher, seq in reversed(fresh.items()):
            if seq <= known.get(publisher, 0):
                continue
            known[publisher] = seq
            for other, last in self._pasts.get((publisher, seq), {}).items():
                if last > known.get(other, 0):
                    known[other] = last
        return known

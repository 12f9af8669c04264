"""What an operator wants to know of a broker."""

from collections.abc import Iterable
from heapq import nlargest
from itertools import islice
from typing import Any

from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.state import BrokerState

__all__ = ["BEHIND_SHOWN", "SHOWN", "overview"]

SHOWN = 10
"""How many of those that a wave waits for, or that lie behind most, an operator is told."""
BEHIND_SHOWN = 100
"""How many of those that are served out of history an operator is told."""


def overview(
    state: BrokerState, handovers: Handovers, life: int, near: Iterable[str], *, is_away: bool = False
) -> dict[str, Any]:
    """Who is out, who stands in, what is going on."""
    membership, clients, waves = state.membership, state.clients, state.waves
    sessions = clients.sessions
    missing = waves.missing(clients.released)
    waited_for = [session for session in sessions.values() if session.outbox.length]
    lagging = nlargest(SHOWN, waited_for, key=lambda session: session.outbox.length)
    return {
        "life": life,
        "settled": membership.was_taken_in,
        "stand_ins": {name: membership.stand_in(name) for name in near if membership.excluded(name)},
        "hand_overs": [
            {"of": list(item.region.core), "waits_for": item.missing(), "needs_back": handovers.unheld(item)}
            for item in handovers.under_way.values()
        ],
        "stays_away": is_away,
        "parted": list(membership.parted),
        "unheard": membership.unheard(),
        "cut_off": not clients.is_serving,
        "not_heard": [] if clients.is_serving else membership.missing(),
        "sessions": len(sessions),
        "clients": sum(not session.is_away for session in sessions.values()),
        "wave": waves.number,
        "waits_for": missing[:SHOWN],
        "held_up_by": {
            name: {"owes": waves.owed(name), "took": clients.released(name)}
            for name in [name for name in missing if name in sessions][:SHOWN]
        },
        "lag_ms": clients.lagging.lag_ms,
        "lag": {session.client: session.outbox.length for session in lagging},
        "put_off": dict(islice(clients.put_off().items(), SHOWN)),
        "away": [session.client for session in waited_for if session.is_away][:SHOWN],
        "behind": list(islice((session.client for session in sessions.values() if session.behind >= 0), BEHIND_SHOWN)),
        "history": clients.readings.told(SHOWN),
        "published": clients.publications.published,
        "delivered": clients.delivered,
        "confirming": clients.publications.confirming.told(),
        "taking": clients.taking.told(),
    }

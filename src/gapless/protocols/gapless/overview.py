"""The report of a broker for operators: excluded brokers, operations in progress, and their causes of delay."""

from collections.abc import Iterator
from heapq import nlargest
from itertools import islice
from typing import Any

from gapless.protocols.gapless.client_state import Reading, Session
from gapless.protocols.gapless.deleting import is_deleting
from gapless.protocols.gapless.durable import register
from gapless.protocols.gapless.durable.state import GROUP_CLIENT
from gapless.protocols.gapless.handover import missing_journals, unsealed
from gapless.protocols.gapless.history import sources
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.outbox import has_room
from gapless.protocols.gapless.positions import root
from gapless.protocols.gapless.state import BrokerState

__all__ = ["SHOWN", "overview"]

SHOWN = 10
"""The maximum number of clients, subscriptions or journals of each kind in the report."""
LAGGING_SHOWN = 100
"""The maximum number of clients served from history in the report."""


def overview(s: BrokerState) -> dict[str, Any]:
    """Return the excluded brokers, the operations in progress, and what these are waiting for."""
    sessions = [session for session in s.sessions.values() if not session.client.startswith(GROUP_CLIENT)]
    waited_for = [session for session in sessions if session.in_flight + session.waiting]
    lag = nlargest(SHOWN, waited_for, key=lambda session: session.in_flight + session.waiting)
    return {
        "incarnation": s.number,
        "joined": s.stage is Stage.JOINED,
        "stage": s.stage.value,
        "replaced_by": _replaced_by(s),
        "handovers": _handovers(s),
        "recovery": _recovery(s),
        "forgotten": [name for name in s.topology.brokers if s.status(name).is_forgotten],
        "deleted": s.measures.deleted,
        "deleting": is_deleting(s),
        "suspected": [name for name in sorted(s.suspects) if s.is_live(name)],
        "isolated": s.is_cut_off,
        "unreachable": _unreachable_acceptors(s) if s.is_cut_off else [],
        "sessions": len(sessions),
        "clients": sum(session.is_connected for session in sessions),
        "lag": {session.client: session.in_flight + session.waiting for session in lag},
        "deferred": {client: _why_waiting(s, session) for client, session in islice(s.arrivals.items(), SHOWN)},
        "disconnected": [session.client for session in waited_for if not session.is_connected][:SHOWN],
        "lagging": [session.client for session in sessions if session.is_lagging][:LAGGING_SHOWN],
        "history": _history(s),
        "durable_changes": _durable_changes(s),
        "blocked_publishers": _blocked_publishers(s),
        "unconfirmed": len(s.journal) - s.released,
        "published": s.measures.published,
        "delivered": s.measures.delivered,
        "confirmation_latency": s.measures.confirming.summary(),
        "delivery_latency": s.measures.taking.summary(),
    }


# ---- membership --------------------------------------------------------------------------------------------


def _replaced_by(s: BrokerState) -> dict[str, str]:
    """Return the nearest live broker of each excluded one."""
    overlay = s.topology.overlay
    found = {}
    for name in s.topology.brokers:
        if s.status(name).is_excluded:
            near = overlay.within(name, len(s.topology.brokers))
            found[name] = next((other for other in near if s.is_live(other)), s.name)
    return found


def _unreachable_acceptors(s: BrokerState) -> list[str]:
    return [name for name in s.topology.acceptors[s.name] if name in s.suspects or not s.is_live(name)]


def _handovers(s: BrokerState) -> list[dict[str, Any]]:
    """Return the current handover, if any: its brokers, those it is waiting for, and those with a journal that no other
    broker has."""
    if s.handover is None:
        return []
    region = s.handover.region
    tags = {name: contribution.tag for name, contribution in s.contributions.items()}
    waits_for = [name for name in region.group if tags.get(name) != region.tag]
    needed: dict[str, None] = {}
    for incarnation in missing_journals(s, region):
        holders = (incarnation.broker, *s.topology.acceptors[incarnation.broker])
        lost = [name for name in holders if name in s.suspects or not s.is_live(name)]
        needed |= dict.fromkeys(lost)
        if not lost:
            waits_for += [name for name in holders if name not in waits_for and name != s.name]
    for name in unsealed(s, region):
        around = (name, *s.topology.acceptors[name])
        waits_for += [each for each in around if each in s.suspects and each not in waits_for]
    return [{"around": sorted(region.core), "waits_for": waits_for, "needs_back": list(needed)}]


def _recovery(s: BrokerState) -> list[str]:
    """Return the brokers that have not answered a restarted broker about its electorates."""
    if s.stage is not Stage.RECOVERING:
        return []
    found: dict[str, None] = {}
    for broker, acceptor in s.acceptors.items():
        if not acceptor.has_recovered:
            answered = s.join_replies.get(broker, {})
            found |= dict.fromkeys(each for each in s.topology.electorate(broker) if each not in answered)
    found.pop(s.name, None)
    return list(found)


# ---- clients -----------------------------------------------------------------------------------------------


def _why_waiting(s: BrokerState, session: Session) -> str:
    """Return why a client's session has not opened or closed yet."""
    attach = session.attach
    if attach.incarnation is None:
        return "its last session is not closed"
    old = Incarnation(*attach.incarnation)
    if not s.is_dead(old):
        return f"{old.broker} has not closed its last session, and is not excluded"
    if session.last_closed is None:
        return f"no broker has reported its last number in the journal of {old.broker}"
    return "there is no final position after its last session"


def _blocked_publishers(s: BrokerState) -> dict[str, Any]:
    """Return the clients whose publications wait for window space, the current progress, and the brokers that
    delay it."""
    if s.window_used < s.window:
        return {}
    clients = [name for name in s.busy_clients if name in s.sessions and s.sessions[name].queued_events]
    if not clients:
        return {}
    return {
        "clients": clients[:SHOWN],
        "processed_by_all": s.stable_entries,
        "waits_for": list(dict.fromkeys(_missing_for_position(s))),
    }


def _missing_for_position(s: BrokerState) -> Iterator[str]:
    """Yield the neighbours that delay the next final position."""
    for holder in s.holders:
        if s.held_by.get(holder, 0) < len(s.journal):
            yield holder.broker
    if s.wave is not None:
        yield from (peer for peer, _ in sorted(s.wave.waits_for))
    elif (first := root(s)) is not None and first != s.name:
        yield first


def _history(s: BrokerState) -> dict[str, Any]:
    journals = [s.journal, *s.journals.values()]
    readings = list(s.readings.values())
    return {
        "bytes": sum(journal.size for journal in journals),
        "final": s.final.timestamp,
        "reads": len(readings),
        "waiting": [
            {
                "client": reading.session.client,
                "subscription": ", ".join(islice(reading.subscriptions, SHOWN)),
                "position": reading.position,
                "waits_for": list(_waits_for(s, reading)),
            }
            for reading in readings[:SHOWN]
        ],
        "under_replicated": list(_under_replicated(s)),
    }


def _waits_for(s: BrokerState, reading: Reading) -> Iterator[str]:
    """Yield what a read is waiting for: its client, which must take deliveries; brokers; or only a wave."""
    if not has_room(s, reading.session):
        yield reading.session.client
    elif sources(s) is None:
        yield from (name for name in s.topology.brokers if s.status(name).sealed_below < s.status(name).number)
    else:
        asked = (source.asked.broker for source in reading.sources.values() if source.asked is not None)
        yield from dict.fromkeys(asked)


def _under_replicated(s: BrokerState) -> Iterator[str]:
    """Yield the journals with fewer than f + 1 replicas: the broker's own, and copies that are still incomplete."""
    full = sum(
        length >= s.released and s.is_current(each) and s.is_live(each.broker)
        for each, length in s.held_by.items()
    )  # fmt: skip
    if full < s.needed_holders and len(s.journal):
        yield f"{s.name}/{s.number}"
    for incarnation, journal in islice(s.journals.items(), LAGGING_SHOWN):
        if journal.lacks_earlier:
            yield f"{incarnation.broker}/{incarnation.number}"


def _durable_changes(s: BrokerState) -> dict[str, dict[str, Any]]:
    """Return the durable subscriptions with pending changes: the queue of each, and the replicas that have not
    answered."""
    replicas = register.replicas(s)
    return {
        name: {"change": proposal.done, "waits_for": [each for each in replicas if each not in proposal.votes]}
        for name, proposal in islice(s.durable.proposals.items(), SHOWN)
    }

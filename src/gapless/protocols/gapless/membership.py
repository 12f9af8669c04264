"""The statuses of brokers, how they propagate, and suspicions.

Statuses merge by the maximum, so brokers that have received the same updates in any order agree. A broker that learns
an update sends it to its peers at once. Channels keep order, so any message that a broker sends after it has learned of
a new incarnation reaches a peer that knows of that incarnation, too. Therefore a proposer, or a broker that counts the
holders of its journal, can discard messages of an excluded incarnation (the *crash vectors* of Michael, Ports, Sharma
and Szekeres, DISC 2017).
"""

from collections import deque

from gapless.protocol import Send
from gapless.protocols.gapless.identities import Incarnation, Status
from gapless.protocols.gapless.membership_messages import Accusation, Join, Members
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.messages import Excluded
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.topology import Statuses

__all__ = [
    "ACCUSATION_TIMER",
    "accuse",
    "accuse_again",
    "connected",
    "forget",
    "greet",
    "learn",
    "merge",
    "note_accusation",
    "notify_excluded",
    "peers",
    "withdraw_suspicion",
]  # fmt: skip

ACCUSATION_TIMER = "accuse"


def merge(one: Status, other: Status) -> Status:
    """Return the merged status."""
    number, phase = max(one[:2], other[:2])
    lengths = dict(one.lengths)
    for incarnation, length in other.lengths:
        lengths[incarnation] = min(length, lengths.get(incarnation, length))
    sealed_below, forgotten_below = max(one.sealed_below, other.sealed_below), max(one[4], other[4])
    deleted = one.deleted
    if other.deleted != deleted:
        known = dict(deleted)
        known |= {publisher: max(upto, known.get(publisher, 0)) for publisher, upto in other.deleted}
        deleted = tuple(sorted(known.items()))
    return Status(number, phase, sealed_below, tuple(sorted(lengths.items())), forgotten_below, deleted)


def learn(s: BrokerState, news: Statuses, source: str = "") -> None:
    """Merge status updates, forward new ones to the peers, and restart channels to brokers with a new incarnation."""
    fresh: Statuses = {}
    for name, status in news.items():
        old = s.status(name)
        new = merge(old, status)
        if new != old:
            fresh[name] = new
    if not fresh:
        return
    _require_rejoin(s, fresh)
    older = {name: s.status(name) for name in fresh}
    s.statuses.update(fresh)
    for name in [each for each in s.statuses if _is_beyond_vote(s, each)]:
        older.setdefault(name, s.status(name))
        number = s.status(name).number
        fresh[name] = s.statuses[name] = s.status(name)._replace(sealed_below=number + 1)
    s.disk.are_statuses_changed = True
    s.due |= Due.MEMBERSHIP
    for name, status in fresh.items():
        if status.number > older[name].number and name != s.name:
            _meet(s, name)
        if status.sealed_below > older[name].sealed_below:
            _note_exclusion(s, name, status)
        for number, length in status.lengths:
            copy = s.journals.get(Incarnation(name, number))
            if copy is not None:
                copy.cut_to(length)
    if s.status(s.name).sealed_below > s.number:
        s.stage = Stage.EXCLUDED
        return
    for peer in dict.fromkeys((*peers(s), *(link.peer for link in s.links.values()))):
        if peer != source:
            s.send(peer, Members(fresh))


def peers(s: BrokerState) -> tuple[str, ...]:
    """Return the brokers to which this one sends status updates directly: those with which it shares an electorate or a
    link of the tree, and the nearest ones beyond unreachable brokers."""
    around = s.topology.around(s.name, lambda name: name in s.suspects or s.is_forgotten(name) or not s.is_live(name))
    return tuple(dict.fromkeys((*s.topology.peers(s.name), *around)))


def forget(s: BrokerState, broker: str) -> None:
    """Record an operator's declaration that the latest incarnation of a broker never returns."""
    if broker != s.name:
        status = s.status(broker)
        learn(s, {broker: status._replace(forgotten_below=status.number + 1)})


def _is_beyond_vote(s: BrokerState, name: str) -> bool:
    """Return whether too few brokers remain to exclude an incarnation that never returns. The operator's declaration
    then excludes it."""
    status = s.status(name)
    return status.is_forgotten and not status.is_excluded and not s.needed(s.topology.acceptors[name], 1)


def _require_rejoin(s: BrokerState, fresh: Statuses) -> None:
    """Require a broker to join again if a larger handover here has removed its links since it joined."""
    if s.handover is None:
        return
    for name in s.handover.region.core:
        if name in fresh and fresh[name].is_joined:
            fresh[name] = fresh[name]._replace(phase=fresh[name].phase + 1)


def _note_exclusion(s: BrokerState, name: str, status: Status) -> None:
    """Process the decision about a seal: end the proposals for it, and notify the excluded broker in case it still
    runs."""
    proposal = s.proposals.get(name)
    s.proposal_attempts.pop(name, None)
    if proposal is not None and proposal.below <= status.sealed_below:
        del s.proposals[name]
    if status.is_excluded and name != s.name:
        notify_excluded(s, name)


def _meet(s: BrokerState, peer: str) -> None:
    """Reset the state for a peer's new incarnation, which has received nothing yet. Messages in flight to the old one
    are void."""
    if peer in s.channels:
        s.channels[peer].meet(s.status(peer).number)
    for incarnation in [each for each in s.accusers if each.broker == peer]:
        del s.accusers[incarnation]
    for accusers in s.accusers.values():
        accusers.discard(peer)
    if peer in s.suspects:
        s.set_timer(f"{ACCUSATION_TIMER}/{peer}", int(s.options.proposal_ms * 1000))
    s.greeted.discard(peer)
    s.waiting = deque(each for each in s.waiting if each.peer != peer)


def connected(s: BrokerState, peer: str) -> None:
    """Exchange statuses with a broker on a new connection, or notify it that it is excluded."""
    if s.is_live(peer):
        s.channel(peer).connected()
    else:
        notify_excluded(s, peer)


def notify_excluded(s: BrokerState, peer: str) -> None:
    """Notify an incarnation that it is excluded."""
    s.emit(Send(peer, Excluded({peer: s.status(peer)})))


def greet(s: BrokerState, peer: str) -> None:
    """Send everything that a peer needs to know of this incarnation, once for each incarnation of the peer."""
    s.greeted.add(peer)
    s.send(peer, Members(dict(s.statuses)))
    if s.stage is Stage.RECOVERING:
        s.send(peer, Join(s.number, [(each, len(journal)) for each, journal in s.journals.items()]))
    for incarnation, accusers in s.accusers.items():
        if s.name in accusers and peer in s.topology.acceptors[incarnation.broker]:
            s.send(peer, Accusation(incarnation, True))


# ---- suspicions --------------------------------------------------------------------------------------------


def accuse(s: BrokerState, peer: str) -> None:
    """Report a suspicion of the failure detector to the other members of the broker's electorate."""
    s.suspects.add(peer)
    s.due |= Due.MEMBERSHIP
    _speak(s, peer, True)


def accuse_again(s: BrokerState, peer: str) -> None:
    """Repeat a suspicion of a new incarnation that others have heard from, once that incarnation has had time to
    connect to this broker."""
    if peer in s.suspects:
        accuse(s, peer)


def withdraw_suspicion(s: BrokerState, peer: str) -> None:
    """Withdraw a suspicion."""
    s.suspects.discard(peer)
    s.due |= Due.MEMBERSHIP
    _speak(s, peer, False)


def _speak(s: BrokerState, peer: str, is_suspected: bool) -> None:
    acceptors = s.topology.acceptors[peer]
    if s.name not in acceptors or not s.is_live(peer):
        return
    accusation = Accusation(s.current(peer), is_suspected)
    note_accusation(s, s.name, accusation)
    for other in acceptors:
        if other != s.name:
            s.send(other, accusation)


def note_accusation(s: BrokerState, accuser: str, message: Accusation) -> None:
    """Record that an acceptor of a broker suspects the broker's present incarnation, or no longer does."""
    incarnation = Incarnation(*message.incarnation)
    if incarnation != s.current(incarnation.broker):
        return
    s.due |= Due.MEMBERSHIP
    accusers = s.accusers.setdefault(incarnation, set())
    if message.is_suspected:
        accusers.add(accuser)
    else:
        accusers.discard(accuser)

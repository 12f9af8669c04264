"""A new incarnation recovers what its predecessor may have promised, before it says anything.

A restarted broker does not know whether its disk, if it has one, is the latest: an older copy may have been put in its
place. So it trusts its disk only as one answer among those of its electorates. It is `RECOVERING`, and neither votes
nor holds for a broker, until of that broker's electorate

- f + 1 *settled* members have answered, that is, such that have not restarted or have recovered themselves; or
- all others have answered that may still return, however little they know: nobody knows more; or
- `return_ms` have passed, and f + 1 have answered that have a settled memory or a disk, this broker's own included.

It takes over the highest promise, what was accepted under the highest ballot, and the longest copies.

*The first* is the rule while at most f restart at a time, and needs no disk: whatever the predecessor said is known to
f + 1 members, counted with the predecessor, so to one of any f + 1 others; or that one answered before it heard of it,
and whatever it says later comes after the news of the new incarnation, when the predecessor's word counts no more.
*The others* are for an outage of more than f. All that was confirmed, promised or accepted is on f + 1 disks. At most f
of these are lost, damaged, stale or permanently away, so a good one is among those that answer in time.
"""

from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.gapless.journal_messages import Held
from gapless.protocols.gapless.membership import learn
from gapless.protocols.gapless.membership_messages import AcceptorState, Join, JoinReply, Memory
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.sealing import receive_prepare, state_of, take_copies, wait_for_others
from gapless.protocols.gapless.state import BrokerState

__all__ = ["RETURN_TIMER", "has_recovered", "join", "receive_join", "receive_join_reply", "recover", "vouched"]

RETURN_TIMER = "return"


def has_recovered(s: BrokerState) -> bool:
    """Whether it may vote and hold for all whose electorates it belongs to."""
    return all(acceptor.has_recovered for acceptor in s.acceptors.values())


def join(s: BrokerState, peer: str) -> None:
    """Ask a broker what it knows, and tell it that this incarnation is there."""
    s.send(peer, Join(s.number, [(each, len(journal)) for each, journal in s.journals.items()]))


def receive_join(s: BrokerState, peer: str, message: Join) -> None:
    """A new incarnation asks what is known here."""
    held = {Incarnation(*incarnation): length for incarnation, length in message.held}
    states = [state_of(s, broker, None, held) for broker in s.acceptors if peer in s.topology.electorate(broker)]
    say(s, peer, JoinReply(message.request, dict(s.statuses), states, vouched(s)))


def vouched(s: BrokerState) -> list[Incarnation]:
    """The live incarnations that this broker has not promised to exclude: its own, and those it is an acceptor of."""
    found = [] if s.stage is Stage.RECOVERING else [s.incarnation]
    for broker, acceptor in s.acceptors.items():
        is_there = acceptor.has_recovered and s.is_live(broker) and broker != s.name
        if is_there and acceptor.promised_below <= s.current(broker).number:
            found.append(s.current(broker))
    return found


def receive_join_reply(s: BrokerState, peer: str, message: JoinReply) -> None:
    """Store the answer of an acceptor."""
    if message.request != s.number or s.is_installed:
        return
    learn(s, message.statuses, peer)
    for incarnation in message.vouched:
        s.vouched.setdefault(Incarnation(*incarnation), set()).add(s.current(peer))
    s.membership_changed = True
    if s.stage is Stage.RECOVERING:
        for state in message.acceptors:
            take_copies(s, state.copies)
            s.join_replies.setdefault(state.broker, {})[peer] = s.current(peer), state


def recover(s: BrokerState) -> None:
    """Vote and hold again for all brokers of whose electorate enough is known."""
    for broker, acceptor in s.acceptors.items():
        if acceptor.has_recovered:
            continue
        replies = s.join_replies.get(broker, {}).values()
        counted = {each.broker: state for each, state in replies if s.is_current(each)}
        if not _is_enough(s, broker, counted):
            continue
        for state in counted.values():
            acceptor.promised = max(acceptor.promised, Ballot(*state.promised))
            acceptor.promised_below = max(acceptor.promised_below, state.promised_below)
            for number, (ballot, length) in state.accepted.items():
                if number not in acceptor.accepted or Ballot(*ballot) > acceptor.accepted[number][0]:
                    acceptor.accepted[number] = Ballot(*ballot), length
        acceptor.has_recovered = True
        s.disk.changed_acceptors.add(broker)
        if acceptor.promised_below > s.status(broker).sealed_below:
            wait_for_others(s, broker)
        copy = s.journals.get(s.current(broker))
        if copy is not None and s.is_live(broker) and acceptor.promised_below <= s.current(broker).number:
            say(s, broker, Held(len(copy)))
        waiting, acceptor.unanswered = acceptor.unanswered, {}
        for proposer, message in waiting.items():
            receive_prepare(s, proposer, message)


def _is_enough(s: BrokerState, broker: str, answers: dict[str, AcceptorState]) -> bool:
    memories = [state.memory for state in answers.values()]
    electorate = s.topology.electorate(broker)
    if memories.count(Memory.SETTLED) >= s.topology.quorum:
        return True
    if all(name in answers or s.is_forgotten(name) for name in electorate if name != s.name):
        return True
    remembering = (s.memory is not Memory.NONE) + len(memories) - memories.count(Memory.NONE)
    return s.has_waited and remembering >= s.needed(electorate, s.topology.quorum)

"""How a new incarnation recovers its predecessor's promises before it sends anything that depends on them.

A restarted broker does not know whether its disk, if it has one, is current: it may have been replaced by an older
copy. So it trusts its disk only as one answer among those of its electorates. It is `RECOVERING`, and
neither votes on a broker nor holds copies for it, until one of these conditions is true of that broker's electorate:

- f + 1 *settled* members have answered, that is, members that have not restarted or have recovered themselves; or
- all others that may still return have answered, however little they know: there is no more to learn; or
- `return_ms` have passed, and f + 1 have answered that have a settled memory or a disk, this broker's own included.

It takes over the highest promise, the values accepted under the highest ballot, and the longest copies.

*The first* is the rule while at most f restart at a time, and needs no disk. Any vote of the predecessor is known to f
+ 1 members, including itself, and so to one of any f + 1 others. If that one answered before it received the vote, the
vote arrives after the news of the new incarnation, and is void. *The others* are for an outage of more than f.
Everything confirmed, promised or accepted is on f + 1 disks. At most f of these are lost, damaged, stale or permanently
away, so a good one is among those that answer in time.
"""

from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.gapless.journal_messages import Held
from gapless.protocols.gapless.membership import learn
from gapless.protocols.gapless.membership_messages import AcceptorState, Join, JoinReply, Memory
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.sealing import receive_prepare, state_of, take_copies, wait_for_others
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = [
    "RETURN_TIMER", "answer_again", "has_recovered", "join", "receive_join", "receive_join_reply", "recover",
    "vouched",
]  # fmt: skip

RETURN_TIMER = "return"


def has_recovered(s: BrokerState) -> bool:
    """Return whether this broker may vote and hold copies for all brokers whose electorates it belongs to."""
    return all(acceptor.has_recovered for acceptor in s.acceptors.values())


def join(s: BrokerState, peer: str) -> None:
    """Announce this incarnation to a broker, and ask for that broker's state."""
    s.send(peer, Join(s.number, [(each, len(journal)) for each, journal in s.journals.items()]))


def receive_join(s: BrokerState, peer: str, message: Join) -> None:
    """Answer a new incarnation with this broker's state."""
    known = vouched(s)
    s.joining[peer] = message, (known, _recovered(s))
    held = {Incarnation(*incarnation): length for incarnation, length in message.held}
    states = [state_of(s, broker, None, held) for broker in s.acceptors if peer in s.topology.electorate(broker)]
    say(s, peer, JoinReply(message.request, dict(s.statuses), states, known))


def answer_again(s: BrokerState) -> None:
    """Answer joining brokers again if this broker's state or the incarnations it vouches for have changed."""
    for peer, (message, answered) in list(s.joining.items()):
        status = s.status(peer)
        if status.number > message.request or status.is_joined or status.is_excluded:
            del s.joining[peer]
        elif answered != (vouched(s), _recovered(s)):
            receive_join(s, peer, message)


def _recovered(s: BrokerState) -> int:
    return sum(acceptor.has_recovered for acceptor in s.acceptors.values())


def vouched(s: BrokerState) -> list[Incarnation]:
    """Return the live incarnations that this broker has not promised to exclude: its own, and those that it is an
    acceptor of."""
    found = [] if s.stage is Stage.RECOVERING else [s.incarnation]
    for broker, acceptor in s.acceptors.items():
        is_there = acceptor.has_recovered and s.is_live(broker) and broker != s.name
        if is_there and acceptor.promised_below <= s.current(broker).number:
            found.append(s.current(broker))
    return found


def receive_join_reply(s: BrokerState, peer: str, message: JoinReply) -> None:
    """Store an acceptor's answer."""
    if message.request != s.number or s.is_installed:
        return
    learn(s, message.statuses, peer)
    for incarnation in message.vouched:
        s.vouched.setdefault(Incarnation(*incarnation), set()).add(s.current(peer))
    s.due |= Due.MEMBERSHIP
    if s.stage is Stage.RECOVERING:
        for state in message.acceptors:
            take_copies(s, state.copies)
            s.join_replies.setdefault(state.broker, {})[peer] = s.current(peer), state


def recover(s: BrokerState) -> None:
    """Resume voting and holding copies for each broker of whose electorate enough members have answered."""
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

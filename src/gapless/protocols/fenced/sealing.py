"""Excluding an incarnation: its electorate agrees on the length of its journal.

A journal is a sequence of entries, and each copy of it is a prefix. So all that has to be agreed on about an
incarnation that is excluded is one number, the **length** of its journal: up to it entries count, beyond it they
never did. The 2f acceptors of a broker agree by Paxos, on all its incarnations below a number at once:

1. *Prepare and promise.* An acceptor that promises holds no further entries of these journals, for ever, and says
   what it holds. A proposal begins only when f + 1 acceptors suspect the incarnation at the same time (so one wrong
   suspicion does no harm), or when a new incarnation seals those before it.
2. *Accept.* With f + 1 promises, the length of a journal is what was accepted under the highest ballot, or else the
   longest copy that was promised. Acceptors get the entries they lack. With f + 1 acceptances it is decided, and
   becomes part of the broker's status.

*Nothing confirmed is lost*: an event is confirmed when f acceptors hold it; f + 1 others have promised; there are 2f,
so one of those that hold it has promised, and did so after it held it. *No exclusion is forgotten*: f + 1 acceptors
have accepted it, and at most f fail. *No event is confirmed after the exclusion*: f + 1 of 2f acceptors hold nothing
more.

An acceptor that restarts without memory could break its promises. So it is `RECOVERING` and silent until f + 1 others
of each electorate have told it what they promised, accepted and hold.
"""

from collections.abc import Iterable

from gapless.protocols.fenced.membership import learn
from gapless.protocols.fenced.messages import (
    Accept,
    Accepted,
    AcceptorState,
    Ballot,
    Held,
    Incarnation,
    Join,
    JoinReply,
    JournalCopy,
    Members,
    Prepare,
    Promise,
    Refused,
    Status,
)
from gapless.protocols.fenced.state import BrokerState, Journal, Proposal, ProposalPhase, Stage

__all__ = [
    "PROPOSAL_TIMER", "carry_on", "has_recovered", "propose_where_due", "receive_accept", "receive_accepted",
    "receive_join", "receive_join_reply", "receive_prepare", "receive_promise", "receive_refused", "repeat_proposals",
]  # fmt: skip

PROPOSAL_TIMER = "proposal"
ATTEMPTS_MAX = 6
"""A proposer waits twice as long with each attempt, so that any round trip fits; and no longer after so many."""


def _incarnations_held(s: BrokerState, broker: str, below: int | None = None) -> list[Incarnation]:
    return [each for each in s.journals if each.broker == broker and (below is None or each.number < below)]


def _state_of(s: BrokerState, broker: str, below: int | None = None) -> AcceptorState:
    """What this acceptor has to say of a broker."""
    acceptor = s.acceptors[broker]
    copies = [_copy(s, s.journals[each], each) for each in _incarnations_held(s, broker, below)]
    return AcceptorState(broker, acceptor.promised_below, acceptor.promised, dict(acceptor.accepted), copies)


def _copy(s: BrokerState, journal: Journal, incarnation: Incarnation) -> JournalCopy:
    """What not all brokers have processed. The rest is history: a copy gets that later (`history`)."""
    return journal.copy(incarnation, journal.place_after(s.stable))


def _take_copies(s: BrokerState, copies: Iterable[JournalCopy]) -> None:
    for copy in copies:
        s.journals.setdefault(Incarnation(*copy.incarnation), Journal()).extend_from(copy)


# ---- proposing ---------------------------------------------------------------------------------------------


def propose_where_due(s: BrokerState) -> None:
    """Begin a proposal wherever this broker is the first that should."""
    if s.stage is Stage.RECOVERING and s.status(s.name).sealed_below < s.number:
        if s.name not in s.proposals and f"{PROPOSAL_TIMER}/{s.name}" not in s.timers:
            _propose(s, s.name, s.number)
        return
    for incarnation, accusers in list(s.accusers.items()):
        broker = incarnation.broker
        if f"{PROPOSAL_TIMER}/{broker}" in s.timers:
            continue
        if s.name not in accusers or broker in s.proposals or not s.is_live(broker) or not _may_vote(s, broker):
            continue
        if len(accusers) >= _quorum(s) and incarnation == s.current(broker):
            if s.name == min(accusers, key=s.topology.overlay.rank.__getitem__):
                _propose(s, broker, incarnation.number + 1)
            else:
                s.set_timer_once(f"{PROPOSAL_TIMER}/{broker}", _patience_us(s, broker))


def _quorum(s: BrokerState) -> int:
    return 1 if "majority" in s.off else s.topology.quorum


def _may_vote(s: BrokerState, broker: str) -> bool:
    acceptor = s.acceptors.get(broker)
    return acceptor is not None and acceptor.has_recovered


def _patience_us(s: BrokerState, broker: str) -> int:
    """Later the lower an acceptor ranks, so that proposals do not compete."""
    acceptors = s.topology.acceptors[broker]
    place = acceptors.index(s.name) if s.name in acceptors else 0
    return int(s.options.proposal_ms * 1000 * (1 + place / 4))


def _wait_for_others(s: BrokerState, broker: str) -> None:
    """Somebody else's proposal makes progress: carry it on only if it does not end."""
    s.set_timer(f"{PROPOSAL_TIMER}/{broker}", 4 * _patience_us(s, broker))


def carry_on(s: BrokerState, broker: str) -> None:
    """A proposal takes long, or the broker that should have made it is gone."""
    proposal = s.proposals.pop(broker, None)
    if broker == s.name:
        if s.status(s.name).sealed_below < s.number:
            _propose(s, broker, s.number)
        return
    if not _may_vote(s, broker):
        return
    acceptor = s.acceptors[broker]
    below = max(acceptor.promised_below, proposal.below if proposal else 0)
    accusers = s.accusers.get(s.current(broker), set())
    if s.name in accusers and len(accusers) >= _quorum(s):
        below = max(below, s.current(broker).number + 1)
    if below > s.status(broker).sealed_below:
        _propose(s, broker, below)


def _propose(s: BrokerState, broker: str, below: int) -> None:
    s.ballot_round += 1
    ballot = Ballot(s.ballot_round, f"{s.name}/{s.number}")
    s.proposals[broker] = Proposal(below, ballot)
    for acceptor in s.topology.acceptors[broker]:
        if acceptor != s.name:
            s.send(acceptor, Prepare(broker, below, ballot))
    if s.name in s.topology.acceptors[broker]:
        receive_prepare(s, s.name, Prepare(broker, below, ballot))
    attempt = s.proposal_attempts[broker] = min(s.proposal_attempts.get(broker, 0) + 1, ATTEMPTS_MAX)
    patience = _patience_us(s, broker) << attempt
    s.set_timer(f"{PROPOSAL_TIMER}/{broker}", 4 * patience if broker == s.name else patience)
    _go_on(s, broker)


def _counted(s: BrokerState, votes: Iterable[Incarnation]) -> int:
    """How many of these votes count: those of incarnations that are not over."""
    return sum(s.current(vote.broker) == vote and s.is_live(vote.broker) for vote in votes)


def _needed(s: BrokerState, broker: str) -> int:
    return min(_quorum(s), len(s.topology.acceptors[broker]))


def _go_on(s: BrokerState, broker: str) -> None:
    proposal = s.proposals.get(broker)
    if proposal is None:
        return
    if proposal.phase is ProposalPhase.PREPARING and _counted(s, proposal.promises) >= _needed(s, broker):
        _send_accepts(s, broker, proposal)
    if proposal.phase is ProposalPhase.ACCEPTING and _counted(s, proposal.accepted) >= _needed(s, broker):
        old = s.status(broker)
        learn(s, {broker: Status(old.number, old.phase, proposal.below, tuple(sorted(proposal.lengths.items())))})


def _send_accepts(s: BrokerState, broker: str, proposal: Proposal) -> None:
    proposal.phase = ProposalPhase.ACCEPTING
    promises = [promise for voter, promise in proposal.promises.items() if s.current(voter.broker) == voter]
    accepted: dict[int, tuple[Ballot, int]] = {}
    for promise in promises:
        _take_copies(s, promise.state.copies)
        for number, (ballot, length) in promise.state.accepted.items():
            if number not in accepted or tuple(ballot) > tuple(accepted[number][0]):
                accepted[number] = Ballot(*ballot), length
    known = dict(s.status(broker).lengths)
    for incarnation in _incarnations_held(s, broker, proposal.below):
        longest = max((_length_in(promise.state, incarnation) for promise in promises), default=0)
        length = accepted[incarnation.number][1] if incarnation.number in accepted else longest
        proposal.lengths[incarnation.number] = known.get(incarnation.number, length)
        s.journals[incarnation].cut_to(proposal.lengths[incarnation.number])
    for acceptor in s.topology.acceptors[broker]:
        if acceptor == s.name:
            receive_accept(s, s.name, _accept_for(s, broker, proposal, s.incarnation))
        else:
            s.send(acceptor, _accept_for(s, broker, proposal, s.current(acceptor)))


def _accept_for(s: BrokerState, broker: str, proposal: Proposal, voter: Incarnation) -> Accept:
    """The proposal as one acceptor gets it: with the entries that it did not promise to have."""
    promise = proposal.promises.get(voter)
    copies = []
    for number, length in proposal.lengths.items():
        incarnation = Incarnation(broker, number)
        journal = s.journals[incarnation]
        known = 0 if promise is None else min(length, _length_in(promise.state, incarnation))
        copies.append(journal.copy(incarnation, max(known, journal.place_after(s.stable)), length))
    return Accept(broker, proposal.below, proposal.ballot, dict(proposal.lengths), copies)


def repeat_proposals(s: BrokerState, peer: str) -> None:
    """Tell a new incarnation of an acceptor of the proposals that are under way."""
    for broker, proposal in s.proposals.items():
        if peer in s.topology.acceptors[broker]:
            if proposal.phase is ProposalPhase.PREPARING:
                s.send(peer, Prepare(broker, proposal.below, proposal.ballot))
            else:
                s.send(peer, _accept_for(s, broker, proposal, s.current(peer)))


def _length_in(state: AcceptorState, incarnation: Incarnation) -> int:
    return next((copy.length for copy in state.copies if Incarnation(*copy.incarnation) == incarnation), 0)


# ---- voting ------------------------------------------------------------------------------------------------


def receive_prepare(s: BrokerState, proposer: str, message: Prepare) -> None:
    """Phase 1 at an acceptor."""
    if not _may_vote(s, message.broker):
        return
    acceptor = s.acceptors[message.broker]
    ballot = Ballot(*message.ballot)
    s.ballot_round = max(s.ballot_round, ballot.round)
    if message.below <= s.status(message.broker).sealed_below:
        if proposer != s.name:
            s.send(proposer, Members({message.broker: s.status(message.broker)}))
        return
    if ballot < acceptor.promised:
        if proposer != s.name:
            s.send(proposer, Refused(message.broker, ballot, acceptor.promised))
        return
    acceptor.promised = ballot
    acceptor.promised_below = max(acceptor.promised_below, message.below)
    promise = Promise(_state_of(s, message.broker, message.below), message.below, ballot)
    if proposer == s.name:
        receive_promise(s, s.name, promise)
    else:
        s.send(proposer, promise)
        _wait_for_others(s, message.broker)


def receive_promise(s: BrokerState, voter: str, message: Promise) -> None:
    """A vote at the proposer."""
    proposal = s.proposals.get(message.state.broker)
    if proposal is not None and proposal.ballot == message.ballot and proposal.phase is ProposalPhase.PREPARING:
        proposal.promises[s.current(voter) if voter != s.name else s.incarnation] = message
        _go_on(s, message.state.broker)


def receive_refused(s: BrokerState, _voter: str, message: Refused) -> None:
    """Another proposal is ahead: go on with a larger ballot, later if the other may still end."""
    s.ballot_round = max(s.ballot_round, Ballot(*message.promised).round)
    proposal = s.proposals.get(message.broker)
    if proposal is not None and proposal.ballot == message.ballot:
        del s.proposals[message.broker]
        if message.broker == s.name:
            s.set_timer(f"{PROPOSAL_TIMER}/{message.broker}", _patience_us(s, message.broker) // 8)
        else:
            _wait_for_others(s, message.broker)


def receive_accept(s: BrokerState, proposer: str, message: Accept) -> None:
    """Phase 2 at an acceptor."""
    acceptor = s.acceptors[message.broker]
    ballot = Ballot(*message.ballot)
    if ballot < acceptor.promised or not acceptor.has_recovered:
        return
    acceptor.promised = ballot
    acceptor.promised_below = max(acceptor.promised_below, message.below)
    if proposer != s.name:
        _wait_for_others(s, message.broker)
    _take_copies(s, message.copies)
    for number, length in message.lengths.items():
        acceptor.accepted[number] = ballot, length
    accepted = Accepted(message.broker, message.below, ballot)
    if proposer == s.name:
        receive_accepted(s, s.name, accepted)
    else:
        s.send(proposer, accepted)


def receive_accepted(s: BrokerState, voter: str, message: Accepted) -> None:
    """An acceptance at the proposer."""
    proposal = s.proposals.get(message.broker)
    if proposal is not None and proposal.ballot == message.ballot:
        proposal.accepted.add(s.current(voter) if voter != s.name else s.incarnation)
        _go_on(s, message.broker)


# ---- an acceptor that recovers -----------------------------------------------------------------------------


def has_recovered(s: BrokerState) -> bool:
    return all(acceptor.has_recovered for acceptor in s.acceptors.values())


def receive_join(s: BrokerState, peer: str, message: Join) -> None:
    """A new incarnation asks what is known here."""
    if s.stage is Stage.RECOVERING and not s.acceptors:
        return
    states = [
        _state_of(s, broker)
        for broker, acceptor in s.acceptors.items()
        if acceptor.has_recovered and peer in s.topology.acceptors[broker]
    ]
    if peer in s.topology.acceptors[s.name] and s.stage is not Stage.RECOVERING:
        copies = [_copy(s, s.journals[each], each) for each in _incarnations_held(s, s.name)]
        own = [_copy(s, s.journal, s.incarnation), *copies]
        states.append(AcceptorState(s.name, 0, Ballot(0, ""), {}, own))
    s.send(peer, JoinReply(message.request, dict(s.statuses), states, _vouched(s)))


def _vouched(s: BrokerState) -> list[Incarnation]:
    """The live incarnations that this broker has not promised to exclude: its own, and those it is an acceptor of."""
    found = [] if s.stage is Stage.RECOVERING else [s.incarnation]
    for broker, acceptor in s.acceptors.items():
        if acceptor.has_recovered and s.is_live(broker) and acceptor.promised_below <= s.current(broker).number:
            found.append(s.current(broker))
    return found


def receive_join_reply(s: BrokerState, peer: str, message: JoinReply) -> None:
    """What an acceptor knows: with f + 1 of them, this one may vote and hold again."""
    if message.request != s.number or s.is_installed:
        return
    learn(s, message.statuses, peer)
    for incarnation in message.vouched:
        s.vouched.setdefault(Incarnation(*incarnation), set()).add(s.current(peer))
    s.membership_changed = True
    if s.stage is not Stage.RECOVERING:
        return
    for state in message.acceptors:
        replies = s.join_replies.setdefault(state.broker, {})
        replies[peer] = s.current(peer), state
        acceptor = s.acceptors[state.broker]
        counted = [reply for incarnation, reply in replies.values() if s.current(incarnation.broker) == incarnation]
        if acceptor.has_recovered or len(counted) < s.topology.quorum:
            continue
        for reply in counted:
            _take_copies(s, reply.copies)
            acceptor.promised = max(acceptor.promised, Ballot(*reply.promised))
            acceptor.promised_below = max(acceptor.promised_below, reply.promised_below)
            for number, (ballot, length) in reply.accepted.items():
                if number not in acceptor.accepted or Ballot(*ballot) > acceptor.accepted[number][0]:
                    acceptor.accepted[number] = Ballot(*ballot), length
        acceptor.has_recovered = True
        copy = s.journals.get(s.current(state.broker))
        if copy is not None and s.is_live(state.broker) and acceptor.promised_below <= s.current(state.broker).number:
            s.send(state.broker, Held(len(copy)))

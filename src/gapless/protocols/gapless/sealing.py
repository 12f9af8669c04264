"""Excludes an incarnation: its electorate agrees on the length of its journal.

A journal is a sequence of entries, and each copy of it is a prefix. So the electorate only has to agree on one number
for an excluded incarnation, the **length** of its journal: entries up to it are valid, and entries beyond it never
were. The 2f acceptors of a broker agree by Paxos, on all of its incarnations below a number at once:

1. *Prepare and promise.* An acceptor that promises accepts no further entries of these journals, permanently, and
   reports its copies. A proposal begins only when f + 1 acceptors suspect the incarnation at the same time (so one
   false suspicion has no effect), or when a new incarnation seals its predecessors.
2. *Accept.* With f + 1 promises, the length of a journal is the one accepted under the highest ballot, or else that of
   the longest copy in the promises and at the proposer. Acceptors get the entries they lack. With f + 1 acceptances the
   length is decided, and becomes part of the broker's status.

*No confirmed event is lost*: an event is confirmed when f acceptors hold it. Of the 2f acceptors f + 1 have promised,
so at least one that holds the event has promised, and did so after it received the event. *No exclusion is forgotten*:
f + 1 acceptors have accepted it, and at most f fail. *No event is confirmed after the exclusion*: f + 1 of 2f acceptors
accept no more entries.

A restarted acceptor could break its promises; `recovery` prevents that. A restarted broker also votes on its own
earlier journals; no broker votes to exclude itself.
"""

from collections.abc import Iterable, Mapping

from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.gapless.journal_messages import JournalCopy
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.membership import learn
from gapless.protocols.gapless.membership_messages import (
    Accept,
    Accepted,
    AcceptorState,
    Members,
    Memory,
    Prepare,
    Promise,
    Refused,
)
from gapless.protocols.gapless.membership_state import Proposal, ProposalPhase, Stage
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = [
    "PROPOSAL_TIMER", "continue_proposal", "propose_where_due", "receive_accept", "receive_accepted", "receive_prepare",
    "receive_promise", "receive_refused", "repeat_proposals", "state_of", "take_copies",
    "wait_for_others",
]  # fmt: skip

PROPOSAL_TIMER = "proposal"
ATTEMPTS_MAX = 6
"""The number of attempts after which a proposer's timeout stops doubling. It then exceeds any round-trip time."""


def _incarnations_held(s: BrokerState, broker: str, below: int | None = None) -> list[Incarnation]:
    return [each for each in s.journals if each.broker == broker and (below is None or each.number < below)]


def state_of(
    s: BrokerState, broker: str, below: int | None = None, held: Mapping[Incarnation, int] | None = None
) -> AcceptorState:
    """Return this acceptor's state about a broker, without the entries that the receiver already has."""
    acceptor = s.acceptors[broker]
    journals = {each: s.journals[each] for each in _incarnations_held(s, broker, below)}
    if broker == s.name and below is None:
        journals[s.incarnation] = s.journal
    copies = [_copy(s, journal, each, (held or {}).get(each, 0)) for each, journal in journals.items()]
    memory = Memory.SETTLED if acceptor.has_recovered else s.memory
    return AcceptorState(broker, memory, acceptor.promised_below, acceptor.promised, dict(acceptor.accepted), copies)


def _copy(s: BrokerState, journal: Journal, incarnation: Incarnation, held: int) -> JournalCopy:
    """Return a copy of the entries that not all brokers have processed. The receiver fetches the others later (see
    `history`)."""
    return journal.copy(incarnation, max(journal.place_after(s.stable), min(held, len(journal))))


def take_copies(s: BrokerState, copies: Iterable[JournalCopy]) -> None:
    """Merge another broker's copies, each up to the sealed length."""
    for copy in copies:
        incarnation = Incarnation(*copy.incarnation)
        journal = s.journals.setdefault(incarnation, Journal())
        journal.extend_from(copy)
        length = dict(s.status(incarnation.broker).lengths).get(incarnation.number)
        if length is not None:
            journal.cut_to(length)
    s.due |= Due.HANDOVER


# ---- proposing ---------------------------------------------------------------------------------------------


def propose_where_due(s: BrokerState) -> None:
    """Start each proposal for which this broker is the first in line."""
    if s.stage is Stage.RECOVERING and s.status(s.name).sealed_below < s.number:
        if s.name not in s.proposals and f"{PROPOSAL_TIMER}/{s.name}" not in s.timers:
            _propose(s, s.name, s.number)
        return
    for broker in dict.fromkeys([*(each.broker for each in s.accusers), *filter(s.is_forgotten, s.acceptors)]):
        if f"{PROPOSAL_TIMER}/{broker}" in s.timers or broker in s.proposals:
            continue
        if s.is_live(broker) and _may_vote(s, broker) and _is_accused(s, broker):
            if s.name == min(filter(s.is_live, _accusers(s, broker)), key=s.topology.overlay.rank.__getitem__):
                _propose(s, broker, s.current(broker).number + 1)
            else:
                s.set_timer_once(f"{PROPOSAL_TIMER}/{broker}", _patience_us(s, broker))


def _accusers(s: BrokerState, broker: str) -> set[str]:
    """Return the acceptors that suspect the broker's present incarnation; all acceptors if it never returns."""
    if s.is_forgotten(broker):
        return {name for name in s.topology.acceptors[broker] if not s.is_forgotten(name)}
    return s.accusers.get(s.current(broker), set())


def _is_accused(s: BrokerState, broker: str) -> bool:
    """Return whether enough acceptors, including this broker, want to exclude the broker."""
    accusers = _accusers(s, broker)
    return s.name in accusers and len(accusers) >= _quorum(s, s.topology.acceptors[broker])


def _quorum(s: BrokerState, voters: Iterable[str]) -> int:
    return 1 if "majority" in s.off else s.needed(voters, s.topology.quorum)


def _may_vote(s: BrokerState, broker: str) -> bool:
    acceptor = s.acceptors.get(broker)
    return acceptor is not None and acceptor.has_recovered


def _patience_us(s: BrokerState, broker: str) -> int:
    """Return a timeout that grows with an acceptor's rank, so that acceptors do not make competing proposals."""
    acceptors = s.topology.acceptors[broker]
    place = acceptors.index(s.name) if s.name in acceptors else 0
    return int(s.options.proposal_ms * 1000 * (1 + place / 4))


def wait_for_others(s: BrokerState, broker: str) -> None:
    """Give another broker's proposal time to complete. This broker continues it after a timeout."""
    s.set_timer(f"{PROPOSAL_TIMER}/{broker}", 4 * _patience_us(s, broker))


def continue_proposal(s: BrokerState, broker: str) -> None:
    """Continue a proposal that takes too long, or whose proposer has failed."""
    proposal = s.proposals.pop(broker, None)
    if broker == s.name:
        if s.status(s.name).sealed_below < s.number:
            _propose(s, broker, s.number)
        return
    if not _may_vote(s, broker):
        return
    acceptor = s.acceptors[broker]
    below = max(acceptor.promised_below, proposal.below if proposal else 0)
    if _is_accused(s, broker):
        below = max(below, s.current(broker).number + 1)
    if below > s.status(broker).sealed_below:
        _propose(s, broker, below)


def _voters(s: BrokerState, broker: str, below: int) -> list[str]:
    """Return the electorate, without the broker itself if its present incarnation is to be excluded."""
    others = s.topology.acceptors[broker]
    return [broker, *others] if s.current(broker).number >= below else list(others)


def _propose(s: BrokerState, broker: str, below: int) -> None:
    s.ballot_round += 1
    ballot = Ballot(s.ballot_round, f"{s.name}/{s.number}")
    s.proposals[broker] = Proposal(below, ballot)
    voters = _voters(s, broker, below)
    for voter in voters:
        if voter != s.name:
            s.send(voter, Prepare(broker, below, ballot))
    if s.name in voters:
        receive_prepare(s, s.name, Prepare(broker, below, ballot))
    attempt = s.proposal_attempts[broker] = min(s.proposal_attempts.get(broker, 0) + 1, ATTEMPTS_MAX)
    patience = _patience_us(s, broker) << attempt
    s.set_timer(f"{PROPOSAL_TIMER}/{broker}", 4 * patience if broker == s.name else patience)
    _advance_proposal(s, broker)


def _counted(s: BrokerState, votes: Iterable[Incarnation]) -> int:
    """Return the number of valid votes. Votes of excluded incarnations are not valid."""
    return sum(s.is_current(vote) and s.is_live(vote.broker) for vote in votes)


def _advance_proposal(s: BrokerState, broker: str) -> None:
    proposal = s.proposals.get(broker)
    if proposal is None:
        return
    quorum = _quorum(s, _voters(s, broker, proposal.below))
    if proposal.phase is ProposalPhase.PREPARING and _counted(s, proposal.promises) >= quorum:
        _send_accepts(s, broker, proposal)
    if proposal.phase is ProposalPhase.ACCEPTING and _counted(s, proposal.accepted) >= quorum:
        lengths = tuple(sorted(proposal.lengths.items()))
        learn(s, {broker: s.status(broker)._replace(sealed_below=proposal.below, lengths=lengths)})


def _send_accepts(s: BrokerState, broker: str, proposal: Proposal) -> None:
    proposal.phase = ProposalPhase.ACCEPTING
    promises = [promise for voter, promise in proposal.promises.items() if s.is_current(voter)]
    accepted: dict[int, tuple[Ballot, int]] = {}
    for promise in promises:
        take_copies(s, promise.state.copies)
        for number, (ballot, length) in promise.state.accepted.items():
            if number not in accepted or tuple(ballot) > tuple(accepted[number][0]):
                accepted[number] = Ballot(*ballot), length
    known = dict(s.status(broker).lengths)
    for incarnation in _incarnations_held(s, broker, proposal.below):
        longest = max([len(s.journals[incarnation]), *(_length_in(each.state, incarnation) for each in promises)])
        length = accepted[incarnation.number][1] if incarnation.number in accepted else longest
        proposal.lengths[incarnation.number] = known.get(incarnation.number, length)
        s.journals[incarnation].cut_to(proposal.lengths[incarnation.number])
    for voter in _voters(s, broker, proposal.below):
        if voter == s.name:
            receive_accept(s, s.name, _accept_for(s, broker, proposal, s.incarnation))
        else:
            s.send(voter, _accept_for(s, broker, proposal, s.current(voter)))


def _accept_for(s: BrokerState, broker: str, proposal: Proposal, voter: Incarnation) -> Accept:
    """Return the accept message for one acceptor, with the entries that its promise lacked."""
    promise = proposal.promises.get(voter)
    copies = []
    for number, length in proposal.lengths.items():
        incarnation = Incarnation(broker, number)
        journal = s.journals[incarnation]
        known = 0 if promise is None else min(length, _length_in(promise.state, incarnation))
        copies.append(journal.copy(incarnation, max(known, journal.place_after(s.stable)), length))
    return Accept(broker, proposal.below, proposal.ballot, dict(proposal.lengths), copies)


def repeat_proposals(s: BrokerState, peer: str) -> None:
    """Send the current proposals to a new incarnation of an acceptor."""
    for broker, proposal in s.proposals.items():
        if peer in _voters(s, broker, proposal.below):
            if proposal.phase is ProposalPhase.PREPARING:
                s.send(peer, Prepare(broker, proposal.below, proposal.ballot))
            else:
                s.send(peer, _accept_for(s, broker, proposal, s.current(peer)))


def _length_in(state: AcceptorState, incarnation: Incarnation) -> int:
    return next((copy.length for copy in state.copies if Incarnation(*copy.incarnation) == incarnation), 0)


# ---- voting ------------------------------------------------------------------------------------------------


def receive_prepare(s: BrokerState, proposer: str, message: Prepare) -> None:
    """Answer phase 1 as an acceptor. A recovering acceptor answers after its recovery."""
    acceptor = s.acceptors.get(message.broker)
    if acceptor is None or (message.broker == s.name and message.below > s.number):
        return
    if not acceptor.has_recovered:
        acceptor.unanswered[proposer] = message
        return
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
    s.disk.changed_acceptors.add(message.broker)
    say(s, proposer, Promise(state_of(s, message.broker, message.below), message.below, ballot))
    if proposer != s.name:
        wait_for_others(s, message.broker)


def receive_promise(s: BrokerState, voter: str, message: Promise) -> None:
    """Count a promise at the proposer."""
    proposal = s.proposals.get(message.state.broker)
    if proposal is not None and proposal.ballot == message.ballot and proposal.phase is ProposalPhase.PREPARING:
        proposal.promises[s.current(voter) if voter != s.name else s.incarnation] = message
        _advance_proposal(s, message.state.broker)


def receive_refused(s: BrokerState, _voter: str, message: Refused) -> None:
    """Retry with a larger ballot, because another proposal is ahead. Wait first if that one may still complete."""
    s.ballot_round = max(s.ballot_round, Ballot(*message.promised).round)
    proposal = s.proposals.get(message.broker)
    if proposal is not None and proposal.ballot == message.ballot:
        del s.proposals[message.broker]
        s.due |= Due.MEMBERSHIP
        if message.broker == s.name:
            s.set_timer(f"{PROPOSAL_TIMER}/{message.broker}", _patience_us(s, message.broker) // 8)
        else:
            wait_for_others(s, message.broker)


def receive_accept(s: BrokerState, proposer: str, message: Accept) -> None:
    """Answer phase 2 as an acceptor."""
    acceptor = s.acceptors[message.broker]
    ballot = Ballot(*message.ballot)
    if ballot < acceptor.promised or not acceptor.has_recovered:
        return
    acceptor.promised = ballot
    acceptor.promised_below = max(acceptor.promised_below, message.below)
    if proposer != s.name:
        wait_for_others(s, message.broker)
    take_copies(s, message.copies)
    for number, length in message.lengths.items():
        acceptor.accepted[number] = ballot, length
    s.disk.changed_acceptors.add(message.broker)
    say(s, proposer, Accepted(message.broker, message.below, ballot))


def receive_accepted(s: BrokerState, voter: str, message: Accepted) -> None:
    """Count an acceptance at the proposer."""
    proposal = s.proposals.get(message.broker)
    if proposal is not None and proposal.ballot == message.ballot:
        proposal.accepted.add(s.current(voter) if voter != s.name else s.incarnation)
        _advance_proposal(s, message.broker)

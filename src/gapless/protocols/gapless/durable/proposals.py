"""Proposes changes of records, one at a time for each record, with the ballots that `register` explains.

`ProposalPhase` describes the phases. A change that has succeeded or was rejected is moved to `finished`, and `service`
notifies its caller.
"""

from hashlib import blake2b
from typing import Any

from gapless.protocols.gapless.disk import say
from gapless.protocols.gapless.durable import register
from gapless.protocols.gapless.durable.client_messages import ClientAttach, ClientMove
from gapless.protocols.gapless.durable.messages import AcceptRecord, DurableRecord, PrepareRecord, Version, Vote
from gapless.protocols.gapless.durable.rules import Asker, Refusal, apply
from gapless.protocols.gapless.durable.state import NO_VERSION, Change, Proposal, ProposalPhase
from gapless.protocols.gapless.identities import Ballot
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["propose", "receive_vote", "tick"]

ATTEMPTS_MAX = 6
REPEAT_TICKS = 10
"""The number of ticks after which unanswered requests are repeated."""
IDLE_MAX = 10_000
"""The number of records without pending changes whose ballots are remembered for reuse."""


def propose(s: BrokerState, change: Change) -> None:
    """Queue the change behind earlier changes of the same record."""
    name = change.command.name
    proposal = s.durable.proposals.get(name)
    if proposal is None:
        proposal = s.durable.leading.pop(name) if name in s.durable.leading else Proposal(name)
        s.durable.proposals[name] = proposal
    proposal.changes.append(change)
    if len(proposal.changes) == 1:
        _begin(s, proposal)


def _begin(s: BrokerState, proposal: Proposal) -> None:
    """Start the first change of the queue, with the current ballot if that may still be valid."""
    command = proposal.changes[0].command
    if isinstance(command, ClientAttach) and command.is_shared:
        proposal.phase, proposal.version = ProposalPhase.READING, NO_VERSION
        proposal.is_leader = False
        _ask(s, proposal)
    elif proposal.is_leader and not isinstance(command, ClientAttach | ClientMove):
        _accept(s, proposal, proposal.record)
    else:
        _prepare(s, proposal)


def _prepare(s: BrokerState, proposal: Proposal) -> None:
    s.durable.round += 1
    proposal.phase, proposal.is_leader = ProposalPhase.PREPARING, False
    proposal.version = Version(Ballot(s.durable.round, f"{s.name}/{s.number}"), 0)
    _ask(s, proposal)


def _accept(s: BrokerState, proposal: Proposal, record: DurableRecord | None) -> None:
    change = proposal.changes[0]
    try:
        changed = apply(change, record, _asker(s, change, record))
    except Refusal as refusal:
        change.refuse(str(refusal))
        _finish(s, proposal)
        return
    change.before, change.after = record, changed
    proposal.phase, proposal.record = ProposalPhase.ACCEPTING, changed
    proposal.version = Version(proposal.version.ballot, proposal.version.serial + 1)
    _ask(s, proposal)


def _asker(s: BrokerState, change: Change, record: DurableRecord | None) -> Asker:
    owner = None if record is None else record.owner
    is_live = owner is not None and s.is_live(owner.broker) and s.current(owner.broker).number == owner.number
    return Asker(
        s.incarnation, change.client, s.final.timestamp, max(s.clock.now, s.clock.last), s.owners,
        frozenset({owner} if owner is not None and is_live else ()),
    )  # fmt: skip


def _finish(s: BrokerState, proposal: Proposal) -> None:
    s.durable.finished.append(proposal.changes.popleft())
    proposal.attempts = 0
    proposal.done += 1
    if proposal.changes:
        _begin(s, proposal)
        return
    del s.durable.proposals[proposal.name]
    if proposal.is_leader:
        s.durable.leading[proposal.name] = proposal
        forget_oldest(s.durable.leading, IDLE_MAX)


# ---- messages ------------------------------------------------------------------------------------------------


def _ask(s: BrokerState, proposal: Proposal) -> None:
    """Send the request of the current phase to all replicas."""
    proposal.request, s.durable.next_request = s.durable.next_request, s.durable.next_request + 1
    proposal.votes, proposal.waits = {}, REPEAT_TICKS
    _send(s, proposal)


def _send(s: BrokerState, proposal: Proposal) -> None:
    message = _question(s, proposal)
    others = [name for name in register.replicas(s) if name not in proposal.votes]
    for name in others:
        if name != s.name:
            s.send(name, message)
    if s.name in others:
        answer = (
            register.receive_accept(s, message)
            if isinstance(message, AcceptRecord)
            else register.receive_prepare(s, message)
        )
        if answer is not None:
            say(s, s.name, answer)


def _question(s: BrokerState, proposal: Proposal) -> Any:
    change = proposal.changes[0]
    if proposal.phase is ProposalPhase.ACCEPTING:
        assert proposal.record is not None, "what is accepted was changed before"
        return AcceptRecord(proposal.request, proposal.version, proposal.record)
    user = s.owners.user_of(change.client) if change.client else ""
    return PrepareRecord(proposal.request, proposal.name, proposal.version.ballot, user)


def receive_vote(s: BrokerState, voter: str, vote: Vote) -> None:
    s.durable.round = max(s.durable.round, vote.held.promised.round)
    proposal = s.durable.proposals.get(vote.held.name)
    if proposal is None or proposal.request != vote.request:
        return
    match proposal.phase:
        case ProposalPhase.WAITING:
            return
        case ProposalPhase.PREPARING if not vote.refusal and vote.held.promised != proposal.version.ballot:
            _wait(s, proposal)
            return
        case ProposalPhase.ACCEPTING if vote.held.version != proposal.version:
            _wait(s, proposal)
            return
    proposal.votes[voter] = vote
    _advance_proposal(s, proposal)


def _wait(s: BrokerState, proposal: Proposal) -> None:
    """Pause before the next attempt because another proposer is ahead. The pause differs between brokers."""
    proposal.phase, proposal.is_leader = ProposalPhase.WAITING, False
    proposal.attempts = min(proposal.attempts + 1, ATTEMPTS_MAX)
    dice = blake2b(f"{s.name}/{proposal.name}/{s.durable.round}".encode(), digest_size=4).digest()
    proposal.waits = 1 + int.from_bytes(dice, "big") % (1 << proposal.attempts)


def _advance_proposal(s: BrokerState, proposal: Proposal) -> None:
    names = register.counted(s, {name: vote.incarnations for name, vote in proposal.votes.items()})
    if len(names) < register.majority(s):
        return
    votes = [proposal.votes[name] for name in names]
    if proposal.phase is ProposalPhase.ACCEPTING:
        proposal.is_leader = True
        _finish(s, proposal)
        return
    newest = max(votes, key=lambda vote: vote.held.version).held
    refusal = next((vote.refusal for vote in votes if vote.refusal), "")
    if refusal and (newest.record is None or newest.record.is_over):
        proposal.changes[0].refuse(refusal)
        _finish(s, proposal)
    elif proposal.phase is ProposalPhase.PREPARING:
        _accept(s, proposal, newest.record)
    elif not _is_known(s, proposal, newest.record, all(vote.held.version == newest.version for vote in votes)):
        _prepare(s, proposal)


def _is_known(s: BrokerState, proposal: Proposal, record: DurableRecord | None, is_agreed: bool) -> bool:
    """Return whether the change would leave an agreed record unchanged (in phase READING), so that it has succeeded
    already."""
    change = proposal.changes[0]
    if record is None or not is_agreed:
        return False
    try:
        if apply(change, record, _asker(s, change, record)) is not record:
            return False
    except Refusal as refusal:
        change.refuse(str(refusal))
    else:
        change.before = change.after = record
    _finish(s, proposal)
    return True


def tick(s: BrokerState) -> None:
    """Restart changes whose pause is over, and repeat unanswered requests."""
    for proposal in list(s.durable.proposals.values()):
        proposal.waits -= 1
        if proposal.waits > 0:
            continue
        if proposal.phase is ProposalPhase.WAITING:
            _prepare(s, proposal)
        else:
            proposal.waits = REPEAT_TICKS
            _send(s, proposal)

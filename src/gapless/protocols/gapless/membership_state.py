"""The state of a broker about incarnations: its stage, its promises and proposals, and the handover of its region."""

from dataclasses import dataclass, field
from enum import Enum

from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.gapless.membership_messages import Contribution, Prepare, Promise
from gapless.protocols.gapless.routing_state import Link
from gapless.protocols.gapless.topology import Region
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = ["STAGES", "Acceptor", "Handover", "Proposal", "ProposalPhase", "Stage"]


class Stage(Enum):
    """The stage of an incarnation.

    A network's first incarnations begin as JOINED. A RECOVERING one does not know its predecessor's promises: it does
    not vote, hold entries or contribute until enough members of each of its electorates have answered (`recovery`). One
    that has joined while a larger handover elsewhere removed its links has to join again.
    """

    RECOVERING = "recovering"
    JOINING = "joining"
    JOINED = "joined"
    EXCLUDED = "excluded"


STAGES: Transitions = {
    Stage.RECOVERING: {Stage.JOINING, Stage.EXCLUDED},
    Stage.JOINING: {Stage.JOINED, Stage.EXCLUDED},
    Stage.JOINED: {Stage.JOINING, Stage.EXCLUDED},
    Stage.EXCLUDED: set(),
}
NO_BALLOT = Ballot(0, "")


@dataclass(eq=False)
class Acceptor:
    """The promises and votes of this broker about the journals of another."""

    promised_below: int = 0
    promised: Ballot = NO_BALLOT
    accepted: dict[int, tuple[Ballot, int]] = field(default_factory=dict)
    """The accepted length of each incarnation's journal, and the ballot under which it was accepted."""
    has_recovered: bool = True
    """Whether the acceptor knows its predecessor's promises."""
    unanswered: dict[str, Prepare] = field(default_factory=dict)
    """The last proposal of each proposer that arrived before the acceptor had recovered."""


class ProposalPhase(Enum):
    """The phase of a proposal. The proposal is dropped when it is decided or another one is ahead."""

    PREPARING = "preparing"
    ACCEPTING = "accepting"


PROPOSALS: Transitions = {ProposalPhase.PREPARING: {ProposalPhase.ACCEPTING}, ProposalPhase.ACCEPTING: set()}


@dataclass(eq=False)
class Proposal:
    """This broker's proposal to seal another broker's journals below a number."""

    below: int
    ballot: Ballot
    phase: ProposalPhase = ProposalPhase.PREPARING
    promises: dict[Incarnation, Promise] = field(default_factory=dict)
    accepted: set[Incarnation] = field(default_factory=set)
    lengths: dict[int, int] = field(default_factory=dict)


follow(Proposal, "phase", PROPOSALS)


@dataclass(eq=False)
class Handover:
    """The handover of one region in which this broker takes part."""

    region: Region
    removed: list[Link] = field(default_factory=list)
    """The links that were removed in this handover, and in the smaller ones that it replaced."""
    own: Contribution | None = None

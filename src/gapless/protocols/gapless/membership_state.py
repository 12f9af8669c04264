"""The state of a broker that concerns incarnations: stage, promises and proposals, handover of its region."""

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

    The first incarnation begins as JOINED. A recovering one does not know its predecessor's promises: it neither votes,
    holds nor contributes before enough of each electorate that it belongs to have answered (`recovery`). One that has
    joined while a larger handover elsewhere removed its links has to join again.
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
    """By incarnation: the length, and the ballot under which it was accepted."""
    has_recovered: bool = True
    """Whether it knows its predecessor's promises."""
    unanswered: dict[str, Prepare] = field(default_factory=dict)
    """By proposer: the last proposal that arrived before that."""


class ProposalPhase(Enum):
    """The phase of a proposal, which is dropped when it is decided or another one is ahead."""

    PREPARING = "preparing"
    ACCEPTING = "accepting"


PROPOSALS: Transitions = {ProposalPhase.PREPARING: {ProposalPhase.ACCEPTING}, ProposalPhase.ACCEPTING: set()}


@dataclass(eq=False)
class Proposal:
    """This broker's proposal to seal the journals of another below a number."""

    below: int
    ballot: Ballot
    phase: ProposalPhase = ProposalPhase.PREPARING
    promises: dict[Incarnation, Promise] = field(default_factory=dict)
    accepted: set[Incarnation] = field(default_factory=set)
    lengths: dict[int, int] = field(default_factory=dict)


follow(Proposal, "phase", PROPOSALS)


@dataclass(eq=False)
class Handover:
    """The handover of one region that this broker takes part in."""

    region: Region
    removed: list[Link] = field(default_factory=list)
    """The links that it has removed, in this handover and the smaller ones that it replaced."""
    own: Contribution | None = None

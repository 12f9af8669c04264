"""Identities of broker incarnations, subscriptions and their attempts; the status of a broker; publication times."""

from typing import NamedTuple

__all__ = ["TIMES_MAX", "Attempt", "Ballot", "Incarnation", "Name", "Status", "Timed"]

TIMES_MAX = 64
"""The maximum number of `Timed` records that a publisher remembers."""


class Incarnation(NamedTuple):
    """One run of a broker, from its start until it is excluded or restarts without its memory."""

    broker: str
    number: int


class Name(NamedTuple):
    """Identifies a subscription or an advertisement: its client, and the client's name for it."""

    client: str
    local: str


class Attempt(NamedTuple):
    """Identifies one attempt of a client to subscribe or advertise. It grows with each session, and with each restart
    within a session."""

    session: int
    restart: int


class Timed(NamedTuple):
    """The timestamps of a range of publication numbers: all are between `begin` and `end`, inclusive."""

    first: int
    last: int
    begin: int
    end: int


class Ballot(NamedTuple):
    """The number of a proposal to seal journals. The largest one wins."""

    round: int
    proposer: str


class Status(NamedTuple):
    """The known status of a broker. Statuses only grow; two are merged by taking the maximum of each field."""

    number: int = 0
    """The broker's latest incarnation."""
    phase: int = 1
    """The phase of that incarnation: odd if it has joined the tree, even if it is joining."""
    sealed_below: int = 0
    """All incarnations with smaller numbers are excluded, and their journals are sealed."""
    lengths: tuple[tuple[int, int], ...] = ()
    """For each sealed incarnation that admitted anything: its number, and the length of its journal. The length shrinks
    only if no broker has the remaining entries any more."""
    forgotten_below: int = 0
    """Incarnations with smaller numbers never return, as declared by an operator, so no broker waits for them."""
    deleted: tuple[tuple[str, int], ...] = ()
    """The timestamps up to which an operator had this broker delete the events of publishers."""

    @property
    def is_excluded(self) -> bool:
        return self.sealed_below > self.number

    @property
    def is_forgotten(self) -> bool:
        return self.forgotten_below > self.number

    @property
    def is_joined(self) -> bool:
        return self.phase % 2 == 1 and not self.is_excluded

"""The names of brokers' incarnations, of subscriptions and of their attempts, the status of a broker, and timestamps of
publications."""

from typing import NamedTuple

__all__ = ["TIMES_MAX", "Attempt", "Ballot", "Incarnation", "Name", "Status", "Timed"]

TIMES_MAX = 64
"""The maximum number of `Timed` that a publisher remembers."""


class Incarnation(NamedTuple):
    """One run of a broker, from its start until it is excluded or restarts without memory."""

    broker: str
    number: int


class Name(NamedTuple):
    """A subscription or an advertisement: its client, and the client's name for it."""

    client: str
    local: str


class Attempt(NamedTuple):
    """An attempt of a client to subscribe or advertise: grows with each session, and with each restart within it."""

    session: int
    restart: int


class Timed(NamedTuple):
    """The timestamps of publications from the first number to the last: neither before `begin` nor after `end`."""

    first: int
    last: int
    begin: int
    end: int


class Ballot(NamedTuple):
    """The number of a proposal to seal journals. Larger ones win."""

    round: int
    proposer: str


class Status(NamedTuple):
    """The known status of a broker. Statuses only grow, and merge by the maximum of each part."""

    number: int = 0
    """Its latest incarnation."""
    phase: int = 1
    """The phase of that incarnation: odd if it has joined the tree, even if it is joining."""
    sealed_below: int = 0
    """All incarnations with smaller numbers are excluded, and their journals are sealed."""
    lengths: tuple[tuple[int, int], ...] = ()
    """For each sealed incarnation that admitted anything: its number, and the length of its journal. The length shrinks
    only if no broker has the rest any more."""
    forgotten_below: int = 0
    """An operator declared that incarnations with smaller numbers never return, so no broker waits for them."""
    deleted: tuple[tuple[str, int], ...] = ()
    """By publisher: the timestamps up to which an operator had this broker delete events."""

    @property
    def is_excluded(self) -> bool:
        return self.sealed_below > self.number

    @property
    def is_forgotten(self) -> bool:
        return self.forgotten_below > self.number

    @property
    def is_joined(self) -> bool:
        return self.phase % 2 == 1 and not self.is_excluded

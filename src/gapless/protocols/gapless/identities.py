"""The names of brokers' incarnations, of subscriptions and of their attempts, and the status of a broker."""

from typing import NamedTuple

__all__ = ["Attempt", "Ballot", "Incarnation", "Name", "Status"]


class Incarnation(NamedTuple):
    """One run of a broker, from its start until it is excluded or restarts without memory."""

    broker: str
    number: int


class Name(NamedTuple):
    """A subscription or an advertisement: its client, and what the client calls it."""

    client: str
    local: str


class Attempt(NamedTuple):
    """One attempt of a client to subscribe or advertise: grows with each session, and with each restart in it."""

    session: int
    restart: int


class Ballot(NamedTuple):
    """The number of a proposal to seal journals. Larger ones win."""

    round: int
    proposer: str


class Status(NamedTuple):
    """The known status of a broker. Statuses only grow, and merge by the maximum of each part."""

    number: int = 0
    """Its latest incarnation."""
    phase: int = 1
    """Of that incarnation: odd if it has joined the tree, even if it is joining."""
    sealed_below: int = 0
    """All incarnations with smaller numbers are excluded, and their journals are sealed."""
    lengths: tuple[tuple[int, int], ...] = ()
    """For each sealed incarnation that admitted anything: its number, and the length of its journal. It shrinks only
    when nobody holds the rest any more."""
    forgotten_below: int = 0
    """An operator said that incarnations with smaller numbers never return: nobody waits for them."""
    deleted: tuple[tuple[str, int], ...] = ()
    """An operator had this broker delete the events of these publishers, up to these timestamps."""

    @property
    def is_excluded(self) -> bool:
        return self.sealed_below > self.number

    @property
    def is_forgotten(self) -> bool:
        return self.forgotten_below > self.number

    @property
    def is_joined(self) -> bool:
        return self.phase % 2 == 1 and not self.is_excluded

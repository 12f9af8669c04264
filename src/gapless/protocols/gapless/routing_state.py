"""The state of a broker that concerns the tree: links, routing tables, and the current wave."""

from dataclasses import dataclass, field
from typing import TypeAlias

from gapless.filters import Filter
from gapless.filters.cover_index import CoverIndex
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name

__all__ = ["Advertisement", "Link", "LinkKey", "Subscription", "WaveState"]

LinkKey: TypeAlias = tuple[str, int]
"""The peer and the tag of a link."""


@dataclass(eq=False)
class Link:
    """One installation of a link of the tree."""

    peer: str
    tag: int
    via: frozenset[str]
    """The excluded brokers that it bypasses."""
    advertisements: dict[Name, "Advertisement"] = field(default_factory=dict)
    """The advertisements that arrived over it."""
    sent: dict[Name, tuple[Attempt, bool]] = field(default_factory=dict)
    """The subscriptions that the peer knows from here: attempt, and whether it knows that it is active."""
    covers: CoverIndex[Name] = field(default_factory=CoverIndex)
    """The active ones of these, which can represent others."""
    represented: dict[Name, Name] = field(default_factory=dict)
    """Subscriptions that are not sent, because an active one that covers them was."""
    represents: dict[Name, dict[Name, None]] = field(default_factory=dict)
    """The represented subscriptions, by representative."""

    @property
    def key(self) -> LinkKey:
        return self.peer, self.tag


@dataclass(eq=False)
class Subscription:
    """A subscription in the routing table."""

    name: Name
    filter: Filter
    attempt: Attempt
    origin: Link | None
    """The link over which it arrived; None if its client is here."""
    is_active: bool


@dataclass(eq=False)
class Advertisement:
    """An advertisement in the routing table."""

    name: Name
    filter: Filter
    attempt: Attempt
    origin: Link | None
    home: Incarnation
    """Its publisher's broker."""
    base: int
    """The last number of the publisher before it came there."""
    last_seen: int = 0
    """The largest number of the publisher that any acknowledging broker has seen."""
    waits_for: set[LinkKey] = field(default_factory=set)
    """The links that have not acknowledged it."""
    is_stable: bool = False
    """At its client's broker: whether all brokers have acknowledged it."""

    @property
    def publisher(self) -> str:
        return self.name.client


@dataclass(eq=False)
class WaveState:
    """The current wave."""

    timestamp: int
    origin: Link | None
    need: int
    """Own journal entries that have to be released before the echo."""
    waits_for: set[LinkKey]
    """The links that have not echoed."""
    sealed: dict[Incarnation, int] = field(default_factory=dict)
    final: int = 0
    batch: int = 0
    """The batch after which the clock is on the disk."""
    newest: int = 0

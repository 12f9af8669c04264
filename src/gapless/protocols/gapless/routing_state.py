"""The state of a broker about the tree: links, routing tables, and the current wave."""

from dataclasses import dataclass, field
from typing import TypeAlias

from gapless.filters import Filter
from gapless.filters.cover_index import CoverIndex
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name

__all__ = ["Advertisement", "Link", "LinkKey", "Subscription", "WaveState"]

LinkKey: TypeAlias = tuple[str, int]
"""Identifies a link: the peer, and the link's tag."""


@dataclass(eq=False)
class Link:
    """One installation of a link of the tree."""

    peer: str
    tag: int
    via: frozenset[str]
    """The excluded brokers that the link bypasses."""
    advertisements: dict[Name, "Advertisement"] = field(default_factory=dict)
    """The advertisements that arrived over the link."""
    sent: dict[Name, tuple[Attempt, bool]] = field(default_factory=dict)
    """The subscriptions that were sent over the link: the attempt, and whether the peer knows that it is active."""
    covers: CoverIndex[Name] = field(default_factory=CoverIndex)
    """The active subscriptions in `sent`, which can represent others."""
    represented: dict[Name, Name] = field(default_factory=dict)
    """The subscriptions that are not sent because an active one covers them, each with its representative."""
    represents: dict[Name, dict[Name, None]] = field(default_factory=dict)
    """The represented subscriptions of each representative."""

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
    """The link over which the subscription arrived; None if its client has a session here."""
    is_active: bool


@dataclass(eq=False)
class Advertisement:
    """An advertisement in the routing table."""

    name: Name
    filter: Filter
    attempt: Attempt
    origin: Link | None
    home: Incarnation
    """The incarnation of the publisher's broker."""
    base: int
    """The publisher's last number before it attached to that broker."""
    last_seen: int = 0
    """The largest number of the publisher that any acknowledging broker has seen."""
    waits_for: set[LinkKey] = field(default_factory=set)
    """The links that have not acknowledged the advertisement."""
    is_stable: bool = False
    """Whether all brokers have acknowledged the advertisement. Known only at the broker of its client."""

    @property
    def publisher(self) -> str:
        return self.name.client


@dataclass(eq=False)
class WaveState:
    timestamp: int
    origin: Link | None
    need: int
    """The number of the broker's own journal entries that must be released before it echoes."""
    waits_for: set[LinkKey]
    """The links that have not echoed."""
    sealed: dict[Incarnation, int] = field(default_factory=dict)
    final: int = 0
    batch: int = 0
    """The number of the disk batch that contains the clock."""
    newest: int = 0

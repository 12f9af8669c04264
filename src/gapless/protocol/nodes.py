"""Defines nodes: their place in the network, and the queries that they answer besides their steps."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from gapless.disk import DiskContents
from gapless.overlay import Overlay
from gapless.protocol.effects import Effect
from gapless.protocol.inputs import Input

__all__ = ["BrokerNode", "BrokerPlace", "ClientNode", "ClientPlace", "Node", "Owners"]


class Owners(msgspec.Struct, frozen=True):
    """Functions that return facts about the users of clients. The answers may change while the broker runs."""

    user_of: Callable[[str], str] = lambda client: ""
    """Returns the user of a client."""
    names_max: Callable[[str], int] = lambda user: 0
    """Returns how many durable subscriptions a user may have in the network; 0 means no limit."""
    has_tickets: bool = False
    """Whether subscriptions need tickets, because rights can be withdrawn."""
    ticket: Callable[[str, str, int], bytes] = lambda client, text, position: b""
    """Returns a proof that a client had a subscription with this filter from a position on, or an empty one if no
    ticket is needed."""


class BrokerPlace(msgspec.Struct, frozen=True):
    """The environment of a broker at its start. The broker uses the overlay only up to distance f + 1."""

    name: str
    overlay: Overlay
    f: int
    incarnation: int = 0
    disk: DiskContents | None = None
    """The contents of the broker's disk, which may be empty; None if it has no disk."""
    owners: Owners = Owners()
    """The users of clients; in a network without users, clients have none."""


class ClientPlace(msgspec.Struct, frozen=True):
    """The environment of a client: its broker, and all brokers that it can use, ordered by distance."""

    name: str
    broker: str
    contacts: tuple[str, ...]


class Node(Protocol):
    """A broker or a client of some protocol."""

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input, and return its effects in order."""
        ...

    def state_size(self) -> Mapping[str, int]:
        """Return the amount of state by kind, such as subscriptions or retained events."""
        ...


class BrokerNode(Node, Protocol):
    """A broker of some protocol. The default answers to queries are those of protocols without the feature."""

    def overview(self) -> dict[str, Any]:
        """Return the broker's state for operators."""
        return {}

    def sessions(self) -> list[str]:
        """Return the clients with sessions at this broker."""
        return []

    def has_session(self, client: str) -> bool:
        """Return whether the client's session is at this broker."""
        return False

    def has_deleted(self, publisher: str) -> bool:
        """Return whether the publisher's events up to some time are deleted from history, or will be."""
        return False

    def may_hold_events_of(self, publisher: str) -> bool:
        """Return whether this broker's history may contain events of the publisher."""
        return False

    def held_by(self, client: str) -> dict[str, str]:
        """Return the filters of a client's subscriptions, by name."""
        return {}

    def names_held(self, client: str) -> tuple[Collection[str], Collection[str]]:
        """Return a client's names for its subscriptions, including those to history, and for its
        advertisements.
        """
        return (), ()

    def reads_history(self, client: str) -> bool:
        """Return whether the client is reading history."""
        return False

    def take_history_bytes(self, client: str) -> int:
        """Return how many bytes of history were sent to the client since the last call of this method."""
        return 0

    def measured(self) -> Mapping[str, Mapping[int, int]]:
        """Return the protocol's own measurements, if an option enables them: for each kind, the frequency of each
        number.
        """
        return {}


class ClientNode(Node, Protocol):
    """A client of some protocol. The default answers to queries are those of protocols without the feature."""

    @property
    def broker(self) -> str:
        """Return the broker that serves the client or that it is trying to reach, or an empty string if unknown."""
        return ""

    @property
    def window(self) -> int:
        """Return how many publications may wait for their confirmation; the client rejects more."""
        return 1_000

    @property
    def delivery_window(self) -> int:
        """Return how many deliveries a broker sends ahead of the application, or 0 without flow control."""
        return 0

    @property
    def is_attached(self) -> bool | None:
        """Return whether a broker holds the client's session and knows its subscriptions, or None if there are no
        sessions.
        """
        return None

    @property
    def standing(self) -> tuple[str, int, int]:
        """Return the broker of the client's session, the client's attempt, and the number of its last event."""
        return "", 0, 0

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Continue as a client with the same name that has ended. This must be called before the client starts."""
        raise AssertionError("the protocol has no sessions")

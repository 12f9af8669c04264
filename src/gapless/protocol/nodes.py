"""What a node is, where it stands, and what it can be asked beside its steps."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from gapless.disk import DiskContents
from gapless.overlay import Overlay
from gapless.protocol.effects import Effect
from gapless.protocol.inputs import Input

__all__ = ["BrokerNode", "BrokerPlace", "ClientNode", "ClientPlace", "Node", "Owners"]


class Owners(msgspec.Struct, frozen=True):
    """To whom clients belong, in a network with users. What is said here may change while the broker runs."""

    user_of: Callable[[str], str] = lambda client: ""
    """The user whose client this is."""
    names_max: Callable[[str], int] = lambda user: 0
    """How many durable subscriptions of the network may be a user's; 0 if there is no limit."""
    may_read_history: Callable[[str], bool] = lambda client: True
    """Whether the client may read what was published before its subscriptions began."""
    ticket: Callable[[str, str, int], bytes] = lambda client, text, position: b""
    """What proves to any broker that this client has had a subscription with this filter from a position on; empty if
    nothing has to."""


class BrokerPlace(msgspec.Struct, frozen=True):
    """Where a broker stands at its start. It knows the overlay around it up to distance f + 1 and relies on no more."""

    name: str
    overlay: Overlay
    f: int
    incarnation: int = 0
    disk: DiskContents | None = None
    """What its disk holds, which may be nothing; None if it has no disk."""
    owners: Owners = Owners()
    """Without users, clients belong to nobody."""


class ClientPlace(msgspec.Struct, frozen=True):
    """Where a client stands: its broker, and all brokers it may turn to (its own first, then by distance)."""

    name: str
    broker: str
    contacts: tuple[str, ...]


class Node(Protocol):
    """A broker or a client of some protocol."""

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes, in order."""
        ...

    def state_size(self) -> Mapping[str, int]:
        """How much the node keeps, by kind (for example subscriptions, retained events)."""
        ...


class BrokerNode(Node, Protocol):
    """A broker of some protocol. Beyond its steps it can be asked how it is; those that do not know keep the answers
    that stand here."""

    def overview(self) -> dict[str, Any]:
        """What an operator should see of it."""
        return {}

    def sessions(self) -> list[str]:
        """The clients whose sessions are here."""
        return []

    def has_session(self, client: str) -> bool:
        """Whether the client's session is here."""
        return False

    def held_by(self, client: str) -> dict[str, str]:
        """The filters of a client's subscriptions, by name."""
        return {}

    def names_held(self, client: str) -> tuple[Collection[str], Collection[str]]:
        """What a client calls its subscriptions, those that read history included, and its advertisements."""
        return (), ()

    def reads_history(self, client: str) -> bool:
        """Whether the client is brought what was published before."""
        return False

    @property
    def is_working(self) -> bool:
        """Whether it works on an input in pieces, and lets others wait behind it."""
        return False

    def measured(self) -> Mapping[str, Mapping[int, int]]:
        """What it measured of itself, where an option asks for that: how often each number came, by what it counts."""
        return {}


class ClientNode(Node, Protocol):
    """A client of some protocol. It can be asked who serves it; those that do not know keep the answers that stand
    here."""

    @property
    def broker(self) -> str:
        """The broker that serves it, or is asked to; empty if it does not tell."""
        return ""

    @property
    def window(self) -> int:
        """How many publications may wait to become safe; it rejects what goes beyond."""
        return 1_000

    @property
    def delivery_window(self) -> int:
        """How many deliveries a broker sends ahead of the application; 0 if it does not wait for it."""
        return 0

    @property
    def is_attached(self) -> bool | None:
        """Whether a broker holds its session, and knows what it wants; None if there are no sessions."""
        return None

    @property
    def standing(self) -> tuple[str, int, int]:
        """Who holds its session, its attempt, and the number of its last event."""
        return "", 0, 0

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Before it starts: it goes on as a client of the same name that is no more."""
        raise AssertionError("the protocol knows no sessions")

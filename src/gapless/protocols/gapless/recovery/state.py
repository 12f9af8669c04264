"""One life of a broker: its parts, side by side, and what those that take part in a hand-over may ask of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gapless.events import Event
from gapless.protocol import SetTimer
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import Statuses
from gapless.protocols.gapless.messages import Body, Cuts, TreeBody
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.estates import Estates
from gapless.protocols.gapless.retention.event_log import EventLog
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.routing.routing_table import RoutingTable

__all__ = ["BrokerState", "Outlets"]


@dataclass(frozen=True)
class BrokerState:
    """The parts of one life."""

    options: GaplessOptions
    membership: Membership
    table: RoutingTable
    log: EventLog
    journal: Journal
    waves: Waves
    estates: Estates
    clients: Desk
    has_memory: bool = True
    """Whether it has what the broker held when it was there last."""

    @property
    def name(self) -> str:
        """Of the broker."""
        return self.membership.name


@dataclass(frozen=True)
class Outlets:
    """What a hand-over asks of its broker."""

    send: Callable[[str, Body], None]
    send_tree: Callable[[Link, TreeBody], None]
    process: Callable[[Event, str, Cuts | None, dict[str, Session], int], None]
    """Take an event of a merged log: where it came from, its past, the sessions inherited here, its journal number."""
    replay: Callable[[Link, TreeBody], None]
    """Take what came over a link before it was installed here."""
    links_changed: Callable[[], None]
    set_timer: Callable[[SetTimer], None]
    learn: Callable[[Statuses], None]
    """Take news of statuses, and tell them."""
    part: Callable[[Sequence[str]], None]
    """Tell everyone that these brokers, and others, had gone on without each other."""
    forget_after: Callable[[int], None]
    """Others had gone on without this broker: what it knew to be final after a position is so no more."""

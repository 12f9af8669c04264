"""Where a broker stands, and what it has through all its lives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gapless.overlay import Overlay
from gapless.protocol import Effect, Owners, Send
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.names.register import Register
from gapless.protocols.gapless.options import GaplessOptions

__all__ = ["Site"]


@dataclass(frozen=True)
class Site:
    """One broker's."""

    name: str
    overlay: Overlay
    f: int
    options: GaplessOptions
    disk: Disk
    register: Register
    emit: Callable[[Effect], None]
    owners: Owners

    @property
    def radius(self) -> int:
        """Who holds a journal is no farther from its broker, and hears what becomes of it."""
        return 2 * (self.f + 1)

    @cached_property
    def near(self) -> tuple[str, ...]:
        """The brokers around it that have to do with it, the nearest first: those within `radius`."""
        return self.overlay.within(self.name, self.radius)

    @property
    def waits(self) -> bool:
        """Whether brokers wait in a cut of the network."""
        return self.options.partition == "wait"

    def send(self, peer: str, message: Any) -> None:
        """To a client, or to a broker beside the streams: it may get lost."""
        self.emit(Send(peer, message))

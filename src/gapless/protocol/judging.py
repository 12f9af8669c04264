"""What a client's message asks for, for a runtime that lets not everybody do everything."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import msgspec

from gapless.events import Events

__all__ = ["Demand", "Judging"]


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a client's message asks for, so that a runtime can judge it before a broker's node sees it."""

    subscriptions: Mapping[str, str] = {}
    """Filters, by name."""
    histories: Sequence[str] = ()
    """Those of them that ask for what was published before."""
    named: Mapping[str, str] = {}
    """The names in the network that it wants to hold, by subscription; and those that it speaks of, because it should
    hold them already, by what it calls them."""
    listing: str = ""
    """If it asks which durable subscriptions there are: what it calls this question."""
    advertisements: Mapping[str, str] = {}
    events: Events = []
    ended: str = ""
    """A subscription or an advertisement that it ends."""
    act: str = ""
    """If it changes what others may rely on: the key of that event in audit logs."""
    is_whole: bool = False
    """Whether the client has no other subscriptions and advertisements than these."""
    is_resuming: bool = False
    """Whether the client goes on with its session, and what that holds. If some of it is refused, the rewritten message
    does not go on: the client says again what it holds."""
    is_passing: bool = False
    """Whether nothing stays of it: the subscription is only what the call is about."""
    is_exact: bool = False
    """Whether narrower filters would not do: what comes is chosen by somebody else."""
    resumed: Mapping[str, tuple[int, bytes]] = {}
    """Those of them that were active at another broker: from which position on they go on, and the ticket that shows it
    (`Owners.ticket`)."""


class Judging(msgspec.Struct, frozen=True):
    """How a protocol lets a runtime judge what its clients ask for.

    Its brokers then also say whose sessions they have, and what those hold (`sessions`, `held_by`, `names_held`,
    `reads_history`).
    """

    demand: Callable[[Any], Demand | None]
    """What a message of a client asks for; None if nothing."""
    rewrite: Callable[[Any, Mapping[str, str], Set[str]], Any]
    """The message with other filters for some subscriptions, and without the subscriptions and advertisements in the
    set; None if nothing is left of it."""
    text_max: int = 1 << 20
    """Characters in the names and filters that one message may bring."""
    effort_max: int = 300_000
    """Steps that it may take to understand these filters (`Filter.effort`)."""

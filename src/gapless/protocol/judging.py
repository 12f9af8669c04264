"""Descriptions of clients' requests, for a runtime that checks permissions."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import msgspec

from gapless.event_runs import EventRun
from gapless.events import Event

__all__ = ["Demand", "Judging"]


class Demand(msgspec.Struct, frozen=True, gc=False):
    """The demands of a client's message, so that a runtime can check it before a broker's node
    processes it.
    """

    subscriptions: Mapping[str, str] = {}
    """Filters by name."""
    histories: Sequence[str] = ()
    """The subscriptions that request history."""
    named: Mapping[str, str] = {}
    """By the client's own name for it: each durable subscription that the client wants to attach to,
    or that it refers to as attached.
    """
    listing: str = ""
    """If it lists durable subscriptions: its name for the request."""
    advertisements: Mapping[str, str] = {}
    events: EventRun | Sequence[Event] = ()
    ended: str = ""
    """A subscription or advertisement that it ends."""
    act: str = ""
    """If it changes something that others may rely on: the key of that event in audit logs."""
    is_resuming: bool = False
    """Whether the client continues its session, and the contents of the session. If some of it is refused, the
    rewritten message does not continue it: the client registers everything again."""
    is_passing: bool = False
    """Whether it leaves no state: the subscription is only the subject of the call."""
    is_exact: bool = False
    """Whether narrower filters are impossible, because others select the events."""
    lost: str = ""
    """A filter that lost publications of the client may have matched, which it reports. The rewritten message has a
    narrower one, under the empty name."""
    resumed: Mapping[str, tuple[int, bytes]] = {}
    """Subscriptions that were active at another broker: the position from which they continue, and the ticket that
    proves it (`Owners.ticket`)."""


class Judging(msgspec.Struct, frozen=True):
    """How a runtime can check the requests of a protocol's clients.

    Its brokers then also report their sessions, and what those hold (`sessions`, `held_by`,
    `names_held`, `reads_history`, `take_history_bytes`).
    """

    demand: Callable[[Any], Demand | None]
    """Returns the request of a client's message; None if there is none."""
    rewrite: Callable[[Any, Mapping[str, str], Set[str]], Any]
    """Returns the message with other filters for some subscriptions, and without the subscriptions
    and advertisements in the set; None if nothing remains.
    """
    text_max: int = 1 << 20
    """Maximum number of characters in the names and filters of one message."""
    effort_max: int = 300_000
    """Maximum number of steps to analyse these filters (`Filter.effort`)."""

"""Describes clients' requests for a runtime that checks permissions."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import msgspec

from gapless.event_runs import EventRun
from gapless.events import Event

__all__ = ["Demand", "Judging"]


class Demand(msgspec.Struct, frozen=True, gc=False):
    """The permissions that a client's message requires, so that a runtime can check them before a broker's node
    processes it.
    """

    subscriptions: Mapping[str, str] = {}
    """The filters of requested subscriptions, by name."""
    histories: Sequence[str] = ()
    """The subscriptions that request history."""
    named: Mapping[str, str] = {}
    """The durable subscriptions to which the client wants to attach or is attached, by the client's own name
    for each."""
    listing: str = ""
    """The client's name for a request to list durable subscriptions, or an empty string."""
    advertisements: Mapping[str, str] = {}
    events: EventRun | Sequence[Event] = ()
    ended: str = ""
    """The subscription or advertisement that the message ends, or an empty string."""
    act: str = ""
    """If the message changes something that other clients may rely on: the event's key in audit logs."""
    is_resuming: bool = False
    """Whether the client resumes its session. If part of the session's contents is refused, the rewritten message does
    not resume it, and the client registers everything again."""
    is_passing: bool = False
    """Whether the message creates no subscription, because a filter is only the subject of the call."""
    is_exact: bool = False
    """Whether filters cannot be narrowed, because other brokers select the events."""
    lost: str = ""
    """A filter that the client's lost publications may have matched. The rewritten message has a narrower one, under
    the empty name."""
    resumed: Mapping[str, tuple[int, bytes]] = {}
    """The subscriptions that were active at another broker. Each has the position from which it continues, and the
    ticket that proves it (`Owners.ticket`)."""


class Judging(msgspec.Struct, frozen=True):
    """Functions with which a runtime can check the requests of a protocol's clients.

    Its brokers then also report their sessions, and what those hold (`sessions`, `held_by`,
    `names_held`, `reads_history`, `take_history_bytes`).
    """

    demand: Callable[[Any], Demand | None]
    """Returns the permissions that a client's message requires, or None if it requires none."""
    rewrite: Callable[[Any, Mapping[str, str], Set[str]], Any]
    """Returns the message with other filters for some subscriptions, and without the registrations in the set. Returns
    None if nothing remains."""
    text_max: int = 1 << 20
    """The maximum number of characters in the names and filters of one message."""
    effort_max: int = 300_000
    """The maximum number of steps for analysing these filters (`Filter.effort`)."""

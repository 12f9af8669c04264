"""Describes a protocol for runtimes: its guarantee, its features, its nodes, and its options."""

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

import msgspec

from gapless.errors import ProtocolError
from gapless.overlay import Overlay
from gapless.protocol.inputs import Ready, Subscribe
from gapless.protocol.invariants import Invariants
from gapless.protocol.judging import Judging
from gapless.protocol.nodes import BrokerNode, BrokerPlace, ClientNode, ClientPlace

__all__ = [
    "GUARANTEE_NAMES",
    "Guarantee",
    "ProtocolSpec",
    "any_overlay",
    "check_overlay",
    "convert_options",
    "largest_f",
    "trees_only",
]

Guarantee: TypeAlias = Literal["gcd", "gfd", "topic-causal", "best-effort"]
GUARANTEE_NAMES: Mapping[Guarantee, str] = {
    "gcd": "gapless causal",
    "gfd": "gapless FIFO",
    "topic-causal": "causal per topic",
    "best-effort": "best effort",
}
"""The names of guarantees in texts. `gcd` (gapless causal delivery) and `gfd` (gapless FIFO delivery) are values in the
trace format, in JSON output, and in the audit's tables."""


def any_overlay(_overlay: Overlay, _f: int, _options: Any) -> str | None:
    """Accept any graph: a value for `ProtocolSpec.refuses`."""
    return None


def trees_only(overlay: Overlay, _f: int, _options: Any) -> str | None:
    """Reject graphs with cycles: a value for `ProtocolSpec.refuses`, and its default."""
    if overlay.is_tree:
        return None
    brokers, links = len(overlay.brokers), len(overlay.edges)
    return f"it supports only trees: {brokers} brokers need {brokers - 1} edges to form a tree, but {links} are given"


class ProtocolSpec(msgspec.Struct, frozen=True):
    """The description of a protocol: its nodes, and all properties that runtimes need."""

    name: str
    guarantee: Guarantee
    summary: str
    options: type[msgspec.Struct]
    """A frozen struct with a default for every field; scenario files set its fields by name."""
    broker: Callable[[BrokerPlace, Any], BrokerNode]
    client: Callable[[ClientPlace, Any], ClientNode]
    takes_many: bool = False
    """Whether clients support `PublishMany`."""
    paces: bool = False
    """Whether clients support `Consumed`, and receive only a bounded number of deliveries ahead of it."""
    ends_sessions: bool = False
    """Whether brokers support `EndSession`, and report their sessions."""
    forgets: bool = False
    """Whether brokers support `Forget`."""
    deletes: bool = False
    """Whether brokers support `DeleteEvents`."""
    keeps_history: bool = False
    """Whether clients support `Subscribe` with a starting position."""
    keeps_names: bool = False
    """Whether clients support durable subscriptions: `Subscribe` with a name, the calls in `gapless.names`, and the
    number of deliveries (`Deliver.deliveries`)."""
    keeps_disks: bool = False
    """Whether brokers of the protocol can use a disk."""
    copes_with: frozenset[str] = frozenset()
    """The faults under which the guarantee holds: some of crash, restart, cut, suspicion, disk, blackout, partition,
    loss, duplication and relink."""
    messages: tuple[type[msgspec.Struct], ...] = ()
    """The classes of the messages of the protocol's nodes, as tagged array-like structs. If empty, all classes in the
    package's module `messages`."""
    client_messages: tuple[type[msgspec.Struct], ...] = ()
    """The classes of the messages that clients send. A broker accepts no others from a client. If empty, all messages
    are accepted."""
    confirms: bool = False
    """Whether clients of the protocol emit `Confirmed`. Otherwise a publication is complete when it is written to the
    connection."""
    judging: Judging | None = None
    """Functions that check the requests of clients. Without them, a network cannot have permissions."""
    whole_cuts: bool = False
    """Whether, by default, subscriptions count as active when their whole cut is known (see `Ready`)."""
    topics_only: bool = False
    """Whether the protocol supports only filters of the form `topic = '…'`. Its clients reject all others."""
    refuses: Callable[[Overlay, int, Any], str | None] = trees_only
    """Returns why the protocol cannot run on an overlay with this f and these options, or None if it can. By default
    only trees are accepted."""

    electorates: Callable[[Overlay, int], Mapping[str, Collection[str]]] | None = None
    """For protocols that exclude brokers by majorities: returns the brokers that vote on each broker. The guarantee
    holds while at most f brokers of each such set are faulty. In other protocols it holds while at most f brokers
    within f + 1 links of each broker are faulty."""

    invariants: Callable[[Overlay, int, Any], Invariants] | None = None
    """Creates a checker of the protocol's invariants for a simulated run with this overlay, f and options."""

    def ready(self, call: Subscribe) -> Ready:
        """Return when the requested subscription counts as active."""
        return call.ready if self.whole_cuts else "first"


def convert_options(spec: ProtocolSpec, options: Mapping[str, Any]) -> msgspec.Struct:
    """Return the protocol's options with these fields set."""
    known = spec.options.__struct_encode_fields__
    for key in options:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the options are: {', '.join(known) or 'none'}"
            raise ProtocolError(f"protocol {spec.name!r} has no option {key!r}; {hint}")
        value = options[key]
        if isinstance(value, int | float) and not abs(value) < 2**63:  # NaN fails this comparison, too
            raise ProtocolError(f"options of protocol {spec.name!r}: {key} = {value} is out of range")
    try:
        return msgspec.convert(dict(options), spec.options)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"options of protocol {spec.name!r}: {error}") from None


def check_overlay(spec: ProtocolSpec, overlay: Overlay, f: int, options: msgspec.Struct) -> None:
    """Raise a `ProtocolError` if the protocol refuses this overlay, f and options. Every runtime calls this first."""
    reason = spec.refuses(overlay, f, options)
    if reason is not None:
        raise ProtocolError(f"protocol {spec.name!r} cannot run on this network: {reason}")


def largest_f(spec: ProtocolSpec, overlay: Overlay, options: msgspec.Struct, most: int) -> int:
    """Return the largest f from 0 to `most` that the protocol accepts for this overlay, or 0 if it accepts none."""
    return next((f for f in range(most, 0, -1) if spec.refuses(overlay, f, options) is None), 0)

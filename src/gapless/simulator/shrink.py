"""Shrinks a failing scenario: removes everything that is not needed for the same symptom.

It is delta debugging: try to remove half of the rows, then quarters, and so on down to single rows,
for clients, faults, replies, actions and brokers in turn, until a whole round changes nothing or
the time is up. A removed row takes dependent rows with it (the actions of a client, the end of a
subscription, the restart after a crash). Nothing is removed that would make the rest worse: a crash
keeps its restart, so the fault budget still holds.

Random draws of the engine depend only on the seed and the names involved, so the remaining parts
behave as before.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from gapless.overlay import from_edges
from gapless.protocol import ProtocolSpec, convert_options
from gapless.registry import find_protocol
from gapless.simulator.networks import overlay_of
from gapless.simulator.relinking import misfits
from gapless.simulator.scenario import (
    AckAction,
    AckEachAction,
    AdvertiseAction,
    Crash,
    Cut,
    DeleteEvents,
    Fault,
    Forget,
    Heal,
    InProgressAction,
    NackAction,
    Relink,
    Restart,
    Scenario,
    SetClock,
    SubscribeAction,
    Suspect,
    Trust,
    UnadvertiseAction,
    UnsubscribeAction,
)  # fmt: skip
from gapless.simulator.trial import is_invariant, try_scenario

__all__ = ["fewest", "shrink"]

OF_SUBSCRIPTIONS = (UnsubscribeAction, AckAction, AckEachAction, NackAction, InProgressAction)
"""Actions that require their subscription."""

Row = TypeVar("Row")


def shrink(
    scenario: Scenario, symptom: str, *, protocol: ProtocolSpec | None = None, seconds: float = 60.0,
    on_progress: Callable[[Scenario], None] | None = None,
) -> Scenario:  # fmt: skip
    """Return a smaller scenario with the same symptom, as small as can be found in the time."""
    return _Shrinker(symptom, protocol, time.monotonic() + seconds, on_progress).shrink(scenario)


def fewest(rows: Sequence[Row], still_fails: Callable[[list[Row]], bool]) -> list[Row]:
    """Return a subset of the rows in which each is necessary: without any single one, the failure disappears."""
    kept = list(rows)
    size = max(1, len(kept) // 2)
    while kept:
        start = 0
        before = len(kept)
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if still_fails(rest):
                kept = rest
            else:
                start += size
        if size > 1:
            size = max(1, min(size, len(kept)) // 2)
        elif len(kept) == before:
            break
    return kept


class _Shrinker:
    def __init__(
        self, symptom: str, protocol: ProtocolSpec | None, deadline: float,
        on_progress: Callable[[Scenario], None] | None,
    ) -> None:  # fmt: skip
        self._symptom = symptom
        self._protocol = protocol
        self._deadline = deadline
        self._on_progress = on_progress
        self._best: Scenario

    def shrink(self, scenario: Scenario) -> Scenario:
        self._best = scenario
        while time.monotonic() < self._deadline:
            before = self._best
            for table in ("clients", "faults", "replies", "actions"):
                rows = [row for row in getattr(self._best, table) if not _is_end(row)]
                fewest(rows, self._keeps(table))
            self._drop_brokers()
            if self._best == before:
                break
        return self._best

    def _keeps(self, table: str) -> Callable[[list[Any]], bool]:
        """Return a test for rows of the table: does the symptom persist with only these rows? If it does, the reduced
        scenario becomes the current one.
        """

        def still_fails(rows: list[Any]) -> bool:
            wanted = set(map(id, rows))
            kept = tuple(row for row in getattr(self._best, table) if id(row) in wanted or _is_end(row))
            return self._try(_consistent(msgspec.structs.replace(self._best, **{table: kept})))

        return still_fails

    def _drop_brokers(self) -> None:
        """Remove leaves of the tree that are not needed for the symptom."""
        changed = True
        while changed and self._best.network.shape == "edges":
            changed = any(self._takes(smaller) and self._try(smaller) for smaller in _without_a_leaf(self._best))

    def _takes(self, candidate: Scenario) -> bool:
        """Return whether the protocol accepts the remaining tree, and the faults still fit the budget there."""
        spec = self._protocol or find_protocol(candidate.protocol.name)
        options = convert_options(spec, candidate.protocol.options)
        overlay, f = overlay_of(candidate.network), candidate.network.f
        if spec.refuses(overlay, f, options) is not None:
            return False
        if spec.electorates is None:
            return True
        before = spec.electorates(overlay_of(self._best.network), f)
        return all(set(before[name]) == set(each) for name, each in spec.electorates(overlay, f).items())

    def _try(self, candidate: Scenario) -> bool:
        if candidate == self._best:
            return True
        if time.monotonic() >= self._deadline:
            return False
        if (
            self._symptom
            not in try_scenario(candidate, self._protocol, invariants=is_invariant(self._symptom)).symptoms
        ):
            return False
        self._best = candidate
        if self._on_progress is not None:
            self._on_progress(candidate)
        return True


def _is_end(row: Any) -> bool:
    return isinstance(row, Restart | Heal | Trust | Forget)


def _without_a_leaf(scenario: Scenario) -> list[Scenario]:
    """Return the scenarios without one leaf broker each, for leaves that have no client, no fault and no latency of
    their own.

    A neighbourhood stays larger than the number of failures in it.
    """
    network = scenario.network
    overlay = from_edges(network.edges or ())
    if len(overlay.brokers) <= max(network.f + 2, 2 * network.f + 1):
        return []
    used = {client.broker for client in scenario.clients}
    used |= {name for fault in scenario.faults for name in _names_of(fault)}
    used |= {fault.via for fault in scenario.faults if isinstance(fault, Forget)}
    used |= {name for link in network.latency.links for name in link.split("-")}
    smaller = []
    for leaf in overlay.brokers:
        if leaf not in used and len(overlay.neighbours(leaf)) == 1:
            edges = tuple(edge for edge in network.edges or () if leaf not in edge)
            smaller.append(msgspec.structs.replace(scenario, network=msgspec.structs.replace(network, edges=edges)))
    return smaller


def _names_of(fault: Fault) -> tuple[str, ...]:
    match fault:
        case Crash() | Restart() | Forget() | SetClock():
            return (fault.broker,)
        case DeleteEvents():
            return fault.publisher, fault.via
        case Cut() | Heal():
            return fault.between
        case Relink():
            return (*fault.old, *fault.new)
    return (fault.observer, fault.target)


def _consistent(scenario: Scenario) -> Scenario:
    """Return the scenario without rows that refer to removed ones."""
    clients = {client.name for client in scenario.clients}
    known = clients.union(overlay_of(scenario.network).brokers)
    actions = [action for action in scenario.actions if action.client in clients]
    opened = {action.subscription for action in actions if isinstance(action, SubscribeAction)}
    advertised = {action.advertisement for action in actions if isinstance(action, AdvertiseAction)}
    return msgspec.structs.replace(
        scenario,
        actions=tuple(
            action for action in actions
            if not (isinstance(action, OF_SUBSCRIPTIONS) and action.subscription not in opened)
            and not (isinstance(action, UnadvertiseAction) and action.advertisement not in advertised)
        ),
        replies=tuple(
            reply for reply in scenario.replies
            if reply.client in clients and (reply.subscription is None or reply.subscription in opened)
        ),
        faults=_fitting(scenario, tuple(fault for fault in scenario.faults if known.issuperset(_names_of(fault)))),
    )  # fmt: skip


def _fitting(scenario: Scenario, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return the faults without ends of removed faults, and without relinks of missing links."""
    kept = _with_beginnings(faults)
    wrong = misfits(overlay_of(scenario.network), kept)
    return tuple(fault for number, fault in enumerate(kept) if number not in wrong)


def _with_beginnings(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return the faults without ends of removed faults."""
    kept: list[Fault] = []
    begun: set[tuple[str, tuple[str, ...]]] = set()
    ends = {Restart: Crash, Forget: Crash, Heal: Cut, Trust: Suspect}
    for fault in sorted(faults, key=lambda fault: fault.at_ms):
        key = (ends.get(type(fault), type(fault)).__name__, _names_of(fault))
        if not _is_end(fault):
            begun.add(key)
            kept.append(fault)
        elif key in begun:
            begun.remove(key)
            kept.append(fault)
    return tuple(kept)

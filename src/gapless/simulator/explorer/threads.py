"""Groups the actions of a scenario into threads: those of one thread keep their order, those of different threads do
not.

The calls of a client form a thread, and so do the faults of a broker or of a pair of nodes. Actions before `from_ms` in
the scenario happen before the exploration begins, in the order of their times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gapless.errors import ScenarioError
from gapless.positions import Position
from gapless.protocol import Advertise, Publish, Subscribe, Unadvertise, Unsubscribe
from gapless.simulator.networks import microseconds
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Heal,
    PublishAction,
    Restart,
    Scenario,
    SubscribeAction,
    Suspect,
    Trust,
    UnadvertiseAction,
    UnsubscribeAction,
)

__all__ = ["Act", "Threads", "threads_of"]


@dataclass(frozen=True)
class Act:
    """One call or fault of a scenario."""

    kind: str
    names: tuple[str, ...]
    """The nodes that the action affects."""
    call: Any = None
    at_us: int = 0

    @property
    def is_publication(self) -> bool:
        return isinstance(self.call, Publish)


@dataclass(frozen=True)
class Threads:
    """All actions of a scenario, grouped by thread."""

    clients: tuple[Client, ...]
    before: tuple[Act, ...]
    """The actions before the exploration, in their order."""
    threads: tuple[tuple[Act, ...], ...]


def threads_of(scenario: Scenario, from_ms: float) -> Threads:
    """Return the actions of a scenario, grouped by thread."""
    if any(client.join_ms for client in scenario.clients):
        raise ScenarioError("clients that join late cannot be explored: leave out join_ms")
    if scenario.network.disks is not None:
        raise ScenarioError("brokers with disks cannot be explored: leave out network.disks")
    rows = sorted((*scenario.actions, *scenario.faults), key=lambda row: row.at_ms)
    before = [act for row in rows if row.at_ms < from_ms for act in _acts(row)]
    found: dict[tuple[str, ...], list[Act]] = {}
    for row in rows:
        if row.at_ms >= from_ms:
            found.setdefault(_thread(row), []).extend(_acts(row))
    return Threads(scenario.clients, tuple(before), tuple(map(tuple, found.values())))


def _thread(row: Any) -> tuple[str, ...]:
    match row:
        case Crash() | Restart():
            return (row.broker,)
        case Cut() | Heal():
            return tuple(sorted(row.between))
        case Suspect() | Trust():
            return row.observer, row.target
    return ("", getattr(row, "client", ""))


def _acts(row: Any) -> Sequence[Act]:
    at = microseconds(row.at_ms)
    match row:
        case Crash():
            return [Act("crash", (row.broker,), at_us=at)]
        case Restart(memory=False):
            return [Act("restart", (row.broker,), at_us=at)]
        case Cut(one_way=False):
            return [Act("cut", tuple(row.between), at_us=at)]
        case Heal():
            return [Act("heal", tuple(row.between), at_us=at)]
        case Suspect():
            return [Act("suspect", (row.observer, row.target), at_us=at)]
        case Trust():
            return [Act("trust", (row.observer, row.target), at_us=at)]
        case AdvertiseAction():
            return [Act("call", (row.client,), Advertise(row.advertisement, row.filter), at)]
        case UnadvertiseAction():
            return [Act("call", (row.client,), Unadvertise(row.advertisement), at)]
        case SubscribeAction():
            since = None if row.since_ms < 0 else Position.at(microseconds(row.since_ms))
            call = Subscribe(
                row.subscription, row.filter, row.ready, since, None, row.name, row.ack, row.replace, row.group
            )
            return [Act("call", (row.client,), call, at)]
        case UnsubscribeAction():
            return [Act("call", (row.client,), Unsubscribe(row.subscription), at)]
        case PublishAction():
            return [Act("call", (row.client,), Publish(row.attributes), at)] * row.count
    raise ScenarioError(f"a {type(row).__struct_config__.tag!r} of this form cannot be explored")

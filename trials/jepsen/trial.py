"""One run: clients publish and subscribe while faults strike; then the whole history is read through each broker."""

import time
from contextlib import closing
from math import inf
from pathlib import Path
from statistics import quantiles

import msgspec

from gapless.checkers import Status, check
from gapless.client import connect
from gapless.overlay import random_tree
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.settings import RuntimeSettings
from gapless.trace import Trace, merge_parts
from gapless.trace.part import read_part
from gapless.trace.part_recorder import SUFFIX
from trials.chaos import Chaos, Load
from trials.cut_proxy import CutProxyProcess, proxied
from trials.jepsen.faults import JepsenFaults, Strike
from trials.jepsen.power import PoweredFleet

__all__ = ["Second", "Trial", "try_network"]

BROKERS = 5
LOAD = Load(askers=2, rate=10.0, answerers=2, observers=3, visitors=1, readers=1)
SETTINGS = RuntimeSettings(suspect_ms=2_000, join_ms=2_000)


class Second(msgspec.Struct, frozen=True):
    """The counts and latencies of one second of a run."""

    time_ms: float
    published: int
    delivered: int
    p50_ms: float
    p99_ms: float
    """From publication to delivery, of events published after the subscription was requested."""


class Trial(msgspec.Struct, frozen=True):
    """The result of one run."""

    f: int
    seed: int
    seconds: float
    status: Status
    reason: str
    published: int
    deliveries: int
    subscriptions: int
    lost: int
    """Confirmed events that the history of some broker lacks."""
    invented: int
    """Events in a history that nobody published."""
    anomalies: list[str]
    failures: list[str]
    """Errors that clients got."""
    replaced: list[str]
    """Messages of brokers that refused their damaged data."""
    strikes: list[Strike]
    timeline: list[Second]


def try_network(
    place: Path, *, f: int, seed: int, seconds: float, kinds: tuple[str, ...], faults: int = 0,
    pauses_s: tuple[float, ...] = JepsenFaults.pauses_s,
) -> Trial:  # fmt: skip
    """Run five brokers for at least this time and number of faults; return the result."""
    begun = time.monotonic()
    tree = random_tree(BROKERS, seed=seed, max_degree=3)
    config = proxied(local_network(tree, f=f, name="jepsen", runtime=SETTINGS, data=place / "data"))
    strikes: list[Strike] = []
    replaced: list[str] = []
    made = type("TheseFaults", (JepsenFaults,), {"strikes": strikes, "replaced": replaced, "pauses_s": pauses_s})
    with PoweredFleet(config, place / "logs") as fleet, closing(CutProxyProcess(fleet.file)) as proxy:
        fleet.start_all()
        chaos = Chaos(fleet, place / "parts", seed=seed, load=LOAD, proxy=proxy, make_faults=made)
        outcome = run(chaos.run(seconds, faults=faults, kinds=kinds, at_once=f))
        histories = {name: run(_history(fleet.config.addresses[name])) for name in fleet.names}
    trace = merge_parts(place / "parts", quiesced=True)
    verdict = check(trace)
    published = {event.event_id for event in trace.events}
    lost = max(len(published - set(history)) for history in histories.values())
    invented = len({event for history in histories.values() for event in history} - published)
    reasons = [
        *([] if verdict.status == "valid" else [verdict.reason]),
        *([f"the history of a broker lacks {lost} events"] if lost else []),
        *([f"{invented} events in a history were never published"] if invented else []),
        *(f"the history of {name} repeats events" for name, ids in histories.items() if len(set(ids)) < len(ids)),
        *([f"{verdict.reported_losses} losses were reported"] if verdict.reported_losses else []),
        *outcome.failures[:1],
    ]
    status = verdict.status if verdict.status != "valid" or not reasons else "invalid"
    return Trial(
        f=f, seed=seed, seconds=time.monotonic() - begun, status=status, reason="; ".join(reasons) or verdict.reason,
        published=len(published), deliveries=verdict.deliveries, subscriptions=len(trace.subscriptions), lost=lost,
        invented=invented, anomalies=[each.message for each in verdict.anomalies[:20]], failures=outcome.failures,
        replaced=replaced, strikes=strikes, timeline=_timeline(trace, _start_ms(place / "parts")),
    )  # fmt: skip


async def _history(address: str) -> list[str]:
    """Return all events of the history, as `publisher:number`, read through one broker."""
    async with connect(f"gapless://{address}", timeout_s=60.0) as client:
        reading = await client.read("TRUE", since="earliest")
        found: list[str] = []
        while events := await reading.take(1024):
            found += [event.id for event in events]
        return found


def _start_ms(place: Path) -> float:
    """Return the wall-clock time from which the times of a trace count: that of the first record."""
    records = (record for part in place.rglob(f"*{SUFFIX}") for record in read_part(part))
    moments = (getattr(record, "began_us", 0) or getattr(record, "time_us", 0) for record in records)
    return min(filter(None, moments), default=0) / 1000


def _timeline(trace: Trace, start_ms: float) -> list[Second]:
    published = {event.event_id: event.published_ms for event in trace.events}
    requested = {each.subscription_id: each.requested_ms for each in trace.subscriptions}
    counts: dict[int, int] = {}
    latencies: dict[int, list[float]] = {}
    for row in trace.history:
        second = int(row.time_ms // 1000)
        if row.kind == "publish":
            counts[second] = counts.get(second, 0) + 1
        elif published.get(row.event_id, 0.0) > requested.get(row.subscription_id or "", inf):
            latencies.setdefault(second, []).append(row.time_ms - published[row.event_id])
    found = []
    for second in range(min(counts, default=0), max([*counts, *latencies], default=-1) + 1):
        taken = latencies.get(second, [])
        spread = quantiles([*taken, *taken], n=100) if taken else [0.0] * 99
        found.append(Second(start_ms + 1000.0 * second, counts.get(second, 0), len(taken), spread[49], spread[98]))
    return found

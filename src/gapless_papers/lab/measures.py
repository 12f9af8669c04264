"""Measures: each turns a finished run into rows of subject and value.

| measure | subject | value |
| --- | --- | --- |
| `subscription-latency` | subscription | milliseconds from the call until it was active |
| `first-event-latency` | subscription | milliseconds from the call until the first event, if one arrived |
| `never-active` | `subscriptions` | number of subscriptions that never became active |
| `delivery-latency` | `mean`, `p50`, `p99`, `max` | milliseconds from publication to each delivery to others |
| `reception-latency` | `mean` | the same, without the time spent waiting for causes |
| `deliveries` | `others`, `own` | deliveries to others, and to the publisher itself |
| `messages` | kind | messages sent |
| `messages-lost` | `count` | messages that did not arrive |
| `queue-length` | broker | mean queue length seen by a message, itself included; 0 for a broker that sent nothing |
| `queue-peak` | broker | the longest queue |
| `state` | kind | mean number of entries that a broker kept, over all brokers and samples |
| `barrier-size` | number of direct causes | number of publications with that many |
| `barrier-delay` | milliseconds | number of deliveries that waited that long for their causes |
| `false-positives` | `count` | messages received by brokers that no longer wanted them |

The workload defines *active*: with the whole cut, or with the first of the cuts, as the papers count it
(`ready="first"`, which `tree-subscriptions` uses). *Others* are all clients except the publisher itself.

Two measures exist in every run: `steps`, and `run-length`, the milliseconds of virtual time until the last publication
or delivery (or until the end of the run, if there was none).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil
from typing import NamedTuple, TypeAlias

from gapless.simulator import Result, Scenario, Simulation
from gapless_papers.lab.observer import Observer

__all__ = ["ALWAYS", "MEASURES", "Measure", "Observed", "Pair"]

Pair: TypeAlias = tuple[str, float]


class Observed(NamedTuple):
    """A finished run, and everything known about it."""

    scenario: Scenario
    simulation: Simulation
    result: Result
    observer: Observer
    counts: Callable[[str], bool]
    """Whether a subscription is measured, or only part of the set-up."""


Measure: TypeAlias = Callable[[Observed], Iterable[Pair]]


def _subscription_latency(run: Observed) -> Iterator[Pair]:
    for name, latency in run.observer.subscription_latencies_ms().items():
        if latency is not None and run.counts(name):
            yield name, latency


def _first_event_latency(run: Observed) -> Iterator[Pair]:
    for name, latency in run.observer.first_event_latencies_ms().items():
        if run.counts(name):
            yield name, latency


def _never_active(run: Observed) -> Iterator[Pair]:
    found = run.observer.subscription_latencies_ms().items()
    yield "subscriptions", sum(latency is None and run.counts(name) for name, latency in found)


def _delivery_latency(run: Observed) -> Iterator[Pair]:
    ordered = sorted(run.observer.latencies_us)
    if not ordered:
        return
    yield "mean", sum(ordered) / len(ordered) / 1000
    for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        yield name, ordered[ceil(len(ordered) * share) - 1] / 1000


def _reception_latency(run: Observed) -> Iterator[Pair]:
    """Yield the delivery latency minus the time spent waiting for causes, as far as brokers report that time."""
    latencies = run.observer.latencies_us
    if latencies:
        waited = sum(delay * count for delay, count in _measured(run, "delays_us").items())
        yield "mean", (sum(latencies) - waited) / len(latencies) / 1000


def _deliveries(run: Observed) -> Iterator[Pair]:
    yield "others", len(run.observer.latencies_us)
    yield "own", run.observer.own_deliveries


def _messages(run: Observed) -> Iterator[Pair]:
    yield from run.result.message_counts.items()


def _messages_lost(run: Observed) -> Iterator[Pair]:
    yield "count", run.result.messages_lost


def _queue_length(run: Observed) -> Iterator[Pair]:
    for broker, queue in run.result.queues.items():
        yield broker, queue.mean if queue.sent else 0.0


def _queue_peak(run: Observed) -> Iterator[Pair]:
    for broker, queue in run.result.queues.items():
        yield broker, queue.peak


def _state(run: Observed) -> Iterator[Pair]:
    for kind, size in run.result.state_sizes.items():
        yield kind, size.mean


# ---- what brokers measure themselves, where their protocol's option asks for it


def _measured(run: Observed, what: str) -> Counter[int]:
    """Return one of the brokers' counters, summed over all brokers."""
    total: Counter[int] = Counter()
    for node in run.simulation.broker_nodes():
        total.update(node.measured().get(what, {}))
    return total


def _barrier_size(run: Observed) -> Iterator[Pair]:
    for size, count in sorted(_measured(run, "published").items()):
        yield str(size), count


def _barrier_delay(run: Observed) -> Iterator[Pair]:
    for delay, count in sorted(_measured(run, "delays_us").items()):
        yield f"{delay / 1000:g}", count


def _false_positives(run: Observed) -> Iterator[Pair]:
    yield "count", _measured(run, "false_positives").total()


def _run_length(run: Observed) -> Iterator[Pair]:
    yield "ms", (run.observer.last_us or run.result.time_us) / 1000


def _steps(run: Observed) -> Iterator[Pair]:
    yield "count", run.result.steps


ALWAYS: Mapping[str, Measure] = {"run-length": _run_length, "steps": _steps}
MEASURES: Mapping[str, Measure] = {
    "subscription-latency": _subscription_latency,
    "first-event-latency": _first_event_latency,
    "never-active": _never_active,
    "delivery-latency": _delivery_latency,
    "reception-latency": _reception_latency,
    "deliveries": _deliveries,
    "messages": _messages,
    "messages-lost": _messages_lost,
    "queue-length": _queue_length,
    "queue-peak": _queue_peak,
    "state": _state,
    "barrier-size": _barrier_size,
    "barrier-delay": _barrier_delay,
    "false-positives": _false_positives,
}

"""Computes the Prometheus metrics of a broker from its report on request, so that counting costs nothing in between.

Labels are brokers and kinds. Clients appear as labels only if they lag most or block others: at most ten of each,
however many clients there are.
"""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gapless.runtime.broker import Broker
from gapless.runtime.waiting import KINDS
from gapless.runtime.wire import VERSION

__all__ = ["Metrics"]

_COUNTERS = {
    "messages_in": "Messages received from brokers and clients.",
    "messages_out": "Messages sent to brokers and clients.",
    "frames_in": "Frames of messages received.",
    "bytes_in": "Bytes received.",
    "bytes_out": "Bytes sent.",
    "lost": "Messages to peers without a connection; the protocol repeats what matters.",
    "refusals": "Connections ended by this broker.",
    "audit_failures": "Lines of the audit log that could not be written.",
    "suspicions": "Times that a peer was silent for too long.",
    "false_suspicions": "Suspected peers that sent data again on the same connection.",
    "goodbyes": "Times that a peer left gracefully.",
    "lost_clients": "Times that a client's connection ended without a goodbye.",
    "steps": "Inputs given to the node.",
}
_PROTOCOL_COUNTERS = {
    "published": ("gapless_events_published", "Events that clients of this broker published."),
    "delivered": (
        "gapless_events_delivered",
        "Events to be delivered to clients of this broker, counted once for each client.",
    ),
}
_LATENCIES = {
    "confirmation_latency": (
        "gapless_confirmation_seconds",
        "Time from the arrival of a publication until it is replicated; a sample.",
    ),
    "delivery_latency": (
        "gapless_delivery_seconds",
        "Time from the delivery of an event until its application has taken it; a sample.",
    ),
}


def _version() -> str:
    try:
        return version("gapless")
    except PackageNotFoundError:  # run from a source tree
        return "unknown"


class Metrics(Collector):
    """The metrics of one broker's process."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._build = {"version": _version(), "python": platform.python_version(), "wire": str(VERSION)}

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with their current values."""
        report = self._broker.report()
        facts = {**self._build, "broker": report["broker"], "protocol": report["protocol"]}
        yield InfoMetricFamily("gapless_build", "The version of Gapless that the broker runs.", value=facts)
        for key, text in _COUNTERS.items():
            yield CounterMetricFamily(f"gapless_{key}", text, value=report[key])
        yield GaugeMetricFamily(
            "gapless_ready", "Whether the broker has joined the network.", value=float(report["ready"])
        )
        yield GaugeMetricFamily(
            "gapless_up", "Whether the broker has joined and is not blocked.", value=float(report["up"])
        )
        yield GaugeMetricFamily("gapless_clients", "Number of connected clients.", value=report["clients"])
        yield GaugeMetricFamily(
            "gapless_paused", "Whether the broker pauses reading its clients.", value=float(report["paused"])
        )
        kept = GaugeMetricFamily("gapless_kept", "State that the protocol keeps, by kind.", labels=["kind"])
        for kind, size in report["state"].items():
            kept.add_metric([kind.replace(" ", "_")], size)
        yield kept
        longest = report["turns"]["longest_ms"] / 1000
        yield GaugeMetricFamily(
            "gapless_longest_turn_seconds", "The longest turn of the event loop since the start.", value=longest
        )
        long = report["turns"]["long"]
        yield CounterMetricFamily("gapless_long_turns", "Turns that took more than 0.1 seconds.", value=long)
        yield from _clock(report["clock"])
        yield from _security(report)
        yield from _links(report["links"])
        yield from _waits(report["waits"])
        yield from _protocol(report["overview"])


def _clock(clock: dict[str, Any]) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "gapless_clock_ahead_seconds",
        "Difference to the median clock of the brokers that it reaches.",
        value=clock["ahead_s"],
    )
    yield GaugeMetricFamily(
        "gapless_clock_wrong", "Whether the clock differs from most by more than max_clock_skew_ms.",
        value=float(clock["is_wrong"]),
    )  # fmt: skip
    yield GaugeMetricFamily(
        "gapless_clock_jump_seconds", "By how much the host's clock was set since the broker joined.",
        value=clock["jump_s"],
    )  # fmt: skip


def _security(report: dict[str, Any]) -> Iterator[Metric]:
    refused = CounterMetricFamily(
        "gapless_refused", "Connections ended and calls denied by this broker, by code.", labels=["code"]
    )
    for code, count in report["refused"].items():
        refused.add_metric([code], count)
    yield refused
    security = report["security"] or {"expiries": {}, "reloads": 0, "failed_reloads": 0, "failed_key_fetches": 0}
    expiry = GaugeMetricFamily(
        "gapless_certificate_expiry_timestamp_seconds",
        "When the certificate expires, in seconds since 1970.",
        labels=["kind"],
    )
    for kind, expires in security["expiries"].items():
        expiry.add_metric([kind], expires)
    yield expiry
    failed = security["failed_reloads"]
    yield CounterMetricFamily("gapless_reloads", "Reloads of certificates and users.", value=security["reloads"])
    yield CounterMetricFamily("gapless_failed_reloads", "Reloads that failed.", value=failed)
    failed = security["failed_key_fetches"]
    yield CounterMetricFamily("gapless_failed_key_fetches", "Fetches of signing keys that failed.", value=failed)


def _links(links: dict[str, Any]) -> Iterator[Metric]:
    up = GaugeMetricFamily("gapless_link_up", "Whether there is a connection to the broker.", labels=["peer"])
    suspected = GaugeMetricFamily("gapless_link_suspected", "Whether the broker is suspected.", labels=["peer"])
    queue = GaugeMetricFamily("gapless_link_queue", "Messages that wait to be sent.", labels=["peer"])
    for peer, link in links.items():
        up.add_metric([peer], link["up"])
        suspected.add_metric([peer], link["suspected"])
        queue.add_metric([peer], link["queue"])
    yield from (up, suspected, queue)


def _waits(waits: list[dict[str, Any]]) -> Iterator[Metric]:
    longest = GaugeMetricFamily(
        "gapless_wait_seconds", "How long the broker has been waiting, by kind.", labels=["kind"]
    )
    kinds = dict.fromkeys(KINDS, 0.0)
    for wait in waits:
        kinds[wait["kind"]] = max(kinds[wait["kind"]], wait["seconds"])
    for kind, seconds in kinds.items():
        longest.add_metric([kind], seconds)
    yield longest


def _protocol(overview: dict[str, Any]) -> Iterator[Metric]:
    """Yield the metrics that the protocol reports, if any."""
    for key, (name, text) in _PROTOCOL_COUNTERS.items():
        if key in overview:
            yield CounterMetricFamily(name, text, value=overview[key])
    if "handovers" in overview:
        yield GaugeMetricFamily("gapless_handovers", "Handovers in progress.", value=len(overview["handovers"]))
    if "lag" in overview:
        lag = GaugeMetricFamily(
            "gapless_client_lag",
            "Deliveries that a client has not taken, for the clients that lag most.",
            labels=["client"],
        )
        for client, count in overview["lag"].items():
            lag.add_metric([client], count)
        yield lag
    if "history" in overview:
        history = overview["history"]
        yield GaugeMetricFamily("gapless_history_bytes", "History kept for replay.", value=history["bytes"])
        yield GaugeMetricFamily("gapless_history_reads", "Subscriptions that read history.", value=history["reads"])
    for key, (name, text) in _LATENCIES.items():
        if key in overview:
            histogram = overview[key]
            buckets = [
                *((bound, float(count)) for bound, count in histogram["buckets"].items()),
                ("+Inf", histogram["count"]),
            ]
            yield HistogramMetricFamily(name, text, buckets=buckets, sum_value=histogram["sum_s"])

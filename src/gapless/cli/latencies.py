"""Latencies of subscriptions: in milliseconds, and in hops where all hops take the same time."""

import msgspec

from gapless.protocol import Ready
from gapless.simulator.scenario import Scenario
from gapless.trace import Trace

__all__ = ["SubscriptionLatency", "hop_ms_of", "subscription_latencies"]


class SubscriptionLatency(msgspec.Struct, frozen=True):
    """The time of one subscription from the call until it was active."""

    subscription: str
    client: str
    ms: float | None
    """The latency in milliseconds; None if the subscription never became active."""
    hops: int | None
    """The latency in hops between brokers, there and back; None where hop times differ or other delays occurred."""
    cut: dict[str, int]
    """The number of the first event of the subscription, by publisher."""
    ready: Ready = "whole"
    """When the subscription counts as active: with the *whole* cut, or with the *first* of its cuts."""


def hop_ms_of(scenario: Scenario) -> float | None:
    """Return the delay of one hop between brokers, if it is the same for all hops and there are no other delays."""
    latency = scenario.network.latency
    if latency.model != "constant" or latency.links or scenario.network.node_model is not None:
        return None
    return (10.0 if latency.ms is None else latency.ms) or None


def subscription_latencies(scenario: Scenario, trace: Trace) -> list[SubscriptionLatency]:
    """Return one row per subscription, in the order of the calls."""
    hop_ms = hop_ms_of(scenario)
    own_ms = {client.name: client.latency_ms for client in scenario.clients}
    cuts: dict[str, dict[str, int]] = {}
    for cut in trace.cuts:
        cuts.setdefault(cut.subscription_id, {})[cut.publisher] = cut.from_seq
    rows = []
    for row in trace.subscriptions:
        ms = None if row.active_ms is None else round(row.active_ms - row.requested_ms, 3)
        to_broker_ms = own_ms.get(row.client)
        if to_broker_ms is None:
            to_broker_ms = scenario.network.latency.client_ms
        hops = None if ms is None or hop_ms is None else _whole((ms - 2 * to_broker_ms) / hop_ms)
        rows.append(
            SubscriptionLatency(row.subscription_id, row.client, ms, hops, cuts.get(row.subscription_id, {}), row.ready)
        )
    return rows


def _whole(value: float) -> int | None:
    return round(value) if value >= 0 and abs(value - round(value)) < 1e-6 else None

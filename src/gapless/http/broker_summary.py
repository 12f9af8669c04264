"""Summarizes the status report of a broker for the console: selected fields, under stable names.

Protocols report what they support, so every member can be missing; the console shows the existing ones.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["broker_summary"]

_OF_REPORT = (
    "incarnation", "address", "uptime_s", "clients", "connections", "paused", "waits", "links", "client_queue",
    "messages_in", "messages_out", "bytes_in", "bytes_out", "clock", "turns", "data", "refusals",
)  # fmt: skip
_OF_OVERVIEW = (
    "published", "delivered", "confirmation_latency", "delivery_latency", "lag", "lagging", "disconnected", "suspected",
    "unconfirmed", "replaced_by", "handovers", "blocked_publishers",
)  # fmt: skip


def broker_summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of a broker's report."""
    overview = report["overview"]
    summary: dict[str, Any] = {"name": report["broker"], "state": _state(report)}
    summary |= {key: report[key] for key in _OF_REPORT if key in report}
    summary |= {key: overview[key] for key in _OF_OVERVIEW if key in overview}
    if "history" in overview:
        history = overview["history"]
        summary["history"] = {key: history[key] for key in ("bytes", "reads", "under_replicated") if key in history}
    return summary | {"kept": report["state"]}


def _state(report: Mapping[str, Any]) -> str:
    if report["up"]:
        return "up"
    return "held up" if report["ready"] else "starting"

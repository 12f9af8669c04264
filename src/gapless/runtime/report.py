"""Builds the status report of a broker, which `gapless status` shows."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gapless.protocol import BrokerNode
from gapless.runtime.audit_log import AuditLog
from gapless.runtime.broker_security import BrokerSecurity
from gapless.runtime.clock import now_us
from gapless.runtime.clock_check import ClockCheck
from gapless.runtime.connection import Link
from gapless.runtime.links import Links
from gapless.runtime.loop_lag import LoopLag
from gapless.runtime.network_file import BrokerEntry, NetworkConfig
from gapless.runtime.waiting import Wait

__all__ = ["clients_of", "report_of"]

CLIENTS_MAX = 200
"""The maximum number of clients whose subscriptions a broker lists for a console."""
LISTED_MAX = 256 * 1024
"""The maximum length of all filters in that list, so that the report fits into a frame."""


class ReportSource(Protocol):
    """The parts of a broker that the report uses."""

    config: NetworkConfig
    name: str
    entry: BrokerEntry
    broker_security: BrokerSecurity | None
    audit: AuditLog
    incarnation: int
    started: float

    loop_lag: LoopLag
    clocks: ClockCheck
    wall_ns: Callable[[], int]

    @property
    def damages(self) -> list[str]: ...

    @property
    def is_ready(self) -> bool: ...

    @property
    def hindrance(self) -> str: ...

    @property
    def links(self) -> Links: ...

    @property
    def node(self) -> BrokerNode | None: ...


def report_of(broker: ReportSource, waits: Sequence[Wait]) -> dict[str, Any]:
    """Return the report: the state of the broker and of its links, and the given waits."""
    links, node = broker.links, broker.node
    overview = {} if node is None else node.overview()
    counters = links.counters
    return {
        "broker": broker.name,
        "protocol": broker.config.spec.name,
        "network": broker.config.network.name,
        "f": broker.config.network.f,
        "address": broker.entry.address,
        "pid": os.getpid(),
        "ready": broker.is_ready,
        "incarnation": broker.incarnation,
        "uptime_s": round(time.time() - broker.started, 3),
        "time": broker.wall_ns() / 1e9,
        "clock": {
            "ahead_s": round(broker.clocks.ahead_s, 6),
            "bound_s": broker.config.runtime.max_clock_skew_ms / 1000,
            "is_wrong": broker.clocks.is_wrong(),
            "compared_with": list(broker.clocks.differences),
            "jump_s": round(links.host.clock.jump_s, 6) if broker.is_ready else 0.0,
        },
        "up": not broker.hindrance,
        "waits": [_wait_row(wait) for wait in waits],
        "clients": overview.get("clients", links.client_count),
        "connections": links.client_count,
        "paused": links.queues.is_paused,
        "links": {link.name: _state(link) for link in links.links.values() if not link.is_client},
        "client_queue": max((len(link.outbox) for link in links.links.values() if link.is_client), default=0),
        "state": {} if node is None else dict(node.state_size()),
        "overview": overview,
        "messages_in": counters.messages_in,
        "messages_out": counters.messages_out,
        "frames_in": counters.frames_in,
        "bytes_in": links.bytes_in,
        "bytes_out": links.bytes_out,
        "lost": counters.lost,
        "refusals": counters.refusals,
        "refused": dict(counters.refused),
        "audit_failures": broker.audit.failures,
        "security": {} if broker.broker_security is None else broker.broker_security.report(),
        "suspicions": links.detector.absences["suspected"],
        "false_suspicions": links.detector.false_suspicions,
        "goodbyes": links.detector.absences["left"],
        "lost_clients": links.detector.absences["lost"],
        "steps": links.host.steps,
        "turns": links.meter.summary() | {"late_ms": round(broker.loop_lag.most_ms, 1)},
        "data": {"directory": broker.entry.data, "damaged": broker.damages},
    }


def clients_of(node: BrokerNode | None) -> dict[str, Any]:
    """Return the first clients with sessions at this broker, with their filters, and the number of further ones."""
    names = [] if node is None else sorted(node.sessions())
    rows: list[dict[str, Any]] = []
    listed = 0
    for name in names[:CLIENTS_MAX]:
        assert node is not None
        held = node.held_by(name)
        listed += sum(map(len, held.values()))
        if listed > LISTED_MAX:
            break
        rows.append({"client": name, "subscriptions": held, "advertisements": len(node.names_held(name)[1])})
    return {"rows": rows, "more": len(names) - len(rows)}


def _wait_row(wait: Wait) -> dict[str, Any]:
    return {
        "kind": wait.kind,
        "text": wait.text,
        "names": wait.names,
        "seconds": round(wait.seconds, 1),
        "is_long": wait.is_long,
    }


def _state(link: Link) -> dict[str, Any]:
    """Return the state of a link to another broker."""
    return {
        "up": link.connection is not None,
        "suspected": link.absence == "suspected",
        "left": link.absence == "left",
        "left_because": link.refused_connection if link.absence == "left" else "",
        "silent_s": round((now_us() - link.silence.last_seen_at) / 1e6, 1) if link.absence else 0.0,
        "queue": len(link.outbox),
        "unsent_bytes": 0 if link.connection is None else link.connection.unsent(),
        "bytes_in": 0 if link.connection is None else link.connection.bytes_in,
        "bytes_out": 0 if link.connection is None else link.connection.bytes_out,
    }

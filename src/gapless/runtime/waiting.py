"""Tracks what a broker waits for, and since when, for operators.

A node reports what it waits for (`overview`), but not for how long, as it has no clock. This module
compares successive reports. The kinds of waits:

| kind | cause | is the broker up? |
| --- | --- | --- |
| `start` | it starts, and other brokers do not answer | no |
| `clock` | it starts, and its host's clock is far from those of most brokers that it reaches | no |
| `recovery` | it has restarted, and other brokers have not reported what they know of it | no |
| `handover` | in a handover a broker has not contributed, or this one has not rejoined yet | no |
| `return` | no broker has what an excluded one had confirmed; it must return, or another that holds it | no |
| `isolated` | it reaches too few other brokers to continue | no |
| `suspected` | it no longer hears a broker that is not excluded: messages that pass through it wait | yes |
| `attach` | a client attaches, and its session cannot be opened yet | yes |
| `publish` | publishers are blocked: too many publications have not been processed by all brokers | yes |
| `durable` | a durable subscription is opened, acknowledged or moved, and too few registry replicas answer | yes |
| `history` | a client reads history, and the brokers that have it do not answer | yes |

A wait of less than `LONG_S` is normal.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger

__all__ = ["KINDS", "LONG_S", "Wait", "Waiting"]

KINDS = (
    "start",
    "clock",
    "recovery",
    "handover",
    "return",
    "isolated",
    "suspected",
    "attach",
    "publish",
    "durable",
    "history",
)

LONG_S = 5.0
"""The minimum duration of waits that are logged. Handovers and waits in healthy networks take less."""


class Wait(msgspec.Struct, frozen=True):
    """Something that a broker waits for."""

    kind: str
    what: str
    """The rest of a sentence that begins with "waits"."""
    names: tuple[str, ...]
    """The names of the brokers, or of the client, that it waits for."""
    seconds: float

    @property
    def is_long(self) -> bool:
        """Return whether the wait has lasted longer than normal."""
        return self.seconds >= LONG_S

    @property
    def stops_broker(self) -> bool:
        """Return whether the broker is not healthy while it waits for this."""
        return self.is_long and self.kind not in ("attach", "publish", "suspected", "durable", "history")

    @property
    def text(self) -> str:
        """Return a description of the wait with its duration."""
        return f"waits {self.what}, for {self.seconds:.0f} s"


class Waiting:
    """The current waits of one broker."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._waits: list[Wait] = []
        self._looked = clock()
        self._logger = logger
        self._clock = clock
        self._since: dict[tuple[str, str], tuple[float, int]] = {}
        """For each wait, the time at which it began, and the value that ends the wait."""
        self._log_backoff = LogBackoff(clock)
        self._reported: dict[tuple[str, tuple[str, ...]], None] = {}
        self._warned: set[tuple[str, tuple[str, ...]]] = set()
        """The current waits that were logged."""

    @property
    def waits(self) -> list[Wait]:
        """Return the waits at the last call of `look`, with their current durations."""
        more = self._clock() - self._looked
        return [msgspec.structs.replace(wait, seconds=wait.seconds + more) for wait in self._waits]

    def look(self, overview: Mapping[str, Any], awaited: Mapping[str, str], clock: str = "") -> None:
        """Update the waits. Log long ones, and log the end of a logged one.

        While the broker starts, `awaited` names the brokers that it waits for, with reasons, and `clock` describes a
        wrong clock of the host.
        """
        now = self._clock()
        found = list(_found(overview, awaited))
        if clock:
            found.append(("clock", "", 1, 0, clock, ()))
        since = {}
        for kind, name, goal, reached, _, _ in found:
            begun, before = self._since.get((kind, name), (now, goal))
            since[kind, name] = (begun, before) if reached < before else (now, goal)
        self._since = since
        self._looked = now
        self._waits = [Wait(kind, what, names, now - since[kind, name][0]) for kind, name, _, _, what, names in found]
        for wait in self._waits:
            if wait.is_long and wait.kind not in ("start", "clock") and self._log_backoff.due((wait.kind, wait.names)):
                self._logger.warning(wait.text, extra={"event": "wait.began", "waits_for": ",".join(wait.names)})
                self._warned.add((wait.kind, wait.names))
        self._log_ended()

    def _log_ended(self) -> None:
        """Log the end of waits. Repeated blocks of publishers are logged with growing pauses, so their back-off is
        kept."""
        lasting = {(wait.kind, wait.names): None for wait in self._waits if wait.is_long}
        for kind, names in [key for key in self._reported if key not in lasting]:
            if kind != "publish":
                self._log_backoff.forget((kind, names))
            elif (kind, names) not in self._warned:
                continue
            self._warned.discard((kind, names))
            self._logger.info("no longer waiting", extra={"event": "wait.ended", "waited_for": ",".join(names)})
        self._reported = lasting


def _found(
    overview: Mapping[str, Any], awaited: Mapping[str, str]
) -> Iterator[tuple[str, str, int, int, str, tuple[str, ...]]]:
    """Yield each current wait: its kind, its name, the value that ends it, the current value, the description, and the
    names."""
    for peer, reason in awaited.items():
        yield "start", peer, 1, 0, f"for {peer}: {reason}", (peer,)
    if overview.get("isolated"):
        missing = tuple(overview.get("unreachable", ()))
        whom = f" (not {', '.join(missing)})" if missing else ""
        yield "isolated", "", 1, 0, f"for other brokers: it reaches too few of them to continue{whom}", missing
    suspected = tuple(overview.get("suspected", ()))
    if suspected:
        what = f"for {', '.join(suspected)}: no heartbeat, but its neighbours have not excluded it"
        yield "suspected", "", 1, 0, what, suspected
    recovering = tuple(overview.get("recovery", ()))
    if recovering:
        what = f"for {', '.join(recovering)}: it has restarted, and does not know what it had promised them"
        yield "recovery", "", 1, 0, what, recovering
    handovers = overview.get("handovers") or []
    needed = tuple(dict.fromkeys(name for item in handovers for name in item.get("needs_back", ())))
    if needed:
        what = f"for {' or '.join(needed)} to return: no other broker has everything that was confirmed there"
        yield "return", "", 1, 0, what, needed
    elif handovers:
        names = tuple(dict.fromkeys(name for item in handovers for name in item["waits_for"]))
        around = ", ".join(dict.fromkeys(name for item in handovers for name in item["around"]))
        yield "handover", "", 1, 0, f"for {', '.join(names) or 'no broker'}, in a handover around {around}", names
    elif not overview.get("joined", True) and not recovering:
        incarnation = f"incarnation {overview.get('incarnation')}"
        yield "handover", incarnation, 1, 0, "to rejoin: its neighbours have not accepted it yet", ()
    for client, why in overview.get("deferred", {}).items():
        yield "attach", client, 1, 0, f"before it accepts client {client}: {why}", (client,)
    blocked = overview.get("blocked_publishers")
    if blocked:
        brokers, processed = tuple(blocked["waits_for"]), blocked["processed_by_all"]
        for_whom = ", ".join(brokers) or "the next final position"
        what = f"for {for_whom}: until then {', '.join(blocked['clients'])} cannot publish, as the window is full"
        yield "publish", "", processed + 1, processed, what, brokers
    for name, change in overview.get("durable_changes", {}).items():
        replicas = tuple(change["waits_for"])
        what = f"for a majority of the registry replicas, to change {name!r} (not {', '.join(replicas)})"
        yield "durable", name, change["change"] + 1, change["change"], what, replicas
    for reading in overview.get("history", {}).get("waiting", ()):
        client, position, names = reading["client"], reading["position"], tuple(reading["waits_for"])
        if names and client not in names:
            what = f"for {' or '.join(names)}: client {client} reads history that is kept there"
            yield "history", f"{client} {reading['subscription']}", position + 1, position, what, names

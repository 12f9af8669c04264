"""Tracks what a broker waits for, and since when, for operators.

A node reports what it waits for (`overview`), but not for how long, as it has no clock. This module
compares successive reports. The kinds of waits:

| kind | cause | is the broker up? |
| --- | --- | --- |
| `start` | it starts, and other brokers do not answer | no |
| `clock` | it starts, and its host's clock is far from those of most brokers that it reaches | no |
| `recovery` | it has restarted, and other brokers have not reported what they know of it | no |
| `hand-over` | in a handover a broker has not contributed, or this one has not rejoined yet | no |
| `return` | no broker has what an excluded one had confirmed; it must return, or another that holds it | no |
| `cut-off` | it reaches too few other brokers to continue | no |
| `unheard` | it no longer hears a broker that is not excluded: messages that pass through it wait | yes |
| `away` | it was excluded repeatedly, and stays away for a while | no |
| `arrival` | a client claims its session, and is asked to retry | yes |
| `client` | a client has not taken its deliveries: brokers have to keep them, and publishers are blocked | yes |
| `name` | a durable subscription is opened, acknowledged or moved, and too few registry replicas answer | yes |
| `history` | a client reads history, and the brokers that have it do not answer | yes |

A wait of less than `LONG_S` is normal. If the protocol marks a client as lagging earlier (`lag_ms`
of the overview), the client is reported at half of that time.
"""

import math
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
    "hand-over",
    "return",
    "cut-off",
    "unheard",
    "away",
    "arrival",
    "client",
    "name",
    "history",
)

LONG_S = 5.0
"""Handovers and healthy clients take less; longer waits are logged."""


class Wait(msgspec.Struct, frozen=True):
    """One thing that a broker waits for."""

    kind: str
    what: str
    """The rest of the sentence that begins with "waits"."""
    names: tuple[str, ...]
    """The brokers or the client that it waits for."""
    seconds: float
    long_s: float = math.inf
    """After how long it is reported, if that is before `LONG_S`."""

    @property
    def is_long(self) -> bool:
        """Return whether it has lasted longer than normal."""
        return self.seconds >= min(LONG_S, self.long_s)

    @property
    def stops_broker(self) -> bool:
        """Return whether the broker is not healthy because of it."""
        return self.is_long and self.kind not in ("arrival", "client", "unheard", "name", "history")

    @property
    def text(self) -> str:
        """Return the sentence with its duration."""
        return f"waits {self.what}, for {self.seconds:.0f} s"


class Waiting:
    """The waits of one broker."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._waits: list[Wait] = []
        self._looked = clock()
        self._logger = logger
        self._clock = clock
        self._since: dict[tuple[str, str], tuple[float, int]] = {}
        """When each wait began, and the state that ends it."""
        self._log_backoff = LogBackoff(clock)
        self._told: dict[tuple[str, tuple[str, ...]], None] = {}
        self._warned: set[tuple[str, tuple[str, ...]]] = set()
        """Waits that were logged since they began."""

    @property
    def waits(self) -> list[Wait]:
        """Return the waits at the last call of `look`, with their current durations."""
        more = self._clock() - self._looked
        return [msgspec.structs.replace(wait, seconds=wait.seconds + more) for wait in self._waits]

    def look(self, overview: Mapping[str, Any], awaited: Mapping[str, str], clock: str = "") -> None:
        """Update the waits; log long ones, and those that have ended.

        During the start, `awaited` names the brokers that are waited for, with reasons, and `clock`
        describes a wrong clock of the host.
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
        long_s = {"client": overview.get("lag_ms", math.inf) / 2000}
        self._looked = now
        self._waits = [
            Wait(kind, what, names, now - since[kind, name][0], long_s.get(kind, math.inf))
            for kind, name, _, _, what, names in found
        ]
        for wait in self._waits:
            if wait.is_long and wait.kind not in ("start", "clock") and self._log_backoff.due((wait.kind, wait.names)):
                self._logger.warning(wait.text, extra={"waits_for": ",".join(wait.names)})
                self._warned.add((wait.kind, wait.names))
        self._tell_what_is_over()

    def _tell_what_is_over(self) -> None:
        """Log the end of waits. A client that is slow repeatedly is logged less and less often, so
        it is not forgotten here.
        """
        lasting = {(wait.kind, wait.names): None for wait in self._waits if wait.is_long}
        for kind, names in [key for key in self._told if key not in lasting]:
            if kind != "client":
                self._log_backoff.forget((kind, names))
            elif (kind, names) not in self._warned:
                continue
            self._warned.discard((kind, names))
            self._logger.info("no longer waiting", extra={"waited_for": ",".join(names)})
        self._told = lasting


def _found(
    overview: Mapping[str, Any], awaited: Mapping[str, str]
) -> Iterator[tuple[str, str, int, int, str, tuple[str, ...]]]:
    """Yield for each wait: kind, name, the value that ends it, the current value, the sentence, and
    the names.
    """
    for peer, reason in awaited.items():
        yield "start", peer, 1, 0, f"for {peer}: {reason}", (peer,)
    if overview.get("cut_off"):
        missing = tuple(overview.get("not_heard", ()))
        whom = f" (not {', '.join(missing)})" if missing else ""
        yield "cut-off", "", 1, 0, f"for other brokers: it reaches too few of them to continue{whom}", missing
    unheard = tuple(overview.get("unheard", ()))
    if unheard:
        what = f"for {', '.join(unheard)}: no heartbeat, but its neighbours have not excluded it"
        yield "unheard", "", 1, 0, what, unheard
    recovering = tuple(overview.get("recovery", ()))
    if recovering:
        what = f"for {', '.join(recovering)}: it has restarted, and does not know what it had promised them"
        yield "recovery", "", 1, 0, what, recovering
    handed = overview.get("hand_overs") or []
    needed = tuple(dict.fromkeys(name for item in handed for name in item.get("needs_back", ())))
    if overview.get("stays_away"):
        yield "away", "", 1, 0, "before it rejoins: the others excluded it repeatedly", ()
    elif needed:
        what = f"for {' or '.join(needed)} to return: no other broker has everything that was confirmed there"
        yield "return", "", 1, 0, what, needed
    elif handed:
        names = tuple(dict.fromkeys(name for item in handed for name in item["waits_for"]))
        of = ", ".join(dict.fromkeys(name for item in handed for name in item["of"]))
        yield "hand-over", "", 1, 0, f"for {', '.join(names) or 'nobody'}, in a handover around {of}", names
    elif not overview.get("settled", True) and not recovering:
        yield (
            "hand-over",
            f"life {overview.get('life')}",
            1,
            0,
            "to rejoin: its neighbours have not accepted it yet",
            (),
        )
    for client, why in overview.get("put_off", {}).items():
        yield "arrival", client, 1, 0, f"before it accepts client {client}: {why}", (client,)
    for client, wanted in overview.get("held_up_by", {}).items():
        behind = overview.get("lag", {}).get(client)
        left = f" {behind} deliveries" if behind else " its deliveries"
        where = "is away and has not taken" if client in overview.get("away", ()) else "has not taken"
        yield "client", client, wanted["owes"], wanted["took"], f"for client {client}, which {where}{left}", (client,)
    for name, change in overview.get("names", {}).items():
        keepers = tuple(change["waits_for"])
        what = f"for a majority of the registry replicas, to change {name!r} (not {', '.join(keepers)})"
        yield "name", name, change["change"] + 1, change["change"], what, keepers
    for reading in overview.get("history", {}).get("waiting", ()):
        client, position, names = reading["client"], reading["position"], tuple(reading["waits_for"])
        if names and client not in names:
            what = f"for {' or '.join(names)}: client {client} reads history that is kept there"
            yield "history", f"{client} {reading['subscription']}", position + 1, position, what, names

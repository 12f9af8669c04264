"""For what a broker waits, and since when: what an operator has to know when nothing moves.

A node tells what it waits for now (`overview`), and has no clock to say for how long; this looks at it again and again,
and remembers. What can hold a broker up:

| kind | what | is the broker up? |
| --- | --- | --- |
| `start` | it starts, and brokers around it do not answer | no |
| `clock` | it starts, and the clock of its host is far from those of most brokers that it hears | no |
| `recovery` | it has restarted, and brokers around it have not told what they know of it | no |
| `hand-over` | a part of the tree is handed over and somebody has not contributed, or it was not taken in yet | no |
| `return` | nobody has what an excluded broker had confirmed; it must come back, or another that holds it | no |
| `cut-off` | it hears too few of the others to go on | no |
| `unheard` | it no longer hears a broker that nobody has excluded: what is for those behind it waits | yes |
| `away` | it was excluded again and again, and stays away for a while | no |
| `arrival` | a client wants its session back, and is told to come again | yes |
| `client` | a client has not taken what it was delivered: no broker may forget that, and publishers stand still | yes |
| `name` | a durable subscription is opened, confirmed or moved, and too few of its keepers answer | yes |
| `history` | a client reads history, and brokers that have it do not answer | yes |

A wait of less than `LONG_S` is nothing unusual. For a client nobody waits that long where the protocol leaves it behind
earlier (`lag_ms` of the overview): it is named at half of that time.
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
"""Hand-overs take a moment, and healthy clients do; who waits for longer says so."""


class Wait(msgspec.Struct, frozen=True):
    """One thing that a broker waits for."""

    kind: str
    what: str
    """In words, as they follow on "waits"."""
    names: tuple[str, ...]
    """The brokers or the client that it waits for."""
    seconds: float
    long_s: float = math.inf
    """After how long it is named, if that is before `LONG_S`."""

    @property
    def is_long(self) -> bool:
        """Whether it has lasted longer than such a thing should."""
        return self.seconds >= min(LONG_S, self.long_s)

    @property
    def stops_broker(self) -> bool:
        """Whether the broker cannot be called up."""
        return self.is_long and self.kind not in ("arrival", "client", "unheard", "name", "history")

    @property
    def text(self) -> str:
        """In words, with its time."""
        return f"waits {self.what}, for {self.seconds:.0f} s"


class Waiting:
    """What one broker waits for."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._waits: list[Wait] = []
        self._looked = clock()
        self._logger = logger
        self._clock = clock
        self._since: dict[tuple[str, str], tuple[float, int]] = {}
        """When each wait began, and with what it is over."""
        self._log_backoff = LogBackoff(clock)
        self._told: dict[tuple[str, tuple[str, ...]], None] = {}
        self._warned: set[tuple[str, tuple[str, ...]]] = set()
        """What the log was told of since it began."""

    @property
    def waits(self) -> list[Wait]:
        """What was waited for when it was last looked at, and for how long by now."""
        more = self._clock() - self._looked
        return [msgspec.structs.replace(wait, seconds=wait.seconds + more) for wait in self._waits]

    def look(self, overview: Mapping[str, Any], awaited: Mapping[str, str], clock: str = "") -> None:
        """See what is waited for now; say so in the log if it takes long, and when it is over.

        While the broker starts, `awaited` says which brokers it waits for and why, and `clock` what is wrong with the
        clock of its host.
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
        """A client that takes its time again and again is said less and less often, so it is not forgotten here."""
        lasting = {(wait.kind, wait.names): None for wait in self._waits if wait.is_long}
        for kind, names in [key for key in self._told if key not in lasting]:
            if kind != "client":
                self._log_backoff.forget((kind, names))
            elif (kind, names) not in self._warned:
                continue
            self._warned.discard((kind, names))
            self._logger.info("waits no more", extra={"waited_for": ",".join(names)})
        self._told = lasting


def _found(
    overview: Mapping[str, Any], awaited: Mapping[str, str]
) -> Iterator[tuple[str, str, int, int, str, tuple[str, ...]]]:
    """Kind and name of each wait; where it has to get and where it is, for those that get on; words; names."""
    for peer, reason in awaited.items():
        yield "start", peer, 1, 0, f"for {peer}: {reason}", (peer,)
    if overview.get("cut_off"):
        missing = tuple(overview.get("not_heard", ()))
        whom = f" (not {', '.join(missing)})" if missing else ""
        yield "cut-off", "", 1, 0, f"for other brokers: it hears too few of them to go on{whom}", missing
    unheard = tuple(overview.get("unheard", ()))
    if unheard:
        yield "unheard", "", 1, 0, f"for {', '.join(unheard)}: not heard, and not excluded by those around", unheard
    recovering = tuple(overview.get("recovery", ()))
    if recovering:
        what = f"for {', '.join(recovering)}: it has restarted, and does not know what it had promised them"
        yield "recovery", "", 1, 0, what, recovering
    handed = overview.get("hand_overs") or []
    needed = tuple(dict.fromkeys(name for item in handed for name in item.get("needs_back", ())))
    if overview.get("stays_away"):
        yield "away", "", 1, 0, "before it returns: the others excluded it again and again", ()
    elif needed:
        what = f"for {' or '.join(needed)} to come back: nobody else has all that was confirmed there"
        yield "return", "", 1, 0, what, needed
    elif handed:
        names = tuple(dict.fromkeys(name for item in handed for name in item["waits_for"]))
        of = ", ".join(dict.fromkeys(name for item in handed for name in item["of"]))
        yield "hand-over", "", 1, 0, f"for {', '.join(names) or 'nobody'}, in a hand-over around {of}", names
    elif not overview.get("settled", True) and not recovering:
        yield "hand-over", f"life {overview.get('life')}", 1, 0, "to be taken in by the brokers around it", ()
    for client, why in overview.get("put_off", {}).items():
        yield "arrival", client, 1, 0, f"before it lets client {client} in: {why}", (client,)
    for client, wanted in overview.get("held_up_by", {}).items():
        behind = overview.get("lag", {}).get(client)
        left = f" {behind} deliveries" if behind else " its deliveries"
        where = "is away and has not taken" if client in overview.get("away", ()) else "has not taken"
        yield "client", client, wanted["owes"], wanted["took"], f"for client {client}, which {where}{left}", (client,)
    for name, change in overview.get("names", {}).items():
        keepers = tuple(change["waits_for"])
        what = f"for a majority of those who keep names, to change {name!r} (not {', '.join(keepers)})"
        yield "name", name, change["change"] + 1, change["change"], what, keepers
    for reading in overview.get("history", {}).get("waiting", ()):
        client, position, names = reading["client"], reading["position"], tuple(reading["waits_for"])
        if names and client not in names:
            what = f"for {' or '.join(names)}: client {client} reads what is kept there"
            yield "history", f"{client} {reading['subscription']}", position + 1, position, what, names

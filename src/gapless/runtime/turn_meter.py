"""Measures the longest turn of the event loop, and records what caused it.

During a turn no peer is read, and peers start to suspect this one: no filter, event or message may
take more than `LONG_MS`. Processor time counts, not the wall-clock time: on a busy machine turns
are late, but not long. The wall-clock time is reported as well.

A turn consists of pieces: a batch of a peer's messages, a timer, sending. It is named after the
longest piece. Between pieces, other code may use the processor, such as the application of a
client. A turn takes no longer than the sum of its pieces' wall-clock times, and no longer than the
processor time since its first piece: the smaller of the two counts. Reading the processor
time is a system call: for every piece, it took a sixth of the time of a broker with a thousand
subscribers. The meter reads it at the beginning of a turn, and at the end only if the turn may be
the longest, or too long.
"""

import asyncio
import time
from collections import Counter
from typing import Any

from gapless.event_runs import EventRun
from gapless.protocol.carrying import events_of, layers_of
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger

__all__ = ["LONG_MS", "TurnMeter"]

LONG_MS = 100.0
TEXT_MAX = 120
NAMES_MAX = 3
"""Maximum number of message kinds in a description."""


class TurnMeter:
    """Measures the turns of one node. Pieces do not nest: an inner one is part of the outer one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, logger: Logger) -> None:
        self.longest_ms = 0.0
        self.longest_by_clock_ms = 0.0
        """The wall-clock time of the longest turn."""
        self.what = ""
        """The description of the longest turn."""
        self.long = 0
        """The number of turns that exceeded the limit."""
        self._loop = loop
        self._logger = logger
        self._log_backoff = LogBackoff()
        self._is_open = False
        self._is_inside = False
        self._begun_ns = 0
        self._worked_ns = 0
        self._turn_ns = 0
        self._worst_ns = -1
        self._worst: tuple[str, Any] = ("", None)

    def begin(self) -> int:
        """Begin a piece; pass the result to `end`."""
        if self._is_inside:
            return -1
        self._is_inside = True
        if not self._is_open:
            self._is_open = True
            self._begun_ns = time.monotonic_ns()
            self._worked_ns = time.thread_time_ns()
            self._loop.call_soon(self._close)
            return self._begun_ns
        return time.monotonic_ns()

    def end(self, begun: int, who: str, what: Any) -> None:
        """End a piece, with the peer and the messages or the input that caused it."""
        if begun < 0:
            return
        self._is_inside = False
        spent = time.monotonic_ns() - begun
        self._turn_ns += spent
        if spent > self._worst_ns:
            self._worst_ns = spent
            self._worst = (who, what)

    def _close(self) -> None:
        """End the turn."""
        self._is_open = False
        if self._turn_ns > min(self.longest_ms, LONG_MS) * 1e6:
            self._judge()
        self._turn_ns, self._worst_ns, self._worst = 0, -1, ("", None)

    def _judge(self) -> None:
        """Record a turn that may be long."""
        turn_ms = min(self._turn_ns, self.processor_ns()) / 1e6
        who, what = self._worst
        if turn_ms > self.longest_ms:
            self.longest_ms = turn_ms
            self.longest_by_clock_ms = (time.monotonic_ns() - self._begun_ns) / 1e6
            self.what = _describe(who, what)
        if turn_ms > LONG_MS:
            self.long += 1
            if self._log_backoff.due("long"):
                self._logger.warning(
                    f"a turn of the event loop took {turn_ms:.0f} ms: {_describe(who, what)}",
                    extra={"event": "broker.slow_turn"},
                )

    def processor_ns(self) -> int:
        """Return the processor time since the first piece of this turn."""
        return time.thread_time_ns() - self._worked_ns

    def summary(self) -> dict[str, Any]:
        """Return the values for reports."""
        return {
            "longest_ms": round(self.longest_ms, 2),
            "longest_by_clock_ms": round(self.longest_by_clock_ms, 2),
            "what": self.what,
            "long": self.long,
        }


def _describe(who: str, what: Any) -> str:
    if not isinstance(what, list):
        text = f"{who} {what}".strip()
        return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"
    kinds = Counter(_kind(message) for message in what)
    named = [f"{kind} × {count}" if count > 1 else kind for kind, count in kinds.most_common(NAMES_MAX)]
    more = [f"{len(kinds) - NAMES_MAX} other kinds"] if len(kinds) > NAMES_MAX else []
    return f"{', '.join(named + more)} from {who}"


def _kind(message: Any) -> str:
    """Return the name of a message, with that of the wrapped one, and the number of events."""
    names = []
    for layer in layers_of(message):
        names.append(type(layer).__name__)
        events = events_of(layer)
        if isinstance(events, list | EventRun):
            names[-1] += f" of {len(events)} events"
    return "/".join(names)

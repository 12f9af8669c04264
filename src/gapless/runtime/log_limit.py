"""Limits how much a process logs: each event at most `LINES_A_MINUTE` times a minute, then a count of the rest.

An event is a place in the code that logs, whatever its parameters. Further records of the event are
counted, and one line reports the count and the last record, when the minute ends or the process
stops. So an overloaded broker that suspects and trusts a thousand clients writes few lines, and
every omission is reported.
"""

import logging
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

__all__ = ["LINES_A_MINUTE", "LimitedHandler", "write_left_out"]

LINES_A_MINUTE = 20
MINUTE_S = 60.0

_Event: TypeAlias = tuple[str, int]
"""The file and line that log the event."""


class _Minute:
    """The records of one event within one minute, which begins with the first record."""

    __slots__ = ("begun", "last", "left_out", "written")

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.written = 0
        self.left_out = 0
        self.last: logging.LogRecord | None = None


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes log records to a stream, up to a limit for each event."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._minutes: dict[_Event, _Minute] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or count it if the limit is reached."""
        self.write_left_out()
        event = (record.pathname, record.lineno)
        minute = self._minutes.setdefault(event, _Minute(self._clock()))
        if minute.written < LINES_A_MINUTE or record.levelno >= logging.CRITICAL:
            minute.written += 1
            super().emit(record)
        else:
            minute.left_out += 1
            minute.last = record

    def write_left_out(self, *, at_end: bool = False) -> None:
        """Write the counts of omitted records for minutes that have ended. With `at_end`, write all counts."""
        now = self._clock()
        for event, minute in list(self._minutes.items()):
            if at_end or now - minute.begun >= MINUTE_S:
                del self._minutes[event]
                if minute.last is not None:
                    super().emit(_summary(minute.last, minute.left_out, now - minute.begun))

    def close(self) -> None:
        self.acquire()
        try:
            self.write_left_out(at_end=True)
        finally:
            self.release()
        super().close()


def write_left_out(logger: logging.Logger) -> None:
    """Make the handlers of a logger write their counts of omitted records, even if nothing else is logged."""
    for handler in logger.handlers:
        if isinstance(handler, LimitedHandler):
            handler.acquire()
            try:
                handler.write_left_out()
            finally:
                handler.release()


def _summary(last: logging.LogRecord, count: int, seconds: float) -> logging.LogRecord:
    """Return a record like the last omitted one, with the number of omitted records."""
    summary = logging.makeLogRecord(vars(last))
    summary.msg = f"omitted {count:,} more lines like this within {seconds:.0f} s, the last: {last.getMessage()}"
    summary.args = ()
    summary.exc_info = None
    summary.left_out = count
    return summary

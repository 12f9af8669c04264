"""Keeps the last lines of a broker's log, for consoles.

The log contains no token, hash or key (`tests/runtime/test_secrets_in_logs.py`), so the permission `status`
is enough to read it.
"""

import logging
import time
from collections import deque
from typing import Any

from gapless.runtime.logs import document_of

__all__ = ["RecentLog"]

LINES_MAX = 500
VALUE_MAX = 1_000
"""The maximum number of characters of a message and of each field."""
_USUAL = ("time", "level", "message")


class RecentLog(logging.Handler):
    """Records the log of one broker and of the clients in its process."""

    def __init__(self, broker: str) -> None:
        super().__init__(logging.INFO)
        self._broker = broker
        self._lines: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        self._count = 0
        self._run = str(time.time_ns())
        """Identifies this start of the broker. Line numbers begin again with each start."""

    def start(self) -> None:
        """Start to record log lines."""
        logging.getLogger("gapless").addHandler(self)

    def stop(self) -> None:
        """Stop recording log lines."""
        logging.getLogger("gapless").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Record a log line, unless it belongs to another broker."""
        facts = document_of(record)
        if facts.pop("broker", self._broker) != self._broker:
            return
        self._count += 1
        more = {key: str(value)[:VALUE_MAX] for key, value in facts.items() if key not in _USUAL}
        usual = {"time": facts["time"], "level": facts["level"], "message": str(facts["message"])[:VALUE_MAX]}
        self._lines.append({"number": self._count, **usual, "facts": more})

    def report(self, after: int = 0) -> dict[str, Any]:
        """Return the log lines after a number, oldest first."""
        return {"run": self._run, "lines": [line for line in self._lines if line["number"] > after]}

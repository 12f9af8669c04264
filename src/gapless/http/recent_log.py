"""The last lines of the broker's log, for the console.

The log contains no token, hash or key (`tests/runtime/test_secrets_in_logs.py`), so who may see the status may see it.
"""

import logging
from collections import deque
from typing import Any

from gapless.runtime.logs import document_of

__all__ = ["RecentLog"]

LINES_MAX = 500


class RecentLog(logging.Handler):
    """Keeps the records of one broker."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: deque[tuple[int, logging.LogRecord]] = deque(maxlen=LINES_MAX)
        self._count = 0

    def start(self) -> None:
        """Record from now on."""
        logging.getLogger("gapless").addHandler(self)

    def stop(self) -> None:
        """Record no more."""
        logging.getLogger("gapless").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self._count += 1
        self._lines.append((self._count, record))

    def lines(self, after: int = 0) -> list[dict[str, Any]]:
        """The records after a number, oldest first."""
        return [{"number": number, **_fields(record)} for number, record in self._lines if number > after]


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    facts = document_of(record)
    usual = ("time", "level", "message")
    more = {key: str(value) for key, value in facts.items() if key not in usual}
    return {key: facts[key] for key in usual} | {"facts": more}

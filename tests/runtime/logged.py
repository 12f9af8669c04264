"""The log messages of this process's brokers during a test."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gapless.runtime.logs import _Lines

__all__ = ["Logged", "logged"]


class Logged(logging.Handler):
    """Stores log records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def text(self) -> str:
        """Return all records with all fields, as `gapless broker` writes them."""
        return "\n".join(_Lines().format(record) for record in self.records)

    def of(self, broker: str, words: str = "", level: int = logging.INFO) -> list[str]:
        """Return the messages of one broker with this level and these words."""
        return [
            record.getMessage()
            for record in self.records
            if vars(record)["broker"] == broker and record.levelno >= level and words in record.getMessage()
        ]


@contextmanager
def logged() -> Iterator[Logged]:
    logger = logging.getLogger("gapless.broker")
    handler, level = Logged(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)

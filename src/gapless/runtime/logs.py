"""Formats logs as text for people or JSON documents for machines, with the same content and limit (`log_limit`)."""

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO, TypeAlias

from gapless.printable import as_value, printable
from gapless.runtime.log_limit import LimitedHandler

__all__ = ["LEVELS", "Logger", "client_logger", "document_of", "log_to", "logger_of"]

LEVELS = ("debug", "info", "warning", "error")

Logger: TypeAlias = "logging.Logger | logging.LoggerAdapter[logging.Logger]"

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Named(logging.LoggerAdapter[logging.Logger]):
    """Adds the broker's name to the fields of every record."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **kwargs.get("extra", {})}
        return msg, kwargs


def logger_of(broker: str) -> Logger:
    return _Named(logging.getLogger("gapless.broker"), {"broker": broker})


class _Spelled(logging.LoggerAdapter[logging.Logger]):
    """Appends all fields to the message, because the log handlers of applications show nothing else."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        facts = kwargs.get("extra") or {}
        shown = ", ".join(f"{key} {value}" for key, value in facts.items() if key != "event")
        client = (self.extra or {})["client"]
        kwargs["extra"] = {**facts, "client": client}
        text = f"client {client}: {msg}" + (f" ({shown})" if shown else "")
        return printable(text), kwargs


def client_logger(client: str) -> Logger:
    """Return the logger of a client and its connections."""
    return _Spelled(logging.getLogger("gapless.client"), {"client": client})


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _USUAL}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = _facts(record)
        broker = facts.pop("broker", "")
        shown = "".join(f"  {key}={as_value(value)}" for key, value in facts.items())
        text = printable(f"{_time(record)} {record.levelname.lower():<8} {broker}: {record.getMessage()}{shown}")
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def document_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the contents of a record as a JSON document."""
    return {
        "time": _time(record), "level": record.levelname.lower(), "message": record.getMessage(), **_facts(record)
    }  # fmt: skip


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        document = document_of(record)
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)  # ASCII only, because a terminal may show it


def log_to(stream: TextIO = sys.stderr, *, as_json: bool = False, level: str = "info") -> None:
    """Write the logs of this process to the stream."""
    handler = LimitedHandler(stream)
    handler.setFormatter(_Json() if as_json else _Lines())
    logger = logging.getLogger("gapless")
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False

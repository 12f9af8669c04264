"""Traces of runs: the events that clients published and received, with the modules that record, write and read them.

The simulator and live clients record the same trace, so one audit serves both.
`docs/TRACE_FORMAT.md` describes the tables and their meaning.

Recording and checking in the same process need no Parquet, so the modules that read and write files
are loaded on demand.
"""

from typing import TYPE_CHECKING

from gapless.trace.attributes_text import attributes_from_text, attributes_to_text
from gapless.trace.part_recorder import PartRecorder
from gapless.trace.parts import merge_parts
from gapless.trace.recorder import Recorder
from gapless.trace.rows import (
    CutRow,
    CutShortRow,
    EventRow,
    HistoryRow,
    MessageRow,
    PastRow,
    RunRow,
    SkippedRow,
    SubscriptionRow,
    Trace,
)

if TYPE_CHECKING:
    from gapless.trace.storage import must_be_free, read_trace, write_trace
    from gapless.trace.tables import SCHEMA_VERSION

__all__ = [
    "SCHEMA_VERSION", "CutRow", "CutShortRow", "EventRow", "HistoryRow", "MessageRow", "PartRecorder", "PastRow",
    "Recorder", "RunRow", "SkippedRow", "SubscriptionRow", "Trace", "attributes_from_text", "attributes_to_text",
    "merge_parts", "must_be_free", "read_trace", "write_trace",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a module on demand."""
        from importlib import import_module

        if name == "SCHEMA_VERSION":
            return import_module("gapless.trace.tables").SCHEMA_VERSION
        if name in ("must_be_free", "read_trace", "write_trace"):
            return getattr(import_module("gapless.trace.storage"), name)
        raise AttributeError(f"module 'gapless.trace' has no attribute {name!r}")

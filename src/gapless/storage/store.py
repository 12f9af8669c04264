"""Opens a data directory: checks its owner, its integrity and its lock, and returns the store.

A remaining log is checkpointed before anything is written. So data that an earlier process left
half-written, or that a failed sync left in memory only, is written to the disk again, and the log
starts empty.
"""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from gapless.errors import StorageError
from gapless.storage.directory import Directory
from gapless.storage.heads import Heads, read_heads
from gapless.storage.interface import (
    SYNCS,
    Change,
    Failed,
    Found,
    HistoryTotals,
    StorageSettings,
    Synced,
)
from gapless.storage.messages import REFILL, SQLITE_ERRORS, cannot_open
from gapless.storage.reader import FileReader
from gapless.storage.schema import About, open_for_reading, open_for_writing, read_about, write_schema
from gapless.storage.writer import Writer

__all__ = ["FileStore", "open_store"]


def open_store(
    path: Path,
    *,
    network: str,
    broker: str,
    settings: StorageSettings | None = None,
    synced: Synced,
    failed: Failed,
) -> "FileStore":
    """Open the data directory of a broker, or create it. Raise a `StorageError` with the reason if that fails. This
    blocks.

    `network` is any text that identifies the network. The store's own thread calls `synced` and
    `failed` (`loop.call_soon_threadsafe` leads back to the event loop). An exception from `synced`
    counts as a failure.
    """
    settings = settings or StorageSettings()
    if settings.sync not in SYNCS:
        raise StorageError(f"unknown sync mode {settings.sync!r}; use one of {', '.join(SYNCS)}")
    if settings.interval_ms <= 0 or settings.queue_bytes_max <= 0:
        raise StorageError(
            f"invalid interval of {settings.interval_ms} ms or queue of {settings.queue_bytes_max} bytes; "
            "both must be positive"
        )
    directory = Directory(path, create=True)
    connection = None
    try:
        connection = open_for_writing(directory.database)
        about = read_about(connection, directory.database)
        is_new = about is None
        if about is None:
            _create(connection, network, broker)
            directory.sync()
        else:
            _must_belong_to(path, about, network, broker)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        heads, wrong = read_heads(connection)
        if wrong:
            raise StorageError(f"{directory.database} is damaged: {wrong}; {REFILL}")
        found = Found(is_new, max(0, directory.read_mark() - heads.commits), directory.exposed)
        return FileStore(directory, connection, heads, found, settings, synced, failed)
    except BaseException as error:
        if connection is not None:
            connection.close()
        directory.close()
        if isinstance(error, (*SQLITE_ERRORS, OSError)):
            raise cannot_open(directory.database, error) from None
        raise


def _create(connection: sqlite3.Connection, network: str, broker: str) -> None:
    """Create the whole schema in one transaction: an interrupted start leaves an empty file, which
    counts as new.
    """
    connection.execute("BEGIN IMMEDIATE")
    write_schema(connection, network, broker)
    Heads().write(connection)
    connection.execute("COMMIT")


def _must_belong_to(path: Path, about: About, network: str, broker: str) -> None:
    if about.network != network:
        raise StorageError(
            f"{path} contains the data of another network ({about.network}, this one is {network}); "
            "name another directory, or move that one away"
        )
    if about.broker != broker:
        raise StorageError(
            f"{path} contains the data of broker {about.broker}, not of {broker}; give each broker its own directory"
        )


class FileStore:
    """A `Store` in a data directory."""

    def __init__(
        self,
        directory: Directory,
        connection: sqlite3.Connection,
        heads: Heads,
        found: Found,
        settings: StorageSettings,
        synced: Synced,
        failed: Failed,
    ) -> None:
        self.found = found
        self._directory = directory
        self._connection = connection
        self._heads = heads
        # While another connection has the file open, closing the writing connection does not checkpoint the
        # log.
        self._guard = open_for_reading(directory.database)
        self._guard.execute("SELECT 1 FROM heads").fetchone()
        self._lock = threading.Lock()
        self._history = {origin: head.totals for origin, head in heads.history.items()}
        self._is_closed = False
        self._writer = Writer(
            directory, connection, heads, settings, synced=synced, failed=failed, committed=self._adopt
        )
        self._writer.start()

    @property
    def failure(self) -> StorageError | None:
        return self._writer.failure

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        self._writer.write(batch, changes)

    def room(self) -> int:
        return self._writer.room()

    def history_totals(self) -> Mapping[str, HistoryTotals]:
        with self._lock:
            return dict(self._history)

    def reader(self) -> FileReader:
        return FileReader(self._directory.database)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.close()
        if self._writer.failure is None:
            self._guard.close()
            self._connection.close()
        else:  # a failed disk is not written to: the next opening starts from the log
            self._connection.close()
            self._guard.close()
        self._directory.close()

    def _adopt(self, touched: list[str]) -> None:
        """Replace the totals after a commit. The writer's thread calls this."""
        with self._lock:
            for origin in touched:
                if origin in self._heads.history:
                    self._history[origin] = self._heads.history[origin].totals
                else:
                    self._history.pop(origin, None)

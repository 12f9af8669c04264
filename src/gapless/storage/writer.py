"""The writer thread: commits all waiting batches in one transaction, and reports it.

Batches gather while a commit is being written, and the next commit takes all of them. So commits
grow with the load, and a slow disk costs time for each commit, not for each batch.

A commit appends its pages to SQLite's write-ahead log. With `synchronous = FULL` it syncs the log
before it returns. After a few megabytes this thread checkpoints the log into the file, after the
report. Batches written during a checkpoint wait about 20 ms; no other part of the broker waits.

With `interval`, commits are not synced (`synchronous = NORMAL`), except one at the end of each
interval: a sync of the log covers everything written to it before. If there are no batches, an
empty commit does it.
"""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gapless.errors import StorageError
from gapless.storage.changes import Changes
from gapless.storage.directory import Directory
from gapless.storage.heads import Heads
from gapless.storage.interface import Admit, Change, Failed, NoRoomError, Put, StorageSettings, Synced
from gapless.storage.messages import cannot_write
from gapless.storage.schema import PAGE_BYTES

__all__ = ["Writer"]

COMMIT_BYTES = 8 * 1024 * 1024
"""Maximum size of one commit, so that the first batch of a long queue is not reported after the last."""
COMMIT_BATCHES = 4096
"""Maximum number of batches in one commit: callers of `write` wait while they are taken from the queue."""
CHORE_BYTES = 4 * 1024 * 1024
"""The number of bytes that one commit deletes, if as many are pending. It is at least twice the number of bytes that
the commit writes, so deletion keeps up."""
FOLD_BYTES = 4 * 1024 * 1024
"""Bytes of blobs in the log before it is checkpointed. A larger value makes the pause longer and
nothing faster: each page of a blob is written twice in any case, once to the log and once to the
file.
"""
LOG_BYTES_MAX = 32 * 1024 * 1024
"""Log length at which it is checkpointed even with few blobs. Small commits rewrite the same few
pages, and only the last version of a page goes to the file. A larger value is faster, but a start
after a kill takes longer.
"""
CHANGE_BYTES = 64
"""Approximate size of a change without its blob."""
COMMIT_PAGES = 6
"""Approximate number of pages that a commit writes besides those of the blobs."""


class _Batch(NamedTuple):
    number: int
    changes: Sequence[Change]
    size: int


class Writer:
    """Owns the only connection that writes, from `start` to `close`."""

    def __init__(
        self,
        directory: Directory,
        connection: sqlite3.Connection,
        heads: Heads,
        settings: StorageSettings,
        *,
        synced: Synced,
        failed: Failed,
        committed: Callable[[list[str]], None],
    ) -> None:
        self._directory = directory
        self._connection = connection
        self._heads = heads
        self._changes = Changes(connection, heads)
        self._settings = settings
        self._synced = synced
        self._failed = failed
        self._committed = committed
        self._waiting: deque[_Batch] = deque()
        self._waiting_bytes = 0
        self._wake = threading.Condition()
        self._is_closing = False
        self.failure: StorageError | None = None
        self._fresh_bytes = 0
        """Bytes of blobs in the log."""
        self._log_bytes = 0
        """Approximate length of the log."""
        self._is_full = True
        """Whether the connection currently syncs its commits."""
        self._unsynced_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="gapless-storage", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # ---- called by the store --------------------------------------------------------------------------------

    def write(self, number: int, changes: Sequence[Change]) -> None:
        batch = _Batch(number, changes, sum(map(_size, changes)))
        with self._wake:
            if self.failure is not None:
                raise self.failure
            if self._is_closing:
                raise StorageError(f"{self._directory.path} is closed; open it again to write")
            if self._waiting_bytes >= self._settings.queue_bytes_max:
                raise NoRoomError(
                    f"{self._directory.path}: {self._waiting_bytes:,} bytes wait for the disk; ask for room() first"
                )
            self._waiting.append(batch)
            self._waiting_bytes += batch.size
            self._wake.notify()

    def room(self) -> int:
        return self._settings.queue_bytes_max - self._waiting_bytes

    def close(self) -> None:
        """Commit all waiting batches and stop. After a failure, only stop."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._thread.join()

    # ---- the writer thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (batches := self._take()) is not None:
                self._commit(batches)
            self._sync_all()
        except Exception as error:  # whatever the error is, a caller waits for a report
            self._fail(error)

    def _take(self) -> list[_Batch] | None:
        """Return the batches to commit. Return an empty list if a sync or a chore is due, or None at the end."""
        with self._wake:
            while not self._waiting:
                if self._is_closing:
                    return None
                due_s = self._due_s()
                if self._changes.has_chores or (due_s is not None and due_s <= 0):
                    return []
                self._wake.wait(due_s)
            batches: list[_Batch] = []
            size = 0
            while self._waiting and size < COMMIT_BYTES and len(batches) < COMMIT_BATCHES:
                batches.append(self._waiting.popleft())
                size += batches[-1].size
            return batches

    def _due_s(self) -> float | None:
        """Return the time in seconds until written data has to be synced, or None."""
        if self._settings.sync != "interval" or self._unsynced_since is None:
            return None
        return self._unsynced_since + self._settings.interval_ms / 1000 - time.monotonic()

    def _commit(self, batches: list[_Batch]) -> None:
        size = sum(batch.size for batch in batches)
        due_s = self._due_s()
        self._set_full(self._settings.sync == "always" or (due_s is not None and due_s <= 0))
        self._connection.execute("BEGIN IMMEDIATE")
        for batch in batches:
            self._changes.apply(batch.changes)
        if self._changes.has_chores:
            self._changes.do_chores(max(CHORE_BYTES, 2 * size))
        touched = self._changes.finish()
        self._connection.execute("COMMIT")
        self._unsynced_since = None if self._is_full else self._unsynced_since or time.monotonic()
        self._report(batches, size, touched)
        self._fresh_bytes += size
        self._log_bytes += size + COMMIT_PAGES * PAGE_BYTES
        if self._fresh_bytes >= FOLD_BYTES or self._log_bytes >= LOG_BYTES_MAX:
            self._fold()

    def _report(self, batches: list[_Batch], size: int, touched: list[str]) -> None:
        self._directory.write_mark(self._heads.commits)
        self._committed(touched)
        with self._wake:
            self._waiting_bytes -= size
        if batches:
            self._synced(batches[-1].number)

    def _set_full(self, wanted: bool) -> None:
        if wanted != self._is_full:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._is_full = wanted

    def _fold(self) -> None:
        """Checkpoint the log into the file. If no reader uses the log, the next commit restarts it.

        With readers at all times the log would grow without bound, so beyond `LOG_BYTES_MAX` this
        waits for the current readers. Readers that start during the wait read from the file.
        """
        _, pages, _ = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages * PAGE_BYTES >= LOG_BYTES_MAX + FOLD_BYTES:
            self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        self._fresh_bytes = self._log_bytes = 0

    def _sync_all(self) -> None:
        if self._unsynced_since is not None:  # a reader can prevent the checkpoint, and with it the sync
            self._set_full(True)
            self._connection.execute("BEGIN IMMEDIATE")
            self._changes.finish()
            self._connection.execute("COMMIT")
            self._directory.write_mark(self._heads.commits)
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._directory.sync()

    def _fail(self, error: Exception) -> None:
        failure = cannot_write(self._directory.path, error)
        failure.__cause__ = error
        with self._wake:
            self.failure = failure
            self._waiting.clear()
        self._failed(failure)


def _size(change: Change) -> int:
    if isinstance(change, Admit | Put):
        return CHANGE_BYTES + len(change.blob)
    return CHANGE_BYTES

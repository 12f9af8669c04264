"""A store that tests open, wait for, and close at the end."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gapless.errors import StorageError
from gapless.storage import Change, StorageSettings, open_store
from gapless.storage.store import FileStore

__all__ = ["NETWORK", "Opened", "opened"]

NETWORK = "shop-1f3a"
PATIENCE_S = 120


class Opened:
    """A store, with the reports it has made."""

    def __init__(self, path: Path, settings: StorageSettings | None = None, broker: str = "b1") -> None:
        self.reports: list[int] = []
        self.failures: list[StorageError] = []
        self._news = threading.Condition()
        self._batch = 0
        self.store: FileStore = open_store(
            path, network=NETWORK, broker=broker, settings=settings, synced=self._synced, failed=self._failed
        )
        self.reader = self.store.reader()

    def _synced(self, batch: int) -> None:
        with self._news:
            self.reports.append(batch)
            self._news.notify_all()

    def _failed(self, error: StorageError) -> None:
        with self._news:
            self.failures.append(error)
            self._news.notify_all()

    def write(self, *changes: Change) -> int:
        self._batch += 1
        self.store.write(self._batch, changes)
        return self._batch

    def wait(self, batch: int) -> None:
        with self._news:
            assert self._news.wait_for(
                lambda: self.failures or (self.reports and self.reports[-1] >= batch), PATIENCE_S
            )

    def wait_for_failure(self) -> StorageError:
        with self._news:
            assert self._news.wait_for(lambda: self.failures, PATIENCE_S)
            return self.failures[0]

    def keep(self, *changes: Change) -> None:
        self.wait(self.write(*changes))
        assert not self.failures

    def keep_each(self, changes: Sequence[Change]) -> None:
        """Write a batch for each argument, all at once."""
        for change in changes:
            self.write(change)
        self.wait(self._batch)

    def close(self) -> None:
        self.reader.close()
        self.store.close()


@contextmanager
def opened(path: Path, settings: StorageSettings | None = None, broker: str = "b1") -> Iterator[Opened]:
    store = Opened(path, settings, broker)
    try:
        yield store
    finally:
        store.close()

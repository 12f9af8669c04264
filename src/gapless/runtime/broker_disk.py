"""Connects a broker's node to its store: writes the batches of the node, and notifies it when they are on disk.

Opening and reading take time, so threads do it. The store writes in its own thread; its reports
return through the event loop.

Besides the node's data there are two entries of the runtime: the last incarnation of this broker,
and the brokers that it has met. After a full outage, a broker that lost its disk thus learns from
others that it existed before.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gapless.disk import Change, DiskContents, HistoryRow, Put
from gapless.errors import StorageError
from gapless.protocol import Keep, Persisted
from gapless.runtime.logs import Logger
from gapless.runtime.network_file import NetworkConfig
from gapless.storage import DamagedError, StorageSettings, Store, open_store

__all__ = ["BrokerDisk"]

INCARNATION = "runtime/incarnation"
MET = "runtime/met"
PAGE_BYTES = 8 * 1024 * 1024
STAMP_MAX = (1 << 63) - 1
QUEUE_BYTES = 256 * 1024 * 1024
"""The maximum number of bytes that wait to be written. The windows of clients and brokers keep the number lower."""
DAMAGES_MAX = 20
"""The maximum number of damages that are reported; `gapless data check` lists all."""
_encode = msgspec.msgpack.Encoder().encode
_decode_met = msgspec.msgpack.Decoder(dict[str, tuple[int, int]]).decode


class BrokerDisk:
    """A broker's open data directory. `give` passes inputs to the node; `failed` is called when the disk becomes
    unusable.
    """

    def __init__(
        self, give: Callable[[Persisted], None], failed: Callable[[StorageError], None], logger: Logger
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._give = give
        self._failed = failed
        self._logger = logger
        self._store: Store | None = None
        self._entries: Mapping[str, bytes] = {}
        self._batch = 0
        self._synced = 0
        self._kept: deque[tuple[int, int]] = deque()
        """The batches being written, with the numbers that the node gave them."""
        self.damages: list[str] = []
        """A description of each damage found since the start."""
        self._quiet = asyncio.Event()
        self._is_closed = False

    async def open(self, config: NetworkConfig, name: str, directory: Path) -> None:
        """Open or create the directory. Raise a `StorageError` if that fails."""
        storage = config.storage
        settings = StorageSettings(storage.sync, storage.interval_ms, QUEUE_BYTES)
        self._store = await asyncio.to_thread(
            open_store,
            directory,
            network=config.identity,
            broker=name,
            settings=settings,
            synced=self._on_synced,
            failed=self._on_failed,
        )
        found = self._store.found
        for sentence in found.exposed:
            self._logger.warning(sentence, extra={"event": "file.exposed"})
        if found.missing:
            self._logger.warning(
                f"{directory} contains stale data: {found.missing} synced commits are missing",
                extra={"event": "disk.stale"},
            )

    # ---- reading ------------------------------------------------------------------------------------------

    async def read(self) -> DiskContents:
        """Return all data of the previous start, for a node that starts."""
        await self._until_synced()
        contents = await asyncio.to_thread(self._read)
        self._entries = contents.entries
        self._kept.clear()
        return contents

    async def _until_synced(self) -> None:
        while self._synced < self._batch and not self._is_closed:
            self._quiet.clear()
            await self._quiet.wait()

    def _read(self) -> DiskContents:
        assert self._store is not None
        reader = self._store.reader()
        try:
            history = {origin: self._all_history(origin) for origin in reader.history_totals()}
            entries = reader.entries()
            return DiskContents(history, entries, is_new=INCARNATION not in entries)
        finally:
            reader.close()

    def _note_damage(self, error: DamagedError) -> None:
        """Record a damage. Threads that read call this, too."""
        if str(error) not in self.damages and len(self.damages) < DAMAGES_MAX:
            self.damages.append(str(error))

    def _all_history(self, origin: str) -> Iterator[HistoryRow]:
        """Yield the history of an origin row by row, because it may not fit into memory."""
        assert self._store is not None
        reader = self._store.reader()
        since = -1
        try:
            while True:
                try:
                    page = reader.history(origin, since, STAMP_MAX, PAGE_BYTES)
                except DamagedError as error:
                    self._note_damage(error)
                    self._logger.error(
                        f"{error}; readers get the events from other brokers", extra={"event": "disk.unreadable"}
                    )
                    if error.until >= STAMP_MAX or error.until <= since:
                        return
                    since = error.until
                    continue
                if not page:
                    return
                yield from page
                since = page[-1].last
        finally:
            reader.close()

    @property
    def incarnation(self) -> int | None:
        """Return the last incarnation that started with this disk, or None if there is none."""
        blob = self._entries.get(INCARNATION)
        return None if blob is None else msgspec.msgpack.decode(blob, type=int)

    @property
    def met(self) -> dict[str, tuple[int, int]]:
        """Return the incarnation and boot of each broker that this one has met."""
        blob = self._entries.get(MET)
        return {} if blob is None else _decode_met(blob)

    # ---- writing ------------------------------------------------------------------------------------------

    @property
    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """Return the handler for each effect that concerns the disk."""
        return {Keep: self.keep}

    def keep(self, effect: Keep) -> None:
        """Write a batch of the node's data."""
        self._kept.append((self._batch + 1, effect.number))
        self._write(effect.changes)

    async def note_incarnation(self, incarnation: int) -> None:
        """Store the incarnation of this start before the broker sends anything. Otherwise its disk would count as new
        at the next start.
        """
        self._write([Put(INCARNATION, _encode(incarnation))])
        await self._until_synced()

    def note_met(self, met: Mapping[str, tuple[int, int]]) -> None:
        """Store the starts of other brokers that this one has met."""
        self._write([Put(MET, _encode(met))])

    def _write(self, changes: Sequence[Change]) -> None:
        assert self._store is not None
        if self._is_closed:
            return
        self._batch += 1
        try:
            self._store.write(self._batch, changes)
        except StorageError as error:
            self._fail(error)

    # ---- reports of the store -----------------------------------------------------------------------------

    def _on_synced(self, batch: int) -> None:
        self._loop.call_soon_threadsafe(self._report, batch)

    def _on_failed(self, error: StorageError) -> None:
        self._loop.call_soon_threadsafe(self._fail, error)

    def _report(self, batch: int) -> None:
        self._synced = batch
        self._quiet.set()
        number = 0
        while self._kept and self._kept[0][0] <= batch:
            number = self._kept.popleft()[1]
        if number and not self._is_closed:
            self._give(Persisted(number))

    def _fail(self, error: StorageError) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._quiet.set()
            self._failed(error)

    async def close(self) -> None:
        """Write the pending batches, and unlock the directory."""
        self._is_closed = True
        if self._store is not None:
            await asyncio.to_thread(self._store.close)

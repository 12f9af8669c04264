"""Records one client of a live network, as it goes: see `part_log` for the file, `parts` for what becomes of it.

A publication is on its way to disk before it is on its way to a broker, so nobody is delivered what no part tells of.
All else may wait until somebody says `flush`. A client is there from the moment its file is, whatever it does then.

A disk that is full is no reason to stop the client. Its part ends there, like that of a client that was killed.
"""

import hashlib
import logging
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gapless.errors import TraceError
from gapless.events import Event
from gapless.protocol import Ready
from gapless.trace import part_records as records
from gapless.trace.part_log import LogWriter
from gapless.trace.rows import RunRow

__all__ = ["PARTS", "SUFFIX", "PartRecorder"]

PARTS = "parts"
SUFFIX = ".part"
NAME_MAX = 200
"""Characters of a file's name; the client's own name is in the file, too."""

_logger = logging.getLogger("gapless.trace")


class PartRecorder:
    """Records one client. Times are integer microseconds of the wall clock."""

    def __init__(self, directory: Path | str, run: RunRow, client: str) -> None:
        folder = Path(directory) / PARTS
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / _file_name(client)
        try:
            self._log: LogWriter | None = LogWriter(self.path)
        except FileExistsError:
            raise TraceError(
                f"{self.path} is there already: let every run write its trace to a directory of its own"
            ) from None
        self._write(records.Opened(run, client, socket.gethostname()))
        self.flush()

    def subscribe(self, subscription_id: str, filter_text: str, now_us: int, *, ready: Ready = "first") -> None:
        """The client asks for a subscription. `ready`: what the protocol means when it says that it is active."""
        self._write(records.Subscribed(subscription_id, filter_text, ready, now_us))

    def refuse(self, subscription_id: str) -> None:
        """The protocol rejected the subscription: there is none."""
        self._write(records.Refused(subscription_id))

    def activate(self, subscription_id: str, now_us: int) -> None:
        """`subscribe()` returned. Only the first call counts."""
        self._write(records.Activated(subscription_id, now_us))

    def fix_cut(self, subscription_id: str, publisher: str, from_seq: int) -> None:
        """The subscription gets the publisher's matching events from `from_seq` on. The last call counts."""
        self._write(records.CutFixed(subscription_id, publisher, from_seq))

    def void_cuts(self, subscription_id: str) -> None:
        """The cuts of the subscription so far are void."""
        self._write(records.CutsVoided(subscription_id))

    def end(self, subscription_id: str, last_seq: dict[str, int], now_us: int) -> None:
        """The subscription is over, with this ending cut."""
        self._write(records.Ended(subscription_id, last_seq, now_us))

    def skip(
        self, subscription_id: str, lost: dict[str, list[tuple[int, int]]], gap: tuple[int, int] | None = None
    ) -> None:
        """The subscription was told that it will not get these numbers of these publishers, nor anything between two
        positions."""
        self._write(records.Skipped(subscription_id, lost, gap))

    def open_name(
        self, subscription_id: str, name: str, generation: int, position: int, got: dict[str, int], now_us: int
    ) -> None:
        """The subscription is a named one, and goes on after a position, without these numbers of these publishers."""
        self._write(records.NameOpened(subscription_id, name, generation, position, got, now_us))

    def join_group(self, subscription_id: str, name: str, position: int, now_us: int) -> None:
        """The client is in the group that shares a durable subscription."""
        self._write(records.GroupJoined(subscription_id, name, position, now_us))

    def acknowledged(self, subscription_id: str, count: int, now_us: int, *, is_stored: bool) -> None:
        """All up to that delivery to the client is about to be confirmed for a durable subscription, or known to be.

        What it was delivered is on disk before: nobody else will get it.
        """
        self._write(records.Acknowledged(subscription_id, count, is_stored, now_us))
        if not is_stored:
            self.flush()

    def revoke(self, subscription_id: str, counts: Sequence[int]) -> None:
        """What came with these deliveries to the client is another's of its group."""
        self._write(records.Revoked(subscription_id, list(counts)))

    def publish(self, event: Event, now_us: int, *, began_us: int | None = None) -> None:
        """The client published; the call began at `began_us`, if not now."""
        self._write(records.Published(event.seq, event.attributes, now_us if began_us is None else began_us, now_us))
        self.flush()

    def deliver(self, event: Event, subscription_id: str, now_us: int, *, redelivered: bool = False) -> None:
        """An event was handed to the client's application; in a group, maybe once more."""
        self._write(
            records.Delivered(event.publisher, event.seq, subscription_id, now_us, event.stamp, redelivered)
        )  # fmt: skip

    def confirm(self, seq: int) -> None:
        """The client's events up to this number are safe."""
        self._write(records.Confirmed(seq))

    def flush(self) -> None:
        """What was recorded so far outlives this process."""
        if self._log is not None:
            self._try(self._log.flush)

    def close(self) -> None:
        """Say that nothing is left out."""
        self._write(records.Closed())
        if self._log is not None:
            self._try(self._log.close)
            self._log = None

    def _write(self, record: records.Record) -> None:
        if self._log is not None:
            self._try(self._log.append, records.encode(record))

    def _try(self, act: Any, *arguments: Any) -> None:
        try:
            act(*arguments)
        except OSError as error:
            self._log = None
            _logger.warning("the trace %s ends here, for it cannot be written: %s", self.path, error)


def _file_name(client: str) -> str:
    """The client's name, where a file can have it."""
    name = quote(client, safe="")
    return (name if len(name) <= NAME_MAX else hashlib.sha256(client.encode()).hexdigest()) + SUFFIX

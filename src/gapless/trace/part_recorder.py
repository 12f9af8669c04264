"""Records one client of a live network. See `part_log` for the file, and `parts` for its use.

A publication is written before it is sent to a broker, so every delivered event has a recorded
publication. Everything else can wait for `flush`. A client counts from the moment its file exists.

A full disk does not stop the client. Its part ends there, like that of a killed client.
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
"""Maximum length of a file name made from a client's name. The file contains the full name."""

_logger = logging.getLogger("gapless.trace")


class PartRecorder:
    """Records the actions of one client. Times are integer microseconds of the wall clock."""

    def __init__(self, directory: Path | str, run: RunRow, client: str) -> None:
        folder = Path(directory) / PARTS
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / _file_name(client)
        try:
            self._log: LogWriter | None = LogWriter(self.path)
        except FileExistsError:
            raise TraceError(
                f"{self.path} already exists: let every run write its trace to a directory of its own"
            ) from None
        self._write(records.Opened(run, client, socket.gethostname()))
        self.flush()

    def subscribe(self, subscription_id: str, filter_text: str, now_us: int, *, ready: Ready = "first") -> None:
        """Record that the client requests a subscription. `ready` is the protocol's meaning of active."""
        self._write(records.Subscribed(subscription_id, filter_text, ready, now_us))

    def refuse(self, subscription_id: str) -> None:
        """Record that the protocol rejected the subscription."""
        self._write(records.Refused(subscription_id))

    def activate(self, subscription_id: str, now_us: int) -> None:
        """Record that `subscribe()` returned. Only the first call counts."""
        self._write(records.Activated(subscription_id, now_us))

    def fix_cut(self, subscription_id: str, publisher: str, from_seq: int) -> None:
        """Record that the publisher's matching events from `from_seq` on are due. The last call counts."""
        self._write(records.CutFixed(subscription_id, publisher, from_seq))

    def void_cuts(self, subscription_id: str) -> None:
        """Record that all cuts of the subscription fixed so far are void."""
        self._write(records.CutsVoided(subscription_id))

    def end(self, subscription_id: str, last_seq: dict[str, int], now_us: int) -> None:
        """Record that the subscription has ended, with this ending cut."""
        self._write(records.Ended(subscription_id, last_seq, now_us))

    def skip(
        self, subscription_id: str, lost: dict[str, list[tuple[int, int]]], gap: tuple[int, int] | None = None
    ) -> None:
        """Record that these events, given as numbers by publisher, and everything between two positions, were reported
        as lost."""
        self._write(records.Skipped(subscription_id, lost, gap))

    def open_name(
        self, subscription_id: str, name: str, generation: int, position: int, got: dict[str, int], now_us: int
    ) -> None:
        """Record that the subscription is durable, and continues after a position and after the numbers in `got`, by
        publisher."""
        self._write(records.NameOpened(subscription_id, name, generation, position, got, now_us))

    def join_group(self, subscription_id: str, name: str, position: int, now_us: int) -> None:
        """Record that the client joined the group of a shared subscription."""
        self._write(records.GroupJoined(subscription_id, name, position, now_us))

    def acknowledged(self, subscription_id: str, count: int, now_us: int, *, is_stored: bool) -> None:
        """Record that everything up to a delivery is about to be acknowledged, or is known to be acknowledged.

        The deliveries are written first, because no other client will receive them.
        """
        self._write(records.Acknowledged(subscription_id, count, is_stored, now_us))
        if not is_stored:
            self.flush()

    def acknowledged_each(self, subscription_id: str, counts: Sequence[int], now_us: int, *, is_stored: bool) -> None:
        """Record acknowledgements of single deliveries."""
        self._write(records.EachAcknowledged(subscription_id, list(counts), is_stored, now_us))
        if not is_stored:
            self.flush()

    def dead_letter(self, subscription_id: str, publisher: str, seq: int, letter: int) -> None:
        """Record that the client's event `letter` is the dead letter of an event of a durable subscription."""
        self._write(records.DeadLettered(subscription_id, publisher, seq, letter))

    def revoke(self, subscription_id: str, counts: Sequence[int]) -> None:
        """Record that these deliveries were returned, or reassigned to another member of the group."""
        self._write(records.Revoked(subscription_id, list(counts)))

    def publish(self, event: Event, now_us: int, *, began_us: int | None = None) -> None:
        """Record a publication. The call began at `began_us`, by default now."""
        self._write(records.Published(event.seq, event.attributes, now_us if began_us is None else began_us, now_us))
        self.flush()

    def deliver(self, event: Event, subscription_id: str, now_us: int, *, redelivered: bool = False) -> None:
        """Record that an event was passed to the client's application; in a group, possibly a redelivery."""
        self._write(
            records.Delivered(event.publisher, event.seq, subscription_id, now_us, event.stamp, redelivered)
        )  # fmt: skip

    def confirm(self, seq: int) -> None:
        """Record that the client's events up to this number are confirmed."""
        self._write(records.Confirmed(seq))

    def flush(self) -> None:
        """Make everything recorded so far survive a crash of this process."""
        if self._log is not None:
            self._try(self._log.flush)

    def close(self) -> None:
        """Record that the part is complete."""
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
            _logger.warning(
                f"the trace {self.path} ends here, because it cannot be written: {error}",
                extra={"event": "trace.write_failed"},
            )


def _file_name(client: str) -> str:
    """Return the client's name as a valid file name."""
    name = quote(client, safe="")
    return (name if len(name) <= NAME_MAX else hashlib.sha256(client.encode()).hexdigest()) + SUFFIX

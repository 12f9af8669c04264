"""The audit log of a broker: logins, refusals, and the actions of operators.

Each line is a JSON object in ASCII with `time`, `event` and `broker`. The values of `event` are
stable; `OPERATING.md` lists them. Only the broker's user can access the file. If it was moved or
removed, the next line goes into a new file, so rotation needs no signal.

Lines caused by unauthenticated peers are bounded: `UNAUTHENTICATED_PER_S` lines a second, followed by one
line with the number of omitted lines. Logins and operators' actions are always written. If a line
cannot be written, the broker continues, reports the error in its log, and counts it.
"""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gapless.errors import ConfigError
from gapless.private_files import restrict
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger
from gapless.runtime.wire import Hello
from gapless.security.identity import Identity
from gapless.security.limits import Bucket

__all__ = ["Actor", "AuditLog"]

UNAUTHENTICATED_PER_S = 20.0
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class Actor(NamedTuple):
    """The user or broker that performs an action, and its address."""

    identity: Identity
    address: str

    @property
    def facts(self) -> dict[str, str]:
        """Return the fields that describe the actor in logs."""
        proof = {"proof": self.identity.proof} if self.identity.proof else {}
        return {"who": self.identity.text, **proof, "address": self.address}


class AuditLog:
    """Writes the audit log of one broker. Without a file, operators' actions appear only in the broker's log."""

    def __init__(self, file: str, broker: str, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = 0
        """Number of lines that could not be written."""
        self._file = Path(file) if file else None
        self._broker = broker
        self._logger = logger
        self._clock = clock
        self._unauthenticated = Bucket(UNAUTHENTICATED_PER_S, clock())
        self._left_out = 0
        self._log_backoff = LogBackoff()
        self._handle = -1
        self._opened = (0, 0)
        if self._file is not None:
            self._open_first(self._file)

    def _open_first(self, file: Path) -> None:
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            complaint = restrict(file)
            self._open(file)
        except OSError as error:
            raise ConfigError(f"audit_log.file: {file}: cannot be written: {error.strerror}") from None
        if complaint:
            self._logger.warning(complaint, extra={"event": "file.exposed"})

    # ---- recorded events ------------------------------------------------------------------------------------

    def login(self, hello: Hello, actor: Actor) -> None:
        """Record that a peer logged in."""
        self._write("login", {"role": hello.role, "peer": hello.name, **actor.facts})

    def refused(self, event: str, reason: str, facts: dict[str, str]) -> None:
        """Record that a peer was refused, or that its connection was ended."""
        if self._file is None:
            return
        if not self._unauthenticated.try_take(self._clock()):
            self._left_out += 1
            return
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            self._write("refusals.left_out", {"count": left_out})
        self._write(event, {**facts, "reason": reason})

    def act(self, event: str, sentence: str, actor: Actor, **facts: str) -> None:
        """Record an action that changed something for other users, by an operator or a user with that right."""
        self._logger.warning(sentence, extra={"event": event, **facts, **actor.facts})
        self._write(event, {**facts, **actor.facts})

    def note(self, event: str, **facts: str) -> None:
        """Record another event that changes permissions, such as a reload of users."""
        self._write(event, facts)

    # ---- the file -------------------------------------------------------------------------------------------

    def _write(self, event: str, facts: dict[str, str] | dict[str, int]) -> None:
        if self._file is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": now, "event": event, "broker": self._broker, **facts}) + "\n"
        try:
            if self._was_moved(self._file):
                self._open(self._file)
            os.write(self._handle, line.encode("ascii"))
        except OSError as error:
            self.failures += 1
            if self._log_backoff.due("failure"):
                self._logger.error(
                    f"cannot write the audit log {self._file}: {error.strerror}; free some space for it",
                    extra={"event": "audit.failed"},
                )

    def _was_moved(self, file: Path) -> bool:
        try:
            about = file.stat()
        except FileNotFoundError:
            return True
        return (about.st_dev, about.st_ino) != self._opened

    def _open(self, file: Path) -> None:
        handle = os.open(file, _FLAGS, 0o600)
        self.close()
        about = os.fstat(handle)
        self._handle, self._opened = handle, (about.st_dev, about.st_ino)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle, self._opened = -1, (0, 0)

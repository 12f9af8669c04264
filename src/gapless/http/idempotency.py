"""Makes retries idempotent: an event whose identifier is known is not published again.

The gateway remembers the identifiers that it received for `KEPT_S`, also while the first attempt is in progress, so a
retry waits for the same result. An unknown identifier may have been used at another broker, or before this one was
restarted. So the gateway first searches the history of the last `KEPT_S` for it, which needs the right to read history.
Without that right, or if the protocol keeps no history, a retry has to go to the same broker while it is running.
"""

import asyncio
import time
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from gapless.http.event_json import Draft
from gapless.http.problems import ProblemError

__all__ = ["KEPT_S", "Outcome", "Outcomes"]

KEPT_S = 600.0
KEPT_MAX = 100_000

Key: TypeAlias = tuple[str, str, str]
"""The user, the source and the identifier of an event."""


class Outcome(msgspec.Struct):
    """The result of publishing the event with one identifier."""

    digest: bytes
    result: "asyncio.Future[str]"
    """A future of the event's id."""
    since: float


class Outcomes:
    """The results that one gateway remembers."""

    def __init__(self) -> None:
        self._known: dict[Key, Outcome] = {}

    def find(self, user: str, draft: Draft) -> "asyncio.Future[str] | None":
        """Return the result of the first attempt, or None if there was none. Raise a `ProblemError` if that was another
        event.
        """
        known = self._known.get((user, draft.source, draft.id))
        if known is None:
            return None
        if known.digest != _digest(draft):
            raise ProblemError(
                "conflict", f"the id {draft.id[:80]!r} was used for another event; give each event a different id"
            )
        return known.result

    def begin(self, user: str, draft: Draft, result: "asyncio.Future[str]") -> None:
        """Record a first attempt. The caller sets its result; a failed attempt is forgotten."""
        key = user, draft.source, draft.id
        while len(self._known) >= KEPT_MAX:
            del self._known[next(iter(self._known))]
        self._known[key] = Outcome(_digest(draft), result, time.monotonic())
        result.add_done_callback(lambda done: self._settle(key, done))

    def _settle(self, key: Key, result: "asyncio.Future[str]") -> None:
        has_failed = result.cancelled() or result.exception() is not None
        if has_failed and key in self._known and self._known[key].result is result:
            del self._known[key]

    def prune(self) -> None:
        """Forget entries older than `KEPT_S`."""
        oldest = time.monotonic() - KEPT_S
        for key, outcome in list(self._known.items()):
            if outcome.since >= oldest:
                return
            if outcome.result.done():
                del self._known[key]


def _digest(draft: Draft) -> bytes:
    return blake2b(msgspec.msgpack.encode((draft.attributes, draft.payload), order="sorted"), digest_size=16).digest()

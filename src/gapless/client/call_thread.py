"""Runs a callback of the application in a separate thread, where it can block and make calls of the client.

In the thread of the event loop it could do neither. Calls are sequential; reports that arrive during a call are passed
to the next one.
"""

import logging
import threading

from gapless.client.publishing import LostCallback

__all__ = ["CallThread"]


class CallThread:
    """Passes reports of lost publications to one callback. The thread exists only while there are reports."""

    def __init__(self, function: LostCallback) -> None:
        self.function = function
        self._lock = threading.Lock()
        self._unreported: list[tuple[int, int]] = []
        self._is_reporting = False

    def __call__(self, ranges: list[tuple[int, int]]) -> None:
        """Schedule the callback with these ranges and return at once."""
        with self._lock:
            self._unreported.extend(ranges)
            if not self._is_reporting:
                self._is_reporting = True
                threading.Thread(target=self._report, name="gapless-lost", daemon=True).start()

    def _report(self) -> None:
        while True:
            with self._lock:
                ranges, self._unreported = self._unreported, []
                if not ranges:
                    self._is_reporting = False
                    return
            try:
                self.function(ranges)
            except Exception:
                logging.getLogger("gapless.client").exception(
                    "on_publications_lost failed", extra={"event": "callback.failed"}
                )

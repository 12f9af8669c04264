"""Calls a function of the application in its own thread, where it can block and make calls of the client.

In the thread of the event loop it could do neither. Calls are sequential; reports that arrive during a call are passed
to the next one.
"""

import logging
import threading

from gapless.client.publishing import TellLost

__all__ = ["CallThread"]


class CallThread:
    """Reports losses to one function. The thread exists only while there are reports."""

    def __init__(self, function: TellLost) -> None:
        self.function = function
        self._lock = threading.Lock()
        self._untold: list[tuple[int, int]] = []
        self._is_telling = False

    def __call__(self, ranges: list[tuple[int, int]]) -> None:
        """Schedule a call without waiting for it."""
        with self._lock:
            self._untold.extend(ranges)
            if not self._is_telling:
                self._is_telling = True
                threading.Thread(target=self._tell, name="gapless-told", daemon=True).start()

    def _tell(self) -> None:
        while True:
            with self._lock:
                ranges, self._untold = self._untold, []
                if not ranges:
                    self._is_telling = False
                    return
            try:
                self.function(ranges)
            except Exception:
                logging.getLogger("gapless.client").exception("on_publications_lost failed")

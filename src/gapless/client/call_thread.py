"""Calls a function of the application's in a thread of its own, where it may wait, and make calls of the client.

In the thread of the event loop it could do neither. Calls come one after the other; what there is to tell while the
function is busy comes with its next call.
"""

import logging
import threading

from gapless.client.publishing import TellLost

__all__ = ["CallThread"]


class CallThread:
    """Tells one function of what is lost. There is a thread only while there is something to tell."""

    def __init__(self, function: TellLost) -> None:
        self.function = function
        self._lock = threading.Lock()
        self._untold: list[tuple[int, int]] = []
        self._is_telling = False

    def __call__(self, ranges: list[tuple[int, int]]) -> None:
        """Have it called; waits for nothing."""
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

"""The part of a synchronous `Answering` in its own threads, in which handlers can block and make calls."""

from concurrent.futures import ThreadPoolExecutor

from gapless.client.synchronous import Synchronous

__all__ = ["AnsweringSide"]


class AnsweringSide(Synchronous):
    """Owns the threads that call a handler."""

    _threads: ThreadPoolExecutor

    def _close(self) -> None:
        self._loop.run(self._inner.close())
        self._threads.shutdown(wait=False, cancel_futures=True)

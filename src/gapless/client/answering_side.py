"""The threads of a synchronous `Answering`, in which handlers can block and make calls of the client."""

from concurrent.futures import ThreadPoolExecutor

from gapless.client.synchronous import Synchronous

__all__ = ["AnsweringSide"]


class AnsweringSide(Synchronous):
    """Calls the handler of a synchronous `Answering` in threads of its own."""

    _threads: ThreadPoolExecutor

    def _close(self) -> None:
        self._loop.run(self._inner.close())
        self._threads.shutdown(wait=False, cancel_futures=True)

"""Spark when it is needed: a sweep whose runs are all done does not wait for it to start."""

from contextlib import ExitStack
from types import TracebackType

from pyspark.sql import SparkSession

from gapless_spark.address import require_address
from gapless_spark.session import spark_session

__all__ = ["LazySession"]

HERE_S = 60.0
"""Several times what Spark takes to start."""


class LazySession:
    """One session for a command, started at the first call, closed at the end; a wrong address is noticed at once."""

    def __init__(self, master: str | None, remote: str | None) -> None:
        require_address(master, remote)
        self._master = master
        self._remote = remote
        self._spark: SparkSession | None = None
        self._stack = ExitStack()

    @property
    def here_s(self) -> float:
        """How long a sweep goes on in processes of this machine before Spark starts; not at all on a cluster."""
        return 0.0 if self._master or self._remote else HERE_S

    def __enter__(self) -> "LazySession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def __call__(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._stack.enter_context(spark_session(master=self._master, remote=self._remote))
        return self._spark

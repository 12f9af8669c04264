"""The interface of a system to be measured."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from gapless.runtime.fleet import free_ports

TOPIC = "bench"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def distinct_attributes() -> Iterator[dict[str, Any]]:
    """Yield the attributes of successive events: a topic and four distinct values, or the requested number of them."""
    asked = os.environ.get("BENCH_ATTRIBUTES")
    if asked is None:
        return (
            {
                "topic": TOPIC,
                "symbol": f"S{number % 5_000}",
                "price": 0.25 * number,
                "qty": number % 1_000,
                "id": number,
            }
            for number in count()
        )
    names = [f"a{number}" for number in range(int(asked))]
    return ({"topic": TOPIC, **dict.fromkeys(names, number)} for number in count())


class System(ABC):
    """One system; `promise` is its guarantee."""

    name: str
    promise: str
    program: str = ""
    """The server's program, from a package of the operating system."""
    library: str = ""
    """The client library."""
    servers: "list[subprocess.Popen[bytes]]" = []  # noqa: RUF012 - replaced, not changed
    """The running server processes."""

    def missing(self) -> str:
        """Return why the system cannot run here; empty if it can."""
        if self.program and shutil.which(self.program) is None:
            return f"{self.program} is not installed"
        if self.library and find_spec(self.library) is None:
            return f"the Python package {self.library} is not installed"
        return ""

    @abstractmethod
    def command(self, port: int, folder: Path) -> list[str]:
        """Return the command that starts the server on a port of loopback."""

    @contextlib.contextmanager
    def serve(self, folder: Path) -> Iterator[int]:
        """Start a server for the block; yield its port."""
        port = free_ports(1)[0]
        server = subprocess.Popen(self.command(port, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.servers = [server]
        try:
            wait_for(port, server)
            yield port
        finally:
            server.kill()
            server.wait()

    def processor_s(self) -> float:
        """Return the processor time of its servers so far."""
        fields = [Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split() for server in self.servers]
        return sum(int(each[11]) + int(each[12]) for each in fields) / CLOCK_TICKS

    @abstractmethod
    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        """Publish as fast as the system accepts; return when all publications are confirmed, if the system confirms."""

    @abstractmethod
    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        """Publish each payload as it arrives."""

    @abstractmethod
    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Call `ready` when the subscription is active, and `take` with each payload until it returns false."""


def wait_for(port: int, server: "subprocess.Popen[bytes]", seconds: float = 20.0) -> None:
    """Wait until a server listens on the port."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{server.args!r} does not listen on port {port}")

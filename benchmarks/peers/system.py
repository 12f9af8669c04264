"""The interface of a system to be measured."""

import contextlib
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from gapless.runtime.fleet import free_ports

TOPIC = "bench"


class System(ABC):
    """One system; `promise` is what it gives for its speed."""

    name: str
    promise: str
    program: str = ""
    """The server's program, from a package of the operating system."""
    library: str = ""
    """The client's library."""

    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        if self.program and shutil.which(self.program) is None:
            return f"{self.program} is not installed"
        if self.library and find_spec(self.library) is None:
            return f"the Python package {self.library} is not installed"
        return ""

    @abstractmethod
    def command(self, port: int, folder: Path) -> list[str]:
        """How to start the server on a port of loopback."""

    @contextlib.contextmanager
    def serve(self, folder: Path) -> Iterator[int]:
        """A server, and its port."""
        port = free_ports(1)[0]
        server = subprocess.Popen(self.command(port, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port, server)
            yield port
        finally:
            server.kill()
            server.wait()

    @abstractmethod
    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        """Publish as fast as the system takes it; return when it has confirmed all, if it confirms."""

    @abstractmethod
    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        """Publish each when it comes."""

    @abstractmethod
    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Call `ready` when nothing published from now on is missed, and `take` with each payload until it is false."""


def wait_for(port: int, server: "subprocess.Popen[bytes]", seconds: float = 20.0) -> None:
    """Until somebody listens on the port."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{server.args!r} does not listen on port {port}")

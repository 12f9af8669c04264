"""Gapless: exactly once, in causal order, from an exact start, with every publication confirmed."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.peers.system import TOPIC, System, distinct_attributes, wait_for

import gapless
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.fleet import free_ports
from gapless.runtime.probe import ask_for_report

FILTER = f"topic = '{TOPIC}'"
ATTRIBUTES = {"topic": TOPIC}
PATIENCE_S = 10.0


class Gapless(System):
    """A chain of brokers with publishers at the last and subscribers at the first."""

    name = "gapless"
    scheme = "gapless://"
    promise = "exactly once, causal order, exact start, confirmed"
    protocol = "gapless"
    """The protocol of its brokers."""
    longest_turn = (0.0, "nothing")
    """The longest turn of all brokers in all runs, in milliseconds of processor time, with its cause."""

    def __init__(self, brokers: int = 1, f: int = 0, edges: Sequence[tuple[int, int]] | None = None) -> None:
        """Create a chain, or brokers with these edges."""
        self._f = f
        self._edges = [(number, number + 1) for number in range(brokers - 1)] if edges is None else edges
        self.ports = free_ports(brokers)

    def attributes(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of successive events; here they are equal."""
        return repeat(ATTRIBUTES)

    @property
    def credentials(self) -> Path | None:
        """Return the credentials of its clients, if they need any."""
        return None

    @property
    def access(self) -> Access:
        """Return how to query its brokers."""
        return CLEAR

    def more(self, folder: Path) -> str:
        """Return further lines of the network file. All clients connect from one address, whose limits are off."""
        return "[limits]\nconnections = 0\nconnections_per_s = 0\nattach_share = 0\n"

    def of_broker(self, name: str, folder: Path) -> str:
        """Return further lines of the network file for one broker."""
        return ""

    def command(self, port: int, folder: Path) -> list[str]:
        main = "from gapless.cli.main import run; run()"
        return [sys.executable, "-c", main, "broker", "--config", str(folder / "network.toml"), "--name"]

    @contextlib.contextmanager
    def serve(self, folder: Path) -> Iterator[int]:
        edges = ", ".join(f'["b{one}", "b{other}"]' for one, other in self._edges)
        text = f'[network]\nf = {self._f}\nedges = [{edges}]\n[protocol]\nname = "{self.protocol}"\n'
        for number, port in enumerate(self.ports):
            text += f'[[brokers]]\nname = "b{number}"\naddress = "127.0.0.1:{port}"\n'
            text += self.of_broker(f"b{number}", folder)
        text += self.more(folder)
        (folder / "network.toml").write_text(text)
        servers = self.servers = list[subprocess.Popen[bytes]]()
        try:
            for number in range(len(self.ports)):
                servers.append(self.start(f"b{number}", folder))
            for port, server in zip(self.ports, servers, strict=True):
                wait_for(port, server, 20.0 + 4 * len(servers))
            yield self.ports[0]
            self._note_turns()
        finally:
            for server in servers:
                server.kill()
                server.wait()

    def start(self, name: str, folder: Path) -> "subprocess.Popen[bytes]":
        """Start one of its brokers."""
        command = [*self.command(0, folder), name]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _note_turns(self) -> None:
        """Ask each broker for the longest turn of its event loop."""
        for number, port in enumerate(self.ports):
            turns = asyncio.run(ask_for_report(f"127.0.0.1:{port}", timeout_s=PATIENCE_S, access=self.access))["turns"]
            if turns["longest_ms"] > self.longest_turn[0]:
                Gapless.longest_turn = (turns["longest_ms"], f"b{number}: {turns['what']}")

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        async with gapless.connect(f"{self.scheme}127.0.0.1:{port}", credentials=self.credentials) as client:
            await client.advertise(FILTER)
            await client.publish_many(zip(self.attributes(), payloads, strict=False))

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        async with (
            gapless.connect(f"{self.scheme}127.0.0.1:{port}", credentials=self.credentials) as client,
            asyncio.TaskGroup() as tasks,
        ):
            await client.advertise(FILTER)
            attributes = self.attributes()
            async for payload in payloads:
                tasks.create_task(client.publish(next(attributes), payload))

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        async with gapless.connect(f"{self.scheme}127.0.0.1:{port}", credentials=self.credentials) as client:
            subscription = await client.subscribe(FILTER)
            ready()
            while events := await subscription.take(1024):
                for event in events:
                    if not take(event.payload):
                        return


class GaplessDistinct(Gapless):
    """Gapless with events as in typical applications: each has distinct values besides its topic."""

    name = "gapless, distinct attributes"

    def attributes(self) -> Iterator[dict[str, Any]]:
        """Yield the topic and four distinct attributes of successive events."""
        return distinct_attributes()


class GaplessOnDisk(Gapless):
    """Gapless with data on disk, synced by f + 1 brokers before a publication is confirmed."""

    name = "gapless, synced"
    promise = "exactly once, causal order, exact start, confirmed, on disk"

    def of_broker(self, name: str, folder: Path) -> str:
        return f'data = "{folder / name}"\n'

"""Proxies between brokers that can cut, slow and restore the connection of any two of them.

Other nodes reach a broker at the proxy's address, and the broker listens behind the proxy. The proxy reads the
greeting of each connection, so it knows both ends. If two brokers are *cut*, their connection breaks, and new ones
fail until they are healed. If a direction is *muted*, its messages are delayed, as if a router dropped them: they
arrive after the healing, if the connection still exists. If a connection is *slowed*, its messages arrive later, in
order.

`CutProxyProcess` runs in a separate process, so that brokers stay connected however busy the test is.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec

from gapless.runtime.address import split_address
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import free_ports
from gapless.runtime.network_file import NetworkConfig, load_network
from gapless.runtime.wire import HEADER, decode_hello

__all__ = ["CutProxy", "CutProxyProcess", "proxied"]


def proxied(config: NetworkConfig) -> NetworkConfig:
    """Return the network with other listening addresses, so that proxies can use the public ones."""
    behind = free_ports(len(config.brokers))
    return msgspec.structs.replace(
        config,
        brokers=tuple(
            msgspec.structs.replace(entry, listen=f"127.0.0.1:{port}")
            for entry, port in zip(config.brokers, behind, strict=True)
        ),
    )


class CutProxy:
    """The proxy between all brokers of a network that is `proxied`."""

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        self._cut: set[frozenset[str]] = set()
        self._open_ways: dict[tuple[str, str], asyncio.Event] = {}
        """An event by sender and receiver, not set while that direction is muted."""
        self._delays: dict[frozenset[str], float] = {}
        self._open: dict[frozenset[str], set[asyncio.StreamWriter]] = {}
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Listen at every broker's address."""
        for entry in self.config.brokers:
            host, port = split_address(entry.address)

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = entry.name,
                place: str = entry.listen,
            ) -> None:  # fmt: skip
                await self._serve(name, place, reader, writer)

            self._servers.append(await asyncio.start_server(serve, host, port))

    def stop(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()
        for pair in list(self._open):
            self._break(pair)

    def cut(self, a: str, b: str) -> None:
        """Cut the connection of two brokers."""
        pair = frozenset((a, b))
        self._cut.add(pair)
        self._break(pair)

    def mute(self, a: str, b: str) -> None:
        """Delay all messages from `a` to `b`."""
        self._way(a, b).clear()

    def slow(self, a: str, b: str, seconds: float) -> None:
        """Slow the connection of two brokers."""
        self._delays[frozenset((a, b))] = seconds

    def heal(self, a: str, b: str) -> None:
        """Restore the connection in both directions, at full speed."""
        pair = frozenset((a, b))
        self._cut.discard(pair)
        self._delays.pop(pair, None)
        self._way(a, b).set()
        self._way(b, a).set()

    def _way(self, origin: str, to: str) -> asyncio.Event:
        way = self._open_ways.get((origin, to))
        if way is None:
            way = self._open_ways[origin, to] = asyncio.Event()
            way.set()
        return way

    def _break(self, pair: frozenset[str]) -> None:
        for writer in self._open.pop(pair, ()):
            writer.transport.abort()

    async def _serve(self, name: str, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readexactly(5)
            body = await reader.readexactly(HEADER.unpack(head)[0] - 1)
            caller = decode_hello(memoryview(body)).name
            pair = frozenset((name, caller))
            if pair in self._cut or not self._way(caller, name).is_set():
                return
            there, back = await asyncio.open_connection(*split_address(place))
            ends = self._open.setdefault(pair, set())
            ends |= {writer, back}
            back.write(head + body)
            try:
                await asyncio.gather(self._pump(reader, back, caller, name), self._pump(there, writer, name, caller))
            finally:
                ends -= {writer, back}
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # an end is gone, or the test is over
        finally:
            writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, origin: str, to: str) -> None:
        """Forward data in one direction, with its current faults."""
        way, pair = self._way(origin, to), frozenset((origin, to))
        try:
            while data := await reader.read(65536):
                if not way.is_set():
                    await way.wait()
                if self._delays and pair in self._delays:
                    await asyncio.sleep(self._delays[pair])
                writer.write(data)
                await writer.drain()
        except (OSError, RuntimeError):
            pass  # the other end is gone, or has just been aborted
        finally:
            writer.transport.abort()


class CutProxyProcess:
    """A proxy in a separate process, for the network in this file. It ends with its parent at the latest."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-m", "trials.cut_proxy", str(file)]
        self._process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, start_new_session=True
        )

    def cut(self, a: str, b: str) -> None:
        """Cut the connection of two brokers."""
        self._tell(f"cut {a} {b}")

    def mute(self, a: str, b: str) -> None:
        """Delay all messages from `a` to `b`."""
        self._tell(f"mute {a} {b}")

    def slow(self, a: str, b: str, seconds: float) -> None:
        """Slow the connection of two brokers."""
        self._tell(f"slow {a} {b} {seconds}")

    def heal(self, a: str, b: str) -> None:
        """Restore the connection in both directions, at full speed."""
        self._tell(f"heal {a} {b}")

    def _tell(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n".encode())
        self._process.stdin.flush()

    def close(self) -> None:
        """Stop the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


async def _obey(file: str) -> None:
    """Execute the commands on standard input until it ends."""
    proxy = CutProxy(load_network(file))
    await proxy.start()
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        order, a, b, *more = line.decode().split()
        if order == "slow":
            proxy.slow(a, b, float(more[0]))
        else:
            {"cut": proxy.cut, "mute": proxy.mute, "heal": proxy.heal}[order](a, b)
    proxy.stop()


if __name__ == "__main__":
    run(_obey(sys.argv[1]))

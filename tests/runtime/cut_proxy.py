"""A small proxy in front of every broker, so that the connection between any two of them can be cut and healed.

Brokers are found at the proxy's addresses and listen behind it. The proxy reads the greeting of who dials, so it knows
between whom a connection is. Cut, both ends see their connection break, and nothing gets through until it is healed.
"""

import asyncio

import msgspec

from gapless.runtime.address import split_address
from gapless.runtime.fleet import free_ports
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.wire import HEADER, decode_hello

__all__ = ["CutProxy"]


class CutProxy:
    """Stands between all brokers of a network. `config` is the network as it is to be started."""

    def __init__(self, config: NetworkConfig) -> None:
        behind = free_ports(len(config.brokers))
        self.config = msgspec.structs.replace(
            config,
            brokers=tuple(
                msgspec.structs.replace(entry, listen=f"127.0.0.1:{port}")
                for entry, port in zip(config.brokers, behind, strict=True)
            ),
        )
        self._cut: set[frozenset[str]] = set()
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
        """Listen no more."""
        for server in self._servers:
            server.close()
        for pair in list(self._open):
            self._break(pair)

    def cut(self, a: str, b: str) -> None:
        """Part the two."""
        pair = frozenset((a, b))
        self._cut.add(pair)
        self._break(pair)

    def heal(self, a: str, b: str) -> None:
        """Let them find each other again."""
        self._cut.discard(frozenset((a, b)))

    def _break(self, pair: frozenset[str]) -> None:
        for writer in self._open.pop(pair, ()):
            writer.transport.abort()

    async def _serve(self, name: str, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readexactly(5)
            body = await reader.readexactly(HEADER.unpack(head)[0] - 1)
            pair = frozenset((name, decode_hello(memoryview(body)).name))
            if pair in self._cut:
                return
            there, back = await asyncio.open_connection(*split_address(place))
            ends = self._open.setdefault(pair, set())
            ends |= {writer, back}
            back.write(head + body)
            try:
                await asyncio.gather(_pump(reader, back), _pump(there, writer))
            finally:
                ends -= {writer, back}
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # an end is gone, or the test is over
        finally:
            writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (OSError, RuntimeError):
        pass  # the other end is gone, or was aborted in this moment
    finally:
        writer.transport.abort()

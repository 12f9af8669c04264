"""HTTP requests with arbitrary content: the server answers each or closes the connection."""

from __future__ import annotations

import asyncio
from random import Random

from gapless.runtime.http_endpoint import HttpEndpoint
from tests.fuzz.changes import changed_bytes, changed_text
from tests.fuzz.real_broker import RealBroker
from tests.fuzz.target import Target, Unexpected
from tests.fuzz.transport import Transport

KNOWN = (
    "GET", "HEAD", "POST", "/", "/healthz", "/metrics", "/status", "/status?x=1", "*", "http://x/healthz", "HTTP/1.1",
    "HTTP/9", "Host", "Content-Length", "-1", "99999999999", "Transfer-Encoding", "chunked", '\xe9', "%00", "\r\n",
    "\r", "\n", " ", ": ", "x" * 9_000, "\x00",
)  # fmt: skip


class HttpRequests(Target):
    """Inputs are the bytes of a connection to the HTTP port."""

    name = "http"
    about = "requests to the HTTP side of a broker"

    def __init__(self) -> None:
        self._real = RealBroker()
        self._endpoint = HttpEndpoint(self._real.broker)

    def draw(self, dice: Random) -> bytes:
        path = dice.choice(("/healthz", "/metrics", "/status", "/", "/nothing"))
        headers = "".join(dice.choice(("Host: x\r\n", "Accept: */*\r\n")) for _ in range(dice.randrange(3)))
        return f"{dice.choice(('GET', 'HEAD', 'POST'))} {path} HTTP/1.1\r\n{headers}\r\n".encode()

    def change(self, data: bytes, dice: Random) -> bytes:
        if dice.random() < 0.5:
            return changed_bytes(data, dice)
        return changed_text(data.decode("latin-1"), dice, KNOWN).encode("latin-1", errors="replace")

    def run(self, data: bytes) -> str:
        transport = Transport()
        self._real.wait(self._serve(data, transport))
        self._real.check()
        answer = bytes(transport.written)
        if not transport.is_closing():
            raise Unexpected("the connection stays open")
        if not answer:
            return "closed"
        if not answer.startswith(b"HTTP/1.1 ") or b"\r\n\r\n" not in answer:
            raise Unexpected(f"this is no answer: {answer[:50]!r}")
        return answer[9:12].decode()

    async def _serve(self, data: bytes, transport: Transport) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=8192, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        reader.set_transport(transport)
        reader.feed_data(data)
        reader.feed_eof()
        await self._endpoint._serve(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    def close(self) -> None:
        self._real.close()

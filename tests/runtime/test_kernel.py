"""The kernel's state of a real connection."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gapless.runtime.event_loop import run
from gapless.runtime.kernel import has_unread, was_acknowledged_within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say")


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def test_bytes_that_wait_and_a_peer_that_acknowledges_without_reading() -> None:
    async def main() -> None:
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda reader, writer: accepted.set_result(writer), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        there: Any = (await accepted).transport
        there.pause_reading()  # as for a stopped process, only its kernel continues
        assert not has_unread(there)
        await asyncio.sleep(0.05)
        assert not was_acknowledged_within(writer.transport, 1.0)
        writer.write(b"ping")
        await _until(lambda: has_unread(there))
        await _until(lambda: was_acknowledged_within(writer.transport, 1_000.0))
        assert not has_unread(writer.transport)
        for each in (writer.transport, there):
            each.abort()
        server.close()

    run(main())


def test_a_connection_without_a_socket_reports_nothing() -> None:
    assert not has_unread(None)
    assert not was_acknowledged_within(None, 1_000.0)

"""Peers that are refused before authentication leave nothing in a broker's memory."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gapless.runtime import wire
from gapless.runtime.address import split_address
from gapless.runtime.connection import HELLO_MAX
from gapless.runtime.event_loop import run
from gapless.runtime.tls import client_context

from .secure import Secure, secure, until

VISITS = 12

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Visit = Callable[[Secure], Awaitable[None]]


async def _dial(network: Secure, *, tls: bool = True) -> Stream:
    host, port = split_address(network.config.addresses["b0"])
    context = client_context(network.directory / "authority.pem", None, None) if tls else None
    return await asyncio.open_connection(host, port, ssl=context, server_hostname=host if tls else None)


async def _read_refusal(reader: asyncio.StreamReader) -> wire.Refusal:
    length, kind = wire.HEADER.unpack(await asyncio.wait_for(reader.readexactly(5), 30))
    assert kind == wire.REFUSAL
    return wire.decode_refusal(memoryview(await reader.readexactly(length - 1)))


async def _send_first(network: Secure, frame: bytes) -> wire.Refusal:
    reader, writer = await _dial(network)
    writer.write(frame)
    refusal = await _read_refusal(reader)
    writer.transport.abort()
    return refusal


def _garbage(size: int) -> bytes:
    return wire.HEADER.pack(size + 1, wire.HELLO) + bytes(size)


async def no_greeting(network: Secure) -> None:
    assert "this is not a greeting" in (await _send_first(network, _garbage(HELLO_MAX - 1))).reason


async def frame_of_900_kb(network: Secure) -> None:
    assert "is too large" in (await _send_first(network, _garbage(900_000))).reason


async def wrong_token(network: Secure) -> None:
    refusal = await _send_first(network, wire.greeting("client", "ann:c", token="ann:wrong"))
    assert refusal.code == "denied"


async def hangs_up_within_the_first_frame(network: Secure) -> None:
    _, writer = await _dial(network)
    writer.write(_garbage(60_000)[:50_000])
    await writer.drain()
    writer.transport.abort()


async def breaks_off_the_handshake(network: Secure) -> None:
    _, writer = await _dial(network, tls=False)
    writer.write(b"\x16\x03\x01\xff\xff" + bytes(2_000))
    await writer.drain()
    writer.transport.abort()


def _tls_ends() -> int:
    kinds = ("SSLProtocol", "_SSLProtocolTransport")  # of uvloop, and of Python's own event loop
    return sum(type(each).__name__ in kinds for each in gc.get_objects())


@pytest.mark.parametrize(
    "visit", [no_greeting, frame_of_900_kb, wrong_token, hangs_up_within_the_first_frame, breaks_off_the_handshake]
)
def test_a_refused_connection_leaves_no_tls_buffers(visit: Visit, tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {}}) as network:
            await visit(network)
            gc.collect()
            before = _tls_ends()
            gc.disable()  # brokers collect cycles only among young objects
            try:
                for _ in range(VISITS):
                    await visit(network)
                await until(lambda: _tls_ends() <= before)
            finally:
                gc.enable()

    run(main())


def test_a_first_frame_that_is_too_large_is_refused_at_its_header(tmp_path: Path) -> None:
    """The peer sends only the header and gets the refusal, so the broker has allocated no memory for the frame."""

    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            refusal = await _send_first(network, wire.HEADER.pack(HELLO_MAX + 2, wire.HELLO))
            assert f"{HELLO_MAX:,} is the limit" in refusal.reason

    run(main())


def test_the_longest_token_fits_into_the_first_frame(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            refusal = await _send_first(network, wire.greeting("client", "n" * 200, token="t" * wire.TOKEN_MAX))
            assert refusal.code == "denied"

    run(main())

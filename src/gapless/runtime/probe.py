"""Queries a broker without joining: a probe sends a greeting and a question, reads the answer, and disconnects."""

import asyncio
import errno
import ssl
from typing import Any

import msgspec

from gapless.errors import DeniedError, GaplessError, WireError
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.address import split_address
from gapless.runtime.dialling import dial
from gapless.runtime.frames import FrameStream
from gapless.runtime.settings import RuntimeSettings
from gapless.runtime.tls import why_dialling_failed
from gapless.runtime.wire import (
    ASK,
    DELETE,
    END,
    FORGET,
    PROBE,
    REFUSAL,
    REPORT,
    UNREADABLE,
    WELCOME,
    Welcome,
    decode_refusal,
    decode_welcome,
    frame,
    greeting,
)

__all__ = ["ask_for_report", "ask_to_delete", "ask_to_end", "ask_to_forget", "probe"]

NOT_OURS = "the listener is not a Gapless broker"


class _Probe(FrameStream):
    def __init__(self, settings: RuntimeSettings, hello: bytes, address: str) -> None:
        super().__init__(settings.frame_max, settings.write_max)
        self._address = address
        loop = asyncio.get_running_loop()
        self.welcome: asyncio.Future[Welcome] = loop.create_future()
        self.report: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._hello = hello

    def opened(self) -> None:
        self.write((self._hello,))

    def frame_received(self, kind: int, body: memoryview) -> None:
        try:
            if kind == WELCOME and not self.welcome.done():
                self.welcome.set_result(decode_welcome(body))
            elif kind == REPORT and not self.report.done():
                self.report.set_result(msgspec.msgpack.decode(body, type=dict[str, Any]))
            elif kind == REFUSAL:
                refusal = decode_refusal(body)
                if refusal.code == "denied":
                    raise DeniedError(refusal.reason)
                raise WireError(refusal.reason, refusal.code)
            else:
                raise WireError(NOT_OURS)
        except GaplessError as error:
            self._fail(error)
        except UNREADABLE:
            self._fail(WireError(NOT_OURS))

    def frame_refused(self, length: int) -> None:
        self._fail(WireError(NOT_OURS))

    def closed(self, error: Exception | None) -> None:
        if isinstance(error, ssl.SSLError):
            self._fail(WireError(why_dialling_failed(self._address, error)))
        self._fail(ConnectionResetError(errno.ECONNRESET, "closed the connection without an answer"))

    def _fail(self, error: GaplessError | OSError) -> None:
        for future in (self.welcome, self.report):
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks it as retrieved, so that asyncio does not warn if no caller awaits it
        self.abort()


async def probe(
    address: str,
    *,
    name: str = PROBE,
    network: str = "",
    timeout_s: float = 2.0,
    settings: RuntimeSettings | None = None,
    access: Access = CLEAR,
) -> Welcome:
    """Return a broker's welcome. Raise an `OSError`, `TimeoutError`, `WireError` or `DeniedError` if there is none."""
    asking, welcome = await _ask(address, name, network, timeout_s, settings or RuntimeSettings(), access)
    asking.abort()
    return welcome


async def ask_for_report(
    address: str, *, timeout_s: float = 2.0, access: Access = CLEAR, about: str = ""
) -> dict[str, Any]:
    """Return a broker's status report, or the details named by `about`: `clients`, `samples`, or `log` with the number
    of the last known line.
    """
    return await _answer(address, frame(ASK, about or None), timeout_s, access)


async def ask_to_end(address: str, client: str, *, timeout_s: float = 2.0, access: Access = CLEAR) -> dict[str, Any]:
    """Ask a broker to end the session of a client. The answer has `ended`, and the `reason` if it was not."""
    return await _answer(address, frame(END, client), timeout_s, access)


async def ask_to_forget(address: str, broker: str, *, timeout_s: float = 2.0, access: Access = CLEAR) -> dict[str, Any]:
    """Tell a broker that another one will not return. The answer has `forgotten`, and the `reason` if the broker
    refuses.
    """
    return await _answer(address, frame(FORGET, broker), timeout_s, access)


async def ask_to_delete(
    address: str, publisher: str, *, timeout_s: float = 2.0, access: Access = CLEAR
) -> dict[str, Any]:  # fmt: skip
    """Ask a broker to delete a publisher's events. The answer has `deleted`, and the `reason` if the broker refuses."""
    return await _answer(address, frame(DELETE, publisher), timeout_s, access)


async def _answer(address: str, question: bytes, timeout_s: float, access: Access) -> dict[str, Any]:
    asking, _ = await _ask(address, PROBE, "", timeout_s, RuntimeSettings(), access)
    try:
        async with asyncio.timeout(timeout_s):
            asking.write((question,))
            return await asking.report
    finally:
        asking.abort()


async def _ask(
    address: str, name: str, network: str, timeout_s: float, settings: RuntimeSettings, access: Access
) -> tuple[_Probe, Welcome]:
    host, port = split_address(address)
    hello = greeting(PROBE, name, network=network, token=access.token)
    async with asyncio.timeout(timeout_s):
        try:
            loop = asyncio.get_running_loop()
            asking = await dial(loop, lambda: _Probe(settings, hello, address), host, port, access.context())
        except ssl.SSLError as error:
            raise WireError(why_dialling_failed(address, error)) from None
        try:
            return asking, await asking.welcome
        except BaseException:
            asking.abort()
            raise

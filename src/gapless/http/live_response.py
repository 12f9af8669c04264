"""A response that sends lines as they appear, until they end, the connection is lost, or the broker stops.

The lines come from a context manager. It is entered within the response, and left in all three cases, at any moment:
while it is being entered, before the first line, and while a reader that reads nothing delays the next one. So nothing
that it opens, such as the session of a client, outlives the connection.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from gapless.errors import GaplessError
from gapless.http.gateway import Gateway
from gapless.http.problems import ProblemError, problem_of

__all__ = ["HEADERS", "Lines", "LiveResponse"]

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Lines = AbstractAsyncContextManager[AsyncGenerator[bytes, None] | None]
"""Yields the lines, or None if there are none and the response is `204 No Content`."""


class LiveResponse(Response):
    """Sends lines as they appear. An error after the first line is sent as the last one."""

    def __init__(self, gateway: Gateway, lines: Lines, error_line: Callable[[ProblemError], bytes], kind: str) -> None:
        self.status_code = 200
        self.media_type = kind
        self.init_headers(HEADERS)
        self._gateway = gateway
        self._lines = lines
        self._error_line = error_line
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        sending = self._gateway.steps.start(self._send(send), scope["path"])
        stopping = asyncio.ensure_future(self._gateway.is_stopping.wait())
        losing = asyncio.ensure_future(_until_lost(receive))
        try:
            await asyncio.wait((sending, stopping, losing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, stopping, losing):
                task.cancel()
            await asyncio.wait((sending,))
        if not sending.cancelled():
            sending.result()
        elif losing.cancelled():
            await self._fail(send, ProblemError("unavailable", "the broker is stopping; connect to another broker"))

    async def _send(self, send: Send) -> None:
        try:
            async with self._lines as lines:
                if lines is None:
                    self.status_code = 204
                else:
                    await self._begin(send)
                    async with aclosing(lines):
                        async for line in lines:
                            await send(_body(line, more=True))
        except (GaplessError, ProblemError) as error:
            await self._fail(send, problem_of(error))
            return
        await self._begin(send)
        await send(_body(b"", more=False))

    async def _begin(self, send: Send) -> None:
        if not self._has_begun:
            self._has_begun = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

    async def _fail(self, send: Send, problem: ProblemError) -> None:
        if not self._has_begun:
            raise problem
        await send(_body(self._error_line(problem), more=False))


def _body(content: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


async def _until_lost(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

"""Serves `/ws`: subscriptions, publications, acknowledgements and flow control as JSON messages over one WebSocket.

Each message has an `op`; related messages have the `id` that the client chose. A browser cannot send an `Authorization`
header with a WebSocket, so a token can be sent in a first message, `{"op": "hello", "token": "…"}`.

**Flow control.** A subscription sends at most `credit` events ahead, 256 by default, and the client adds to it with
`{"op": "credit"}`. Without credit nothing is taken from the network: the subscription lags, and is served from history
later. Each subscription has its own client, so one that waits does not delay others.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Literal

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from gapless.errors import GaplessError
from gapless.http.callers import Caller
from gapless.http.durable import AckRequest
from gapless.http.event_json import JsonEvent, draft_of, event_document
from gapless.http.event_streams import Item, StreamQuery
from gapless.http.gateway import Gateway
from gapless.http.json_body import decoded
from gapless.http.problems import ProblemError, problem_of
from gapless.http.publishing import publish
from gapless.http.streams import opened

__all__ = ["serve_web_socket"]

HELLO_S = 5.0
SUBSCRIPTIONS_MAX = 100
PUBLISHING_MAX = 256
"""The maximum number of unconfirmed publications of one WebSocket. While it is reached, no further messages
are read."""
CREDIT = 256


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message from the client of a WebSocket."""

    op: Literal["hello", "subscribe", "unsubscribe", "credit", "publish", "ack"]
    id: str = ""
    token: str = ""
    filter: str = "TRUE"
    since: str = ""
    until: str = ""
    resume: str = ""
    durable: str = ""
    ack: Literal["manual", "auto"] = "manual"
    share: bool = False
    replace: bool = False
    credit: int = CREDIT
    count: int = 0
    event: JsonEvent | None = None
    ids: list[str] = []
    position: str = ""
    nack: list[str] = []
    delay_s: float = 0.0


async def serve_web_socket(socket: WebSocket) -> None:
    """Serve one WebSocket until it is closed."""
    await socket.accept()
    gateway: Gateway = socket.app.state.gateway
    session = _Session(socket, gateway)
    with suppress(WebSocketDisconnect):
        try:
            await session.serve()
        except ProblemError as problem:
            await session.send({"op": "problem", "problem": problem.document()})
            await socket.close(4401 if problem.kind == "not-authenticated" else 4400)


class _Subscription:
    """One subscription of a WebSocket, with its credit."""

    def __init__(self, query: StreamQuery, credit: int) -> None:
        self.query = query
        self.credit = max(0, credit)
        self.may_send = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.give(0)

    def give(self, count: int) -> None:
        """Add credit: the number of further events that may be sent."""
        self.credit += count
        if self.credit > 0:
            self.may_send.set()

    async def spend(self, count: int) -> None:
        """Subtract sent events from the credit. Return when there is credit again."""
        self.credit -= count
        if self.credit <= 0:
            self.may_send.clear()
        await self.may_send.wait()


class _Session:
    def __init__(self, socket: WebSocket, gateway: Gateway) -> None:
        self._socket = socket
        self._gateway = gateway
        self._caller: Caller | None = None
        self._subscriptions: dict[str, _Subscription] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._publishing = asyncio.Semaphore(PUBLISHING_MAX)
        self._turn = asyncio.Lock()
        """Keeps publications in the order of their arrival."""

    async def send(self, document: dict[str, Any]) -> None:
        """Send one JSON message to the client."""
        await self._socket.send_text(msgspec.json.encode(document).decode())

    async def serve(self) -> None:
        """Process commands until the client disconnects or the broker stops."""
        stopping = asyncio.ensure_future(self._gateway.is_stopping.wait())
        try:
            first = await self._first()
            await self.send(
                {"op": "hello", "user": self._identity.user, "network": self._gateway.broker.config.network.name}
            )
            if first is not None:
                await self._execute(first)
            while True:
                coming = asyncio.ensure_future(self._receive())
                await asyncio.wait((coming, stopping), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    await self._socket.close(1001)
                    return
                await self._execute(_command(coming.result()))
        finally:
            stopping.cancel()
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    @property
    def _identity(self) -> Caller:
        assert self._caller is not None
        return self._caller

    async def _receive(self) -> str:
        """Return the text of the next message."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        text = message.get("text")
        if not isinstance(text, str):
            raise ProblemError("bad-request", "a message must be JSON as text, but this one is binary")
        return text

    async def _first(self) -> Command | None:
        """Authenticate the client. Return the first command, unless it was a greeting."""
        callers = self._gateway.callers
        try:
            self._caller = callers.identify(self._socket)
            return None
        except ProblemError:
            try:
                async with asyncio.timeout(HELLO_S):
                    command = _command(await self._receive())
            except TimeoutError:
                raise ProblemError("not-authenticated", f"no hello with a token arrived within {HELLO_S:g} s") from None
            self._caller = callers.identify(self._socket, command.token)
            return None if command.op == "hello" else command

    async def _execute(self, command: Command) -> None:
        try:
            match command.op:
                case "subscribe":
                    self._subscribe(command)
                case "unsubscribe":
                    task = self._find(command.id).task
                    if task is not None:
                        task.cancel()
                case "credit":
                    self._find(command.id).give(max(0, command.count))
                case "publish":
                    await self._publishing.acquire()
                    self._run(self._publish(command))
                case "ack":
                    self._run(self._ack(command))
                case "hello":
                    pass
        except ProblemError as problem:
            await self._report(command.id, problem)

    def _run(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = self._gateway.steps.start(work, "/ws")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _find(self, name: str) -> _Subscription:
        found = self._subscriptions.get(name)
        if found is None:
            raise ProblemError("not-found", f"this WebSocket has no subscription {name[:80]!r}")
        return found

    async def _report(self, name: str, error: BaseException) -> None:
        await self.send({"op": "problem", "id": name, "problem": problem_of(error).document()})

    # ---- subscriptions ------------------------------------------------------------------------------------

    def _subscribe(self, command: Command) -> None:
        if not command.id or command.id in self._subscriptions:
            raise ProblemError(
                "bad-request", "a subscription needs an id that no other subscription of this WebSocket has"
            )
        if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
            raise ProblemError("too-many", f"a WebSocket has at most {SUBSCRIPTIONS_MAX} subscriptions")
        query = StreamQuery(
            command.filter, command.since, command.until, command.resume, command.durable, command.ack, command.share,
            command.replace,
        )  # fmt: skip
        made = self._subscriptions[command.id] = _Subscription(query, command.credit)
        made.task = self._run(self._stream(command.id, made))

    async def _stream(self, name: str, subscription: _Subscription) -> None:
        try:
            async with opened(self._gateway, self._identity, subscription.query) as stream:
                await subscription.may_send.wait()
                async for items in stream.batches():
                    for item in items:
                        if item.kind != "idle":
                            await self.send(_message(name, item))
                            await asyncio.sleep(0)
                    await subscription.spend(sum(item.event is not None for item in items))
        except WebSocketDisconnect:
            pass
        except asyncio.CancelledError:
            with suppress(Exception):
                await self.send({"op": "end", "id": name})
            raise
        except (GaplessError, ProblemError, RuntimeError) as error:
            with suppress(Exception):
                await self._report(name, error)
        finally:
            self._subscriptions.pop(name, None)

    # ---- publications and acknowledgements ------------------------------------------------------------------

    async def _publish(self, command: Command) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            try:
                if command.event is None:
                    raise ProblemError(
                        "bad-request", 'publish needs an event: {"op": "publish", "id": "1", "event": {…}}'
                    )
                draft = draft_of(command.event)
                results, _ = await publish(self._gateway, self._identity, [draft], with_position=False, turn=self._turn)
                await self.send({"op": "published", "id": command.id, "event": results[0]})
            except (GaplessError, ProblemError, TimeoutError) as error:
                await self._report(command.id, error)
            finally:
                self._publishing.release()

    async def _ack(self, command: Command) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            try:
                asked = AckRequest(command.ids, command.position, command.nack, command.delay_s)
                name = self._find(command.id).query.durable
                done = await self._gateway.durable.ack(self._identity.user, name, asked)
                await self.send({"op": "acknowledged", "id": command.id, "count": done})
            except (GaplessError, ProblemError) as error:
                await self._report(command.id, error)


def _command(text: str) -> Command:
    return decoded(text, Command, "this is not a message of the gateway; /asyncapi.json describes all messages")


def _message(name: str, item: Item) -> dict[str, Any]:
    document: dict[str, Any] = {"op": item.kind, "id": name}
    if item.event is not None:
        document["event"] = event_document(item.event)
    if item.cursor:
        document["cursor"] = item.cursor
    return document | (item.detail or {})

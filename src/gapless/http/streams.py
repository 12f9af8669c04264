"""Handles `GET /events`: streams events as server-sent events, or as NDJSON for scripts.

The id of each server-sent event is a cursor, so `Last-Event-ID` resumes exactly after it. Besides the events of the
network, which have no name, a stream has `ready` (the starting cut is fixed: every matching event published from now on
is delivered), `skipped` (history that no broker still holds), `caught-up` (all of the requested history was sent),
`end` and `problem`. NDJSON has one object in each line, with the same names as its only member.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.http.callers import Caller
from gapless.http.cloud_events import STRUCTURED_TYPE, cloud_event_of
from gapless.http.event_json import event_document
from gapless.http.event_streams import EventStream, Item, StreamQuery
from gapless.http.gateway import Gateway
from gapless.http.live_response import HEADERS, LiveResponse
from gapless.http.problems import ProblemError

__all__ = ["NDJSON_TYPE", "get_events", "opened", "query_of"]

SSE_TYPE = "text/event-stream"
NDJSON_TYPE = "application/x-ndjson"
CHUNK = 64 * 1024
"""The number of bytes that are rendered before other tasks run."""
_NAMES = {"filter", "since", "until", "durable", "ack", "share", "replace", "format", "cloudevents"}
_TRUE = {"1", "true", "yes", "on", ""}


async def get_events(request: Request) -> Response:
    """Stream the events that match the query of a request."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    query = query_of(request)
    query.check()
    parameters = request.query_params
    wants_lines = parameters.get("format") == "ndjson" or NDJSON_TYPE in request.headers.get("accept", "")
    as_cloud_events = parameters.get("cloudevents", "0") in _TRUE or STRUCTURED_TYPE in request.headers.get(
        "accept", ""
    )
    render = _Renderer(gateway, wants_lines=wants_lines, as_cloud_events=as_cloud_events)
    media_type = NDJSON_TYPE if wants_lines else SSE_TYPE
    if request.method == "HEAD":
        return Response(media_type=media_type, headers=HEADERS)
    return LiveResponse(gateway, _lines(gateway, caller, query, render), render.problem, media_type)


def query_of(request: Request) -> StreamQuery:
    """Return the query in a request's parameters. Raise a `ProblemError` that names an unknown parameter."""
    given = request.query_params
    for name in given:
        if name not in _NAMES:
            raise ProblemError(
                "bad-request", f"there is no parameter {name[:40]!r}; the parameters are {', '.join(sorted(_NAMES))}"
            )
    ack = given.get("ack", "manual")
    if ack not in ("manual", "auto"):
        raise ProblemError("bad-request", f"ack is {ack[:40]!r}; write manual or auto")
    return StreamQuery(
        filter=given.get("filter", "TRUE"), since=given.get("since", ""), until=given.get("until", ""),
        resume="" if given.get("durable") else request.headers.get("last-event-id", ""),
        durable=given.get("durable", ""), ack="auto" if ack == "auto" else "manual",
        share=given.get("share", "0").lower() in _TRUE, replace=given.get("replace", "0").lower() in _TRUE,
    )  # fmt: skip


@asynccontextmanager
async def opened(gateway: Gateway, caller: Caller, query: StreamQuery) -> AsyncIterator[EventStream]:
    """Open a stream of events, with its own client, within the block."""
    async with gateway.clients.stream(caller) as client:
        stream = EventStream(client, query)
        await stream.open()
        with gateway.durable.attached(caller.user, query.durable, stream.durable):
            yield stream


@asynccontextmanager
async def _lines(
    gateway: Gateway, caller: Caller, query: StreamQuery, render: "_Renderer"
) -> AsyncIterator[AsyncGenerator[bytes, None] | None]:
    async with opened(gateway, caller, query) as stream:
        # with the status 204, an EventSource does not reconnect
        yield None if stream.was_sent_before else render.lines(stream)


class _Renderer:
    """Renders the items of a stream as bytes."""

    def __init__(self, gateway: Gateway, *, wants_lines: bool, as_cloud_events: bool) -> None:
        self._wants_lines = wants_lines
        self._as_cloud_events = as_cloud_events
        self._network = gateway.broker.config.network.name

    async def lines(self, stream: EventStream) -> AsyncGenerator[bytes, None]:
        """Yield the items of a stream as bytes."""
        async for items in stream.batches():
            for chunk in self._chunks(items):
                yield chunk
                await asyncio.sleep(0)

    def _chunks(self, items: list[Item]) -> Iterator[bytes]:
        """Yield the rendered items in chunks of bounded size, unless one event is larger. Each chunk is rendered on
        demand.
        """
        piece: list[bytes] = []
        size = 0
        for item in items:
            piece.append(self._line(item) if self._wants_lines else self._message(item))
            size += len(piece[-1])
            if size >= CHUNK:
                yield b"".join(piece)
                piece, size = [], 0
        if piece:
            yield b"".join(piece)

    def problem(self, problem: ProblemError) -> bytes:
        """Return the last item of a stream that failed, as bytes."""
        if self._wants_lines:
            return msgspec.json.encode({"problem": problem.document()}) + b"\n"
        return b"event: problem\ndata: " + msgspec.json.encode(problem.document()) + b"\n\n"

    def _content(self, item: Item) -> dict[str, Any]:
        if item.event is None:
            return item.detail or ({"cursor": item.cursor} if item.cursor else {})
        return cloud_event_of(item.event, self._network) if self._as_cloud_events else event_document(item.event)

    def _line(self, item: Item) -> bytes:
        if item.kind == "idle":
            return b"\n"
        document: dict[str, Any] = {item.kind: self._content(item)}
        if item.event is not None and item.cursor:
            document["cursor"] = item.cursor
        return msgspec.json.encode(document) + b"\n"

    def _message(self, item: Item) -> bytes:
        if item.kind == "idle":
            return b": idle\n\n"
        head = b"" if item.kind == "event" else b"event: " + item.kind.encode() + b"\n"
        name = b"id: " + item.cursor.encode() + b"\n" if item.cursor else b""
        return name + head + b"data: " + msgspec.json.encode(self._content(item)) + b"\n\n"

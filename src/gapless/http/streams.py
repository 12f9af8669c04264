"""Handles `GET /events`: streams events as server-sent events, or as NDJSON for scripts.

The id of each server-sent event is a cursor, so `Last-Event-ID` resumes exactly after it. Besides the events of the
network, which have no name, a stream has `ready` (the starting cut is fixed: every matching event published from now on
is delivered), `skipped` (history that no broker still holds), `caught-up` (all of the requested history was sent),
`end` and `problem`. NDJSON has one object in each line, with the same names as its only member.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gapless.client import Client, DurableEvent, DurableSubscription
from gapless.errors import GaplessError
from gapless.http.callers import Caller
from gapless.http.cloud_events import STRUCTURED_TYPE, cloud_event_of
from gapless.http.durable import DurableStream
from gapless.http.event_json import event_document
from gapless.http.event_streams import EventStream, Item, StreamQuery
from gapless.http.gateway import Gateway
from gapless.http.problems import ProblemError, problem_of

__all__ = ["NDJSON_TYPE", "get_events", "query_of", "watched"]

SSE_TYPE = "text/event-stream"
NDJSON_TYPE = "application/x-ndjson"
CHUNK = 64 * 1024
"""The number of bytes that are rendered before other tasks run."""
FULL_S = 0.05
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
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type=media_type, headers=headers)
    client = await gateway.clients.open_stream(caller)
    try:
        stream = EventStream(client, query)
        await stream.open()
    except GaplessError as error:
        gateway.clients.close_stream(client)
        if query.resume and query.until and "there are no events between" in str(error):
            return Response(status_code=204)  # everything was sent; with this status an EventSource does not reconnect
        raise
    except BaseException:
        gateway.clients.close_stream(client)
        raise
    return StreamingResponse(
        gateway.steps.each(_body(gateway, caller, client, stream, query, render), "/events"),
        media_type=media_type,
        headers=headers,
    )


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


async def watched(
    gateway: Gateway, caller: Caller, stream: EventStream, query: StreamQuery
) -> AsyncIterator[list[Item]]:
    """Yield the items of a stream. A durable subscription's stream pauses while too many deliveries are
    unacknowledged.
    """
    if not query.durable or query.ack == "auto":
        async for items in stream.batches():
            yield items
        return
    durable = DurableStream(cast(DurableSubscription, stream.subscription), is_shared=query.share)
    gateway.durable.add(caller.user, query.durable, durable)
    try:
        async for items in stream.batches():
            for item in items:
                if item.event is not None:
                    durable.sent(cast(DurableEvent, item.event))
            yield items
            while durable.is_full:
                await asyncio.sleep(FULL_S)
    finally:
        gateway.durable.remove(caller.user, query.durable, durable)


async def _body(
    gateway: Gateway, caller: Caller, client: Client, stream: EventStream, query: StreamQuery, render: "_Renderer"
) -> AsyncIterator[bytes]:
    stopping = asyncio.ensure_future(gateway.is_stopping.wait())
    items = watched(gateway, caller, stream, query)
    try:
        while True:
            coming = gateway.steps.start(_next(items), "/events")
            await asyncio.wait((coming, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                yield render.problem(ProblemError("unavailable", "the broker is stopping; connect to another broker"))
                return
            batch = coming.result()
            if batch is None:
                return
            for chunk in render.chunks(batch):
                yield chunk
                await asyncio.sleep(0)
    except (GaplessError, ProblemError) as error:
        yield render.problem(problem_of(error))
    finally:
        stopping.cancel()
        gateway.clients.close_stream(client)


async def _next(items: AsyncIterator[list[Item]]) -> list[Item] | None:
    return await anext(items, None)


class _Renderer:
    """Renders the items of a stream as bytes."""

    def __init__(self, gateway: Gateway, *, wants_lines: bool, as_cloud_events: bool) -> None:
        self._wants_lines = wants_lines
        self._as_cloud_events = as_cloud_events
        self._network = gateway.broker.config.network.name

    def chunks(self, items: list[Item]) -> Iterator[bytes]:
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

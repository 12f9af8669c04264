"""Handles `POST /events`: publishes events, and responds when they are confirmed.

The body is JSON (one event or an array of them) or CloudEvents 1.0 in any of its three modes. The response contains
each event's id, and a position that includes all of them: `since=` this position continues after them. The position
takes a further round trip through the network, so `Prefer: return=minimal` omits it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from gapless.client import Client
from gapless.errors import CallError, ConnectError, DeniedError, FilterError, GaplessError, SkippedError
from gapless.events import Event
from gapless.http.callers import Caller
from gapless.http.clients import SharedClient
from gapless.http.event_bodies import drafts_of
from gapless.http.event_json import Draft
from gapless.http.gateway import Gateway
from gapless.http.problems import ProblemError
from gapless.security.identity import client_prefix

__all__ = ["SMALL_MAX", "post_events", "publish", "read_body"]

BODY_MAX = 2 * 1024 * 1024
SMALL_MAX = 256 * 1024
"""The maximum size of a body that contains no events."""
TURN = 16
"""The number of events published in one turn of the event loop."""
BODY_S = 30.0
PUBLISH_S = 30.0
LIST_MAX = 50_000
"""The maximum length in characters of the identifiers in one filter."""
LOOK_BACK = "10m"
"""The age of the oldest history that is searched for identifiers; the same as `idempotency.KEPT_S`."""


async def post_events(request: Request) -> Response:
    """Publish the events in the body of a request."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    body = await read_body(request)
    drafts, is_batch = await drafts_of(request.headers, body, gateway.broker.config.runtime.event_max)
    key = request.headers.get("idempotency-key", "")
    if key and not is_batch and not drafts[0].id:
        drafts = [msgspec.structs.replace(drafts[0], attributes={**drafts[0].attributes, "id": key}, id=key)]
    minimal = "return=minimal" in request.headers.get("prefer", "")
    results, position = await publish(gateway, caller, drafts, with_position=not minimal)
    document: dict[str, Any] = {"events": results} if is_batch else dict(results[0])
    if position:
        document["position"] = position
    status = 200 if all(each["duplicate"] for each in results) else 201
    return Response(msgspec.json.encode(document), status, media_type="application/json")


async def read_body(request: Request, most: int = BODY_MAX) -> bytes:
    """Return the body of a request. Raise a `ProblemError` if it is too large or does not arrive in time."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise ProblemError(
                        "too-large", f"a body has at most {most:,} bytes here; send several requests",
                        headers={"Connection": "close"},
                    )  # fmt: skip
                parts.append(part)
    except TimeoutError:
        raise ProblemError("bad-request", f"the body did not arrive within {BODY_S:g} s") from None
    except ClientDisconnect:
        raise ProblemError("bad-request", "the connection ended before the body was complete") from None
    return b"".join(parts)


async def publish(
    gateway: Gateway,
    caller: Caller,
    drafts: Sequence[Draft],
    *,
    with_position: bool = True,
    turn: asyncio.Lock | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """Publish events for a user. Return the result of each, and a position that includes all of them.

    Calls with the same `turn` publish in the order of the calls. The publication continues if the request is cancelled,
    so that a retry finds its result.
    """
    work = _publish(gateway, caller, drafts, turn or asyncio.Lock(), with_position=with_position)
    task = gateway.steps.start(work, "publish")
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def _publish(
    gateway: Gateway, caller: Caller, drafts: Sequence[Draft], turn: asyncio.Lock, *, with_position: bool
) -> tuple[list[dict[str, Any]], str]:
    async with asyncio.timeout(PUBLISH_S), AsyncExitStack() as stack:
        async with turn:  # keeps the order also while the client connects
            publisher = await stack.enter_async_context(gateway.clients.publisher(caller))
            waiting = await _begin_all(gateway, caller, publisher, drafts)
        results = []
        for result, is_duplicate in waiting:
            name = result if isinstance(result, str) else await asyncio.shield(result)
            results.append({"id": name, "duplicate": is_duplicate})
        position = ""
        if with_position:
            with suppress(CallError):  # users without the right to read history cannot use positions
                position = str(await publisher.position())
        return results, position


async def _begin_all(
    gateway: Gateway, caller: Caller, publisher: SharedClient, drafts: Sequence[Draft]
) -> list[tuple["asyncio.Future[str] | str", bool]]:
    """Publish the events that are not duplicates. Return for each event its id, or a future of it, and whether it is a
    duplicate.
    """
    found = await _look_up(gateway, caller, publisher.client, drafts)
    waiting: list[tuple[asyncio.Future[str] | str, bool]] = []
    for number, draft in enumerate(drafts):
        if number % TURN == TURN - 1:
            await asyncio.sleep(0)
        known = gateway.outcomes.find(caller.user, draft) if draft.id else None
        earlier = found.get((draft.source, draft.id)) if known is None and draft.id else None
        if known is not None or earlier is not None:
            waiting.append((known or earlier or "", True))
            continue
        waiting.append((_begin(gateway, caller, publisher, draft), False))
    return waiting


def _begin(gateway: Gateway, caller: Caller, publisher: SharedClient, draft: Draft) -> "asyncio.Future[str]":
    """Publish one event, and return a future of its id. Events of one request are published in order."""
    result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    if draft.id:
        gateway.outcomes.begin(caller.user, draft, result)
    result.add_done_callback(lambda done: done.cancelled() or done.exception())
    task = gateway.steps.start(publisher.client.publish(draft.attributes, draft.payload), "publish")

    def settle(done: "asyncio.Task[Any]") -> None:
        if done.cancelled():
            result.cancel()
        elif (error := done.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(done.result().id)

    task.add_done_callback(settle)
    return result


async def _look_up(
    gateway: Gateway, caller: Caller, client: Client, drafts: Sequence[Draft]
) -> dict[tuple[str, str], str]:
    """Return the ids of events with unknown identifiers that are found in history."""
    unknown = [draft for draft in drafts if draft.id and gateway.outcomes.find(caller.user, draft) is None]
    if not unknown:
        return {}
    wanted = {(draft.source, draft.id) for draft in unknown}
    begins = client_prefix(caller.user) if caller.user else ""
    found: dict[tuple[str, str], str] = {}
    try:
        for ids in _lists(draft.id for draft in unknown):
            async for event in _history(client, f"id IN ({ids})"):
                key = str(event.attributes.get("source", "")), str(event.attributes["id"])
                if key in wanted and event.publisher.startswith(begins):
                    found.setdefault(key, event.id)
    except FilterError:
        raise
    except (DeniedError, CallError):
        return {}
    except ConnectError:
        raise
    except GaplessError:
        return found
    return found


async def _history(client: Client, text: str) -> AsyncIterator[Event]:
    """Yield the matching events of the last minutes."""
    async with client.read(text, since=LOOK_BACK) as reading:
        while True:
            with suppress(SkippedError):
                events = await reading.take(64)
                if not events:
                    return
                for event in events:
                    yield event


def _lists(names: Iterable[str]) -> Iterator[str]:
    """Yield the identifiers as lists for filters, each within a filter's maximum length."""
    group: list[str] = []
    size = 0
    for name in names:
        quoted = _quoted(name)
        if group and size + len(quoted) > LIST_MAX:
            yield ", ".join(group)
            group, size = [], 0
        group.append(quoted)
        size += len(quoted) + 2
    yield ", ".join(group)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

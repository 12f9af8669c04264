"""What the console asks: who the user is, how the brokers are, the log, filters, and to end a client's session."""

import asyncio
from itertools import islice
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.errors import FilterError
from gapless.filters import filter_hints, parse
from gapless.http.gateway import Gateway
from gapless.http.problems import ProblemError
from gapless.http.publishing import read_body
from gapless.runtime.audit_log import Actor
from gapless.runtime.broker import Broker
from gapless.security.identity import ANYBODY

__all__ = ["delete_client", "get_log", "get_me", "get_network", "get_sessions", "post_filter"]

SESSIONS_MAX = 200
FILTERS_MAX = 40
"""Distinct filters that are compared with each other."""


class _Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    filter: str


def _json(document: Any) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json", headers={"Cache-Control": "no-store"})


async def get_me(request: Request) -> Response:
    """`GET /api/me`: the user, and what it may do."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    config = gateway.broker.config
    document = {"user": caller.user, "network": config.network.name, "broker": gateway.broker.name}
    return _json(document | {"has_users": gateway.callers.has_users, "rights": gateway.callers.rights(caller)})


async def get_network(request: Request) -> Response:
    """`GET /api/network`: the report of every broker, the tree, and what is wrong."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see how brokers are")
    return _json(await gateway.network.document())


async def get_log(request: Request) -> Response:
    """`GET /api/log?after=NUMBER`."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the log of brokers")
    after = request.query_params.get("after", "0")
    return _json(gateway.log.lines(int(after) if after.isdecimal() and len(after) < 16 else 0))


async def get_sessions(request: Request) -> Response:
    """`GET /api/sessions`: the clients of this broker, with their subscriptions and what covers these."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the clients of brokers")
    return _json(await _sessions(gateway.broker))


async def _sessions(broker: Broker) -> dict[str, Any]:
    node = broker.node
    names = [] if node is None else node.sessions()
    rows = []
    for name in islice(sorted(names), SESSIONS_MAX):
        held = {} if node is None else node.held_by(name)
        advertised = 0 if node is None else len(node.names_held(name)[1])
        rows.append({"client": name, "subscriptions": held, "advertisements": advertised})
    texts = list(dict.fromkeys(text for row in rows for text in row["subscriptions"].values()))  # type: ignore[attr-defined]
    return {
        "broker": broker.name,
        "sessions": rows,
        "more": max(0, len(names) - SESSIONS_MAX),
        "covers": await _covers(texts),
    }


async def _covers(texts: list[str]) -> dict[str, str]:
    """By filter: another one that covers it. Only the first filters are compared, in many turns of the event loop."""
    filters = {text: parse(text) for text in texts[:FILTERS_MAX]}
    found: dict[str, str] = {}
    for text, own in filters.items():
        await asyncio.sleep(0)
        for other, wider in filters.items():
            if other != text and found.get(other) != text and wider.covers(own):
                found[text] = other
                break
    return found


async def post_filter(request: Request) -> Response:
    """`POST /api/filter`: whether a filter can be parsed, and what its author may have meant otherwise."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.identify(request)
    try:
        text = msgspec.json.decode(await read_body(request), type=_Filter).filter
    except msgspec.DecodeError as error:
        raise ProblemError("bad-request", f"the body holds no filter: {error}") from None
    try:
        parse(text)
    except FilterError as error:
        raise ProblemError("invalid-filter", error.message, filter=text, position=error.position) from None
    return _json({"filter": text, "hints": list(filter_hints(text))})


async def delete_client(request: Request) -> Response:
    """`DELETE /api/clients/NAME`: end the session of a client of this broker."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.require(request, "operate", "end sessions")
    return _json(
        gateway.broker.end_client(request.path_params["name"], Actor(caller.identity or ANYBODY, caller.address))
    )

"""Handles requests of the console about the user, the brokers, logs and filters, and ends clients' sessions."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.errors import FilterError
from gapless.filters import filter_hints, parse
from gapless.http.covers import find_covers
from gapless.http.gateway import Gateway
from gapless.http.json_body import decoded
from gapless.http.problems import ProblemError
from gapless.http.publishing import SMALL_MAX, read_body
from gapless.printable import name_complaint
from gapless.runtime.access import Access
from gapless.runtime.audit_log import Actor
from gapless.runtime.probe import ask_to_end
from gapless.security.identity import ANYBODY

__all__ = [
    "delete_client",
    "get_log",
    "get_me",
    "get_network",
    "get_samples",
    "get_sessions",
    "post_covers",
    "post_filter",
]


class _Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    filter: str


class _Filters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    filters: list[str]


def _json(document: Any) -> Response:
    return _encoded(msgspec.json.encode(document))


def _encoded(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


async def get_me(request: Request) -> Response:
    """Handle `GET /api/me`: return the user and its rights."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    config = gateway.broker.config
    document = {"user": caller.user, "network": config.network.name, "broker": gateway.broker.name}
    return _json(document | {"has_users": gateway.callers.has_users, "rights": gateway.callers.rights(caller)})


async def get_network(request: Request) -> Response:
    """Handle `GET /api/network`: return every broker, the tree, and the problems found."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the status of brokers")
    return _encoded((await gateway.network.brokers()).encoded)


async def get_log(request: Request) -> Response:
    """Handle `GET /api/log?broker=NAME&after=NUMBER`."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the log of brokers")
    after = request.query_params.get("after", "0")
    name = request.query_params.get("broker", "") or gateway.broker.name
    return _json(await gateway.network.log(name, int(after) if after.isdecimal() and len(after) < 16 else 0))


async def get_samples(request: Request) -> Response:
    """Handle `GET /api/samples`: return the recent figures of each broker, for plots."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the status of brokers")
    return _encoded((await gateway.network.samples()).encoded)


async def get_sessions(request: Request) -> Response:
    """Handle `GET /api/sessions`: return the clients of each broker, with their filters."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the clients of brokers")
    return _encoded((await gateway.network.clients()).encoded)


async def post_covers(request: Request) -> Response:
    """Handle `POST /api/covers`: return for each given filter another one that covers it."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the clients of brokers")
    asked = decoded(await read_body(request, SMALL_MAX), _Filters, "the body contains no filters")
    return _json(await find_covers(asked.filters))


async def post_filter(request: Request) -> Response:
    """Handle `POST /api/filter`: return whether a filter can be parsed, and hints about possible mistakes."""
    gateway: Gateway = request.app.state.gateway
    gateway.callers.identify(request)
    text = decoded(await read_body(request, SMALL_MAX), _Filter, "the body contains no filter").filter
    try:
        parse(text)
    except FilterError as error:
        raise ProblemError("invalid-filter", error.message, filter=text, position=error.position) from None
    return _json({"filter": text, "hints": list(filter_hints(text))})


async def delete_client(request: Request) -> Response:
    """Handle `DELETE /api/clients/NAME`: end the session of a client at any broker.

    The broker that the operator asked logs the operator; it sends the request to the others in its own name.
    """
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.require(request, "operate", "end sessions")
    broker, name = gateway.broker, request.path_params["name"]
    complaint = name_complaint("the name of a client", name)
    if complaint:
        raise ProblemError("bad-request", complaint)
    actor = Actor(caller.identity or ANYBODY, caller.address)
    answer = broker.end_client(name, actor)
    if not answer["ended"]:
        broker.audit.act(
            "client.ended", "an operator ended the session of a client at another broker", actor, peer=name
        )
        others = [address for other, address in broker.config.addresses.items() if other != broker.name]
        answer = await _end_elsewhere(others, name, gateway.network.access) or answer
    return _json(answer)


async def _end_elsewhere(addresses: Iterable[str], client: str, access: Access) -> dict[str, Any] | None:
    asked = (ask_to_end(address, client, access=access) for address in addresses)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    return next((answer for answer in answers if isinstance(answer, dict) and answer["ended"]), None)

"""The ASGI application of a broker: its routes, and the handlers of errors.

| path | | right |
| --- | --- | --- |
| `/healthz` | 200 and `ok` if the broker has joined and is not blocked, else 503 and what it waits for | |
| `/metrics`, `/status` | Prometheus text; the broker's report as JSON | `status` |
| `/events`, `/ws`, `/durable/NAME/ack` | the gateway | the user's filters |
| `/api/…` | requests of the console | `status`, `operate` |
| `/openapi.json`, `/asyncapi.json` | the interface, for programs | |
| `/`, `/console/…` | the console | |
"""

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp

from gapless.errors import GaplessError
from gapless.http.acknowledging import post_ack
from gapless.http.causality import get_graph
from gapless.http.console_api import (
    delete_client,
    get_log,
    get_me,
    get_network,
    get_samples,
    get_sessions,
    post_covers,
    post_filter,
)
from gapless.http.console_files import get_file, get_page
from gapless.http.console_watch import get_watch
from gapless.http.durable_admin import delete_durable, get_durables, post_move
from gapless.http.gateway import Gateway
from gapless.http.guards import Guards
from gapless.http.problems import ProblemError, problem_of, problem_response, problems_text
from gapless.http.publishing import post_events
from gapless.http.streams import get_events
from gapless.http.web_socket import serve_web_socket

__all__ = ["make_application"]

Handler = Callable[[Request], Awaitable[Response]]


def make_application(gateway: Gateway) -> ASGIApp:
    """Return the ASGI application of one broker."""
    settings = gateway.settings
    routes: list[Route | WebSocketRoute | Mount] = [
        Route("/healthz", _health),
        Route("/metrics", _metrics),
        Route("/status", _status),
        Route("/docs/problems", _problems),
    ]
    if settings.gateway:
        routes += [
            Route("/events", get_events, methods=["GET"]),
            Route("/events", post_events, methods=["POST"]),
            Route("/durable", get_durables, methods=["GET"]),
            Route("/durable/{name:path}/ack", post_ack, methods=["POST"]),
            Route("/durable/{name:path}/move", post_move, methods=["POST"]),
            Route("/durable/{name:path}", delete_durable, methods=["DELETE"]),
            WebSocketRoute("/ws", serve_web_socket),
        ]
    if settings.gateway or settings.console:
        routes += [Route(f"/{name}.json", _document(name)) for name in ("openapi", "asyncapi")]
    if settings.console:
        routes += [
            Route("/api/me", get_me),
            Route("/api/network", get_network),
            Route("/api/watch", get_watch),
            Route("/api/log", get_log),
            Route("/api/samples", get_samples),
            Route("/api/sessions", get_sessions),
            Route("/api/covers", post_covers, methods=["POST"]),
            Route("/api/filter", post_filter, methods=["POST"]),
            Route("/api/graph", get_graph),
            Route("/api/clients/{name:path}", delete_client, methods=["DELETE"]),
            Route("/", get_page),
            Route("/console/{file}", get_file),
        ]
    application = Starlette(routes=routes, exception_handlers=_HANDLERS)
    application.state.gateway = gateway
    clear = gateway.broker.broker_security is None
    address = gateway.broker.entry.http if clear else ""
    return Guards(application, address=address, origins=settings.origins, steps=gateway.steps)


def _document(name: str) -> Handler:
    text = (resources.files("gapless.http") / "documents" / f"{name}.json").read_bytes()

    async def document(request: Request) -> Response:
        return Response(text, media_type="application/json")

    return document


async def _health(request: Request) -> Response:
    hindrance = request.app.state.gateway.broker.hindrance
    return PlainTextResponse(f"{hindrance}\n", 503) if hindrance else PlainTextResponse("ok\n")


async def _metrics(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the status of brokers")
    return Response(gateway.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _status(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    gateway.callers.require(request, "status", "see the status of brokers")
    return Response(msgspec.json.encode(gateway.broker.report()), media_type="application/json")


async def _problems(request: Request) -> Response:
    return PlainTextResponse(problems_text())


async def _http_exception(request: Request, error: Exception) -> Response:
    """Return the response for an error of the router."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        allowed = ", ".join(sorted({method for route in routes for method in route.methods}))
        problem = ProblemError(
            "method-not-allowed",
            f"{path} does not support {request.method}; it supports {allowed}",
            headers={"Allow": allowed},
        )
    elif error.status_code == 404:
        problem = ProblemError(
            "not-found", f"there is nothing at {path[:200]}; /openapi.json lists the available paths"
        )
    else:
        problem = ProblemError("bad-request", str(error.detail))
    return problem_response(problem, path)


async def _problem(request: Request, error: Exception) -> Response:
    """Return the response for an error of the gateway or of the client library."""
    return problem_response(problem_of(error), request.url.path)


async def _bug(request: Request, error: Exception) -> Response:
    """Return the response for an unexpected exception."""
    gateway: Gateway = request.app.state.gateway
    facts = {"path": request.url.path[:200]}
    gateway.broker.logger.error(
        "an HTTP request failed: this is a bug in Gapless", exc_info=error, extra={"event": "http.failed", **facts}
    )
    return problem_response(problem_of(error), request.url.path)


_HANDLERS: dict[Any, Any] = {
    HTTPException: _http_exception,
    ProblemError: _problem,
    GaplessError: _problem,
    TimeoutError: _problem,
    Exception: _bug,
}

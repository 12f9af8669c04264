"""Checks every request and response: security headers, cross-origin rules, and limits.

No page of another origin may act for a user. Tokens are sent only by scripts, and there are no cookies; but a browser
sends a client certificate automatically, and in a network without users a page needs no credentials. So if a browser
states the origin of a WebSocket, or of a request that changes something, it must be this origin or one listed in the
network's file (`[http] origins`).

A malicious page can also resolve its own name to the address of this machine (DNS rebinding). Certificates prevent
that. Without them, a broker that listens on the loopback interface answers only requests that name it by an address, as
localhost, or by the host of a listed origin; `/healthz` accepts any name.

At most `REQUESTS_MAX` requests, streams included, and `SOCKETS_MAX` WebSockets are served at a time; `/healthz` is
always served.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from gapless.http.problems import ProblemError, problem_response
from gapless.http.step_meter import StepMeter

__all__ = ["SECURITY_HEADERS", "Guards"]

REQUESTS_MAX = 1_000
SOCKETS_MAX = 500
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SAFE = {"GET", "HEAD", "OPTIONS"}
_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer, *",
    "Access-Control-Max-Age": "600",
}


class Guards:
    """ASGI middleware that surrounds the application with these checks."""

    def __init__(self, app: ASGIApp, *, address: str, origins: tuple[str, ...], steps: StepMeter) -> None:
        self._app = app
        self._steps = steps
        self._origins = frozenset(origin.lower() for origin in origins)
        own = _host(address)
        self._hosts = {own, *(_host(urlsplit(origin).netloc) for origin in self._origins)}
        self._is_local = _is_local(own)
        self._requests = 0
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and serve one request, or one WebSocket."""
        await self._steps.run(self._guard(scope, receive, send), str(scope.get("path", "")))

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._guard_socket(scope, receive, send)
        elif scope["type"] == "http":
            self._requests += 1
            try:
                await self._guard_request(scope, receive, send)
            finally:
                self._requests -= 1

    async def _guard_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._sockets += 1
        try:
            self._check_host(scope)
            if not self._is_known(scope):
                raise _wrong_origin(scope)
            if self._sockets > SOCKETS_MAX:
                raise ProblemError(
                    "too-many",
                    f"this broker serves {SOCKETS_MAX} WebSockets, which is the maximum; use another broker",
                    headers={"Retry-After": "5"},
                )
            await self._app(scope, receive, send)
        except ProblemError as problem:
            await WebSocket(scope, receive, send).send_denial_response(problem_response(problem, scope["path"]))
        finally:
            self._sockets -= 1

    async def _guard_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = Headers(scope=scope).get("origin", "")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if origin.lower() in self._origins:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = "*"
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                    headers.add_vary_header("Origin")
            await send(message)

        try:
            await self._serve(scope, receive, send_guarded)
        except ProblemError as problem:
            await problem_response(problem, str(scope.get("path", "")))(scope, receive, send_guarded)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        is_known = self._is_known(scope)
        if scope["path"] != "/healthz":
            self._check_host(scope)
        if self._requests > REQUESTS_MAX and scope["path"] != "/healthz":
            raise ProblemError(
                "too-many",
                f"this broker serves {REQUESTS_MAX:,} requests, which is the maximum; use another broker",
                headers={"Retry-After": "1"},
            )
        if method == "OPTIONS" and "access-control-request-method" in Headers(scope=scope):
            await Response(status_code=204, headers=_ALLOWED if is_known else {})(scope, receive, send)
            return
        if method not in _SAFE and not is_known:
            raise _wrong_origin(scope)
        await self._app(scope, receive, send)

    def _check_host(self, scope: Scope) -> None:
        """Reject a request whose host name another site may have resolved to this machine (DNS rebinding)."""
        host = _host(Headers(scope=scope).get("host", ""))
        if self._is_local and not (not host or _is_local(host) or _is_address(host) or host in self._hosts):
            raise ProblemError(
                "wrong-origin",
                "this broker listens on the loopback interface, but the request is for the host "
                f"{host[:80]!r}; to allow it, list its origin in the network's file, under [http] origins",
            )

    def _is_known(self, scope: Scope) -> bool:
        """Return whether the request does not come from a web page, or comes from a page of this or of a
        listed origin.
        """
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        return origin.lower() in self._origins or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def _wrong_origin(scope: Scope) -> ProblemError:
    origin = Headers(scope=scope).get("origin", "another site")
    return ProblemError(
        "wrong-origin",
        f"a page of {origin[:80]!r} sent this request; to allow it, list its origin in the "
        "network's file, under [http] origins",
    )


def _host(place: str) -> str:
    """Return the host of `host:port`."""
    try:
        return urlsplit(f"//{place}").hostname or ""
    except ValueError:
        return place


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_local(host: str) -> bool:
    if _is_address(host):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")

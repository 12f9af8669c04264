"""What holds for every response and request: security headers, cross-origin rules, bounded errors.

No page of another origin may act for a user. Tokens are sent by scripts alone, and there are no cookies; but a browser
sends a client certificate on its own, and in a network without users a page needs no proof. So if a browser says which
origin a request has that changes something, or a WebSocket, it must be this origin or one that the network's file lists
(`[http] origins`).
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gapless.http.problems import ProblemError, problem_response
from gapless.http.step_meter import StepMeter

__all__ = ["Guards"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
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
    """Around the whole application."""

    def __init__(self, app: ASGIApp, *, origins: tuple[str, ...], steps: StepMeter) -> None:
        self._app = app
        self._steps = steps
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one WebSocket."""
        await self._steps.run(self._guard(scope, receive, send), str(scope.get("path", "")))

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if not self._is_known(scope):
                await send({"type": "websocket.close", "code": 4403})
                return
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        origin = Headers(scope=scope).get("origin", "")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
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
        if method == "OPTIONS" and "access-control-request-method" in Headers(scope=scope):
            await Response(status_code=204, headers=_ALLOWED if is_known else {})(scope, receive, send)
            return
        if method not in _SAFE and not is_known:
            raise ProblemError(
                "wrong-origin",
                f"a page of {Headers(scope=scope).get('origin', 'another site')[:80]!r} sent this request; list its "
                "origin in the network's file, under [http] origins, if it may",
            )
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        """Whether the request comes from no page, from a page of ours, or from one whose origin is listed."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        return origin.lower() in self._origins or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()

"""Reports errors as RFC 9457 problem documents, for programs and for people.

`type` is the path of a page of the gateway's documentation, and is stable; `detail` is the message that the client
library would have raised. A filter that cannot be parsed has the `position` of the error in its text.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from gapless.errors import (
    CallError,
    ClosedError,
    ConnectError,
    DeniedError,
    EventError,
    FilterError,
    GaplessError,
    SubscriptionEndedError,
)

__all__ = ["ProblemError", "problem_of", "problem_response", "problems_text"]

_TITLES = {
    "bad-request": (400, "The request is malformed"),
    "not-authenticated": (401, "No valid credentials were presented"),
    "denied": (403, "The user lacks a permission"),
    "wrong-origin": (403, "A page of another origin sent the request"),
    "not-found": (404, "There is no such resource"),
    "method-not-allowed": (405, "The resource does not support the method"),
    "not-attached": (404, "The durable subscription has no stream here"),
    "conflict": (409, "The request conflicts with an earlier one"),
    "too-large": (413, "The body is too large"),
    "unsupported-type": (415, "The content type is not supported"),
    "invalid-event": (422, "The event cannot be published"),
    "invalid-filter": (422, "The filter cannot be parsed"),
    "refused": (422, "The network refused the call"),
    "failed": (500, "The broker has a bug"),
    "too-many": (503, "The broker serves the maximum number of streams"),
    "unavailable": (503, "The network cannot serve the request now"),
    "timeout": (504, "The network did not answer in time"),
}
"""For each kind of problem, the HTTP status and the title."""


class ProblemError(Exception):
    """An error to be returned as a problem document."""

    def __init__(self, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members

    @property
    def status(self) -> int:
        """The status code of the response."""
        return _TITLES[self.kind][0]

    def document(self, instance: str = "") -> dict[str, Any]:
        """Return the problem document as a dictionary."""
        status, title = _TITLES[self.kind]
        made = {"type": f"/docs/problems#{self.kind}", "title": title, "status": status, "detail": self.detail}
        return made | ({"instance": instance} if instance else {}) | self.members


def problem_of(error: BaseException) -> ProblemError:
    """Return the problem for an error of the client library."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, FilterError):
        return ProblemError("invalid-filter", error.message, filter=error.text, position=error.position)
    if isinstance(error, TimeoutError) and not isinstance(error, GaplessError):
        return ProblemError("timeout", "the network did not answer in time; retry with the same id")
    for kinds, name in (
        (DeniedError, "denied"),
        (EventError, "invalid-event"),
        (CallError, "refused"),
        ((ConnectError, ClosedError, SubscriptionEndedError), "unavailable"),
        (GaplessError, "refused"),
    ):
        if isinstance(error, kinds):
            return ProblemError(name, str(error))
    return ProblemError("failed", "this is a bug in the broker; its log has the details")


def problem_response(problem: ProblemError, instance: str = "") -> Response:
    """Return the HTTP response with the problem document."""
    again = {"Retry-After": "1"} if problem.status == 503 else {}
    return Response(
        msgspec.json.encode(problem.document(instance)),
        problem.status,
        again | problem.headers | {"Cache-Control": "no-store"},
        "application/problem+json",
    )


def problems_text() -> str:
    """Return the text of the page that describes all kinds of problems."""
    return "".join(f"#{kind}: {status} {title}\n" for kind, (status, title) in _TITLES.items())

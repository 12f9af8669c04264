"""Handles requests that list, move and delete durable subscriptions, with the rights of the user."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.errors import GaplessError
from gapless.http.gateway import Gateway
from gapless.http.json_body import decoded
from gapless.http.problems import ProblemError
from gapless.http.publishing import SMALL_MAX, read_body

__all__ = ["delete_durable", "get_durables", "post_move"]


class _Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    to: str


async def get_durables(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    answer = await gateway.durables.of(gateway.callers.identify(request))
    return Response(answer.encoded, media_type="application/json")


async def post_move(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise ProblemError("unsupported-type", "the position to move to is JSON; send Content-Type: application/json")
    asked = decoded(await read_body(request, SMALL_MAX), _Move, 'the body names no position, as {"to": "10m"} does')
    async with gateway.clients.shared(caller) as shared:
        await shared.client.admin.move(request.path_params["name"], asked.to)
    gateway.durables.forget()
    return Response(status_code=204)


async def delete_durable(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    async with gateway.clients.shared(gateway.callers.identify(request)) as shared:
        try:
            await shared.client.admin.delete(request.path_params["name"])
        except GaplessError as error:
            if "there is no" in str(error):
                raise ProblemError("not-found", str(error)) from None
            raise
    gateway.durables.forget()
    return Response(status_code=204)

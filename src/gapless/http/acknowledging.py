"""`POST /durable/NAME/ack`: acknowledges deliveries of a durable subscription's stream."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.http.durable import AckRequest
from gapless.http.gateway import Gateway
from gapless.http.json_body import decoded
from gapless.http.problems import ProblemError
from gapless.http.publishing import SMALL_MAX, read_body

__all__ = ["post_ack"]


async def post_ack(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise ProblemError("unsupported-type", "acknowledgements are JSON; send Content-Type: application/json")
    asked = decoded(
        await read_body(request, SMALL_MAX), AckRequest, 'the body must be an acknowledgement such as {"ids": […]}'
    )
    done = await gateway.durable.ack(caller.user, request.path_params["name"], asked)
    return Response(msgspec.json.encode({"acknowledged": done}), media_type="application/json")

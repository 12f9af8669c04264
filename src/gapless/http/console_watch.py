"""Handles `GET /api/watch`: sends the data of an open console as it changes.

The response is a stream of JSON lines: `{"topic": "network", "whole": {…}}` first, then `{"topic": "network", "change":
{…}}` with a merge patch, or `problem` if there is no answer. Consoles with the same rights share the work
(`gapless.http.feed`).

| topic | content | interval |
| --- | --- | --- |
| `network` | every broker, the tree, and the problems found | 1 s |
| `sessions`, `durables` | the clients of each broker; the durable subscriptions that the user may see | 2 s |
| `log` with `broker=NAME` | the last lines of a broker's log; a change has the `lines` that follow | 2 s |
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.http.callers import Caller
from gapless.http.feed import Feed, Watcher, changed_members
from gapless.http.gateway import Gateway
from gapless.http.live_response import LiveResponse
from gapless.http.problems import ProblemError
from gapless.http.streams import NDJSON_TYPE

__all__ = ["get_watch"]

SECOND_S = 1.0
SLOW_S = 2.0
LINES_MAX = 500
TOPICS = ("network", "sessions", "durables", "log")


async def get_watch(request: Request) -> Response:
    """Stream the topics named by `topic=`, each at most once."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.require(request, "status", "see the status of brokers")
    topics = dict.fromkeys(request.query_params.getlist("topic"))
    unknown = next((topic for topic in topics if topic not in TOPICS), None)
    if unknown is not None or not topics:
        raise ProblemError(
            "bad-request", f"there is no topic {str(unknown)[:40]!r}; the topics are {', '.join(TOPICS)}"
        )
    broker = request.query_params.get("broker", "") or gateway.broker.name
    if broker not in gateway.broker.config.addresses:
        raise ProblemError("not-found", f"this network has no broker {broker[:80]!r}")
    keys = {topic: _key(topic, caller, broker) for topic in topics}
    lines = _lines(request, gateway, keys, partial(_feed, gateway, caller, broker))
    return LiveResponse(gateway, lines, _problem, NDJSON_TYPE)


def _key(topic: str, caller: Caller, broker: str) -> Hashable:
    """Return the key of a topic's feed, which consoles with the same key share."""
    return topic, {"durables": caller.key, "log": broker}.get(topic)


@asynccontextmanager
async def _lines(
    request: Request, gateway: Gateway, keys: Mapping[str, Hashable], make: Callable[[str], Feed]
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    async def lines() -> AsyncGenerator[bytes, None]:
        while True:
            found = await watcher.take()
            # the user may have lost the right since then
            gateway.callers.require(request, "status", "see the status of brokers")
            yield found

    watcher = Watcher()
    try:
        for topic, key in keys.items():
            gateway.feeds.watch(watcher, key, partial(make, topic))
        yield lines()
    finally:
        gateway.feeds.leave(watcher)


def _problem(problem: ProblemError) -> bytes:
    return msgspec.json.encode({"problem": problem.document()}) + b"\n"


def _feed(gateway: Gateway, caller: Caller, broker: str, topic: str) -> Feed:
    every_s = SECOND_S if topic == "network" else SLOW_S
    fresh_s = every_s / 2

    async def network() -> Any:
        return (await gateway.network.brokers(fresh_s)).document

    async def sessions() -> Any:
        return (await gateway.network.clients(fresh_s)).document

    async def durables() -> Any:
        return {each["name"]: each for each in (await gateway.durables.of(caller, fresh_s)).document}

    if topic == "log":
        return Feed(topic, _Log(gateway, broker).ask, _later_lines, every_s=every_s, steps=gateway.steps)
    ask = {"network": network, "sessions": sessions, "durables": durables}[topic]
    return Feed(topic, ask, changed_members, every_s=every_s, steps=gateway.steps)


class _Log:
    """The recent log lines of one broker. Each query asks for the lines after the last known one."""

    def __init__(self, gateway: Gateway, broker: str) -> None:
        self._gateway = gateway
        self._broker = broker
        self._run = ""
        self._lines: list[dict[str, Any]] = []

    async def ask(self) -> dict[str, Any]:
        """Query the broker for new lines. Return its run and its last lines."""
        known = self._lines[-1]["number"] if self._lines else 0
        found = await self._gateway.network.log(self._broker, known)
        if known and found["run"] != self._run:
            found, self._lines = await self._gateway.network.log(self._broker, 0), []
        self._run, self._lines = found["run"], [*self._lines, *found["lines"]][-LINES_MAX:]
        return {"broker": self._broker, "run": self._run, "lines": self._lines}


def _later_lines(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    if old["run"] != new["run"] or not old["lines"]:
        return {"whole": new} if old != new else None
    last = old["lines"][-1]["number"]
    lines = [line for line in new["lines"] if line["number"] > last]
    return {"change": {"lines": lines}} if lines else None

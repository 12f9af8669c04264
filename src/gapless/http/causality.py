"""Builds a graph of the causes and effects of an event, from the history that the requesting user may read.

Edges are those that publishers recorded (`gapless.causes`): an effect names the positions of its direct causes. Causes
are read at these positions. Effects are found by the filter `causes LIKE '%POSITION%'`, in several reads for a
generation, because a filter's patterns inside strings are limited in length.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gapless.causes import causes_of
from gapless.client import Client
from gapless.errors import SkippedError
from gapless.events import Event
from gapless.http.event_json import event_document
from gapless.http.gateway import Gateway
from gapless.http.problems import ProblemError
from gapless.positions import Position

__all__ = ["get_graph"]

NODES_MAX = 60
GENERATIONS_MAX = 6
PATTERNS_MAX = 1_000
"""The maximum length in characters of all patterns in one read."""
READ_MAX = 2_000
"""The maximum number of events examined in one read of effects."""


async def get_graph(request: Request) -> Response:
    """Handle `GET /api/graph?position=…`."""
    gateway: Gateway = request.app.state.gateway
    caller = gateway.callers.identify(request)
    text = request.query_params.get("position", "")
    try:
        position = Position(text)
    except ValueError as error:
        raise ProblemError("bad-request", str(error)) from None
    if position.is_network_wide:
        raise ProblemError("bad-request", f"{position} is a network-wide position; give the position of an event")
    async with gateway.clients.stream(caller) as client:
        graph = _Graph(client, gateway.callers.subscribable(caller))
        await graph.find(position)
    return Response(msgspec.json.encode(graph.document(position)), media_type="application/json")


class _Graph:
    def __init__(self, client: Client, within: str) -> None:
        self._client = client
        self._within = within
        """The filter of the events that the user may read."""
        self._events: dict[Position, Event] = {}
        self._missing: dict[Position, None] = {}
        """Positions of causes that are no longer in history, or that the user may not read."""
        self._is_cut = False

    async def find(self, position: Position) -> None:
        """Read the event, its causes and its effects."""
        event = await self._at(position)
        if event is None:
            raise ProblemError("not-found", f"history holds no event at {position} that this user may read")
        self._events[position] = event
        await self._find_causes([event])
        await self._find_effects([event])

    async def _at(self, position: Position) -> Event | None:
        before = Position.at(max(0, position.timestamp - 1))
        async with self._client.read(self._within, since=before, until=position) as reading:
            while True:
                with suppress(SkippedError):
                    events = await reading.take(64)
                    if not events:
                        return None
                    for event in events:
                        if event.position == position:
                            return event

    async def _find_causes(self, generation: Iterable[Event]) -> None:
        for _ in range(GENERATIONS_MAX):
            wanted = dict.fromkeys(cause for event in generation for cause in causes_of(event.attributes))
            generation = []
            for cause in wanted:
                if cause in self._events or cause in self._missing:
                    continue
                if len(self._events) + len(self._missing) >= NODES_MAX // 2:
                    self._is_cut = True
                    return
                event = await self._at(cause)
                if event is None:
                    self._missing[cause] = None
                else:
                    self._events[cause] = event
                    generation.append(event)
            if not generation:
                return
        self._is_cut = True

    async def _find_effects(self, generation: list[Event]) -> None:
        for _ in range(GENERATIONS_MAX):
            found: list[Event] = []
            for causes in _batched(generation):
                found += await self._effects_of(causes)
                if len(self._events) >= NODES_MAX:
                    self._is_cut = True
                    return
            generation = found
            if not generation:
                return
        self._is_cut = True

    async def _effects_of(self, causes: Sequence[Event]) -> list[Event]:
        places = {event.position for event in causes}
        any_of = " OR ".join(f"causes LIKE {_pattern(place)} ESCAPE '!'" for place in places)
        found: list[Event] = []
        looked = 0
        text = f"({self._within}) AND ({any_of})"
        async with self._client.read(text, since=min(places), until="now") as reading:
            while looked < READ_MAX:
                with suppress(SkippedError):
                    events = await reading.take(64)
                    if not events:
                        return found
                    looked += len(events)
                    for event in events:
                        if event.position in self._events or not places & {*causes_of(event.attributes)}:
                            continue
                        if len(self._events) >= NODES_MAX:
                            self._is_cut = True
                            return found
                        self._events[event.position] = event
                        found.append(event)
        self._is_cut = True
        return found

    def document(self, position: Position) -> dict[str, Any]:
        """Return the nodes and the edges of the graph as a document. An edge leads from a cause to its effect."""
        known = {*self._events, *self._missing}
        edges = [
            {"from": str(cause), "to": str(place)}
            for place, event in self._events.items()
            for cause in causes_of(event.attributes)
            if cause in known
        ]
        nodes = [{**event_document(event), "position": str(place)} for place, event in sorted(self._events.items())]
        missing = [{"position": str(place), "missing": True} for place in self._missing]
        return {"position": str(position), "nodes": [*missing, *nodes], "edges": edges, "is_cut": self._is_cut}


def _batched(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield the events in groups whose patterns fit into one filter."""
    group: list[Event] = []
    size = 0
    for event in events:
        own = len(str(event.position))
        if group and size + own > PATTERNS_MAX:
            yield group
            group, size = [], 0
        group.append(event)
        size += own
    if group:
        yield group


def _pattern(position: Position) -> str:
    text = str(position)
    for character in ("!", "%", "_"):
        text = text.replace(character, f"!{character}")
    return f"'%{text}%'"

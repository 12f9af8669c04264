"""Numbers the states of single nodes, and caches the results of inputs.

Interleavings of a few nodes have millions of states, but each node has few: the same node gets the same input again and
again. So the state of a node is pickled and numbered, and the result of an input is computed once, by the shipped code.
Equal numbers mean equal states. Different numbers can also mean equal states, if their objects were created in
different orders: then fewer states are merged, and nothing is missed.

`LivePlaces` does the same with the nodes themselves: for one schedule, which is run once.
"""

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from gapless.overlay import Overlay
from gapless.protocol import (
    Consumed,
    Deliver,
    DeliverMany,
    Effect,
    Input,
    Node,
    Owners,
    Publish,
    Received,
    Send,
    SetTimer,
)
from gapless.simulator.replies import ReplyRule, filled

__all__ = ["Backend", "LivePlaces", "Outcome", "Place", "Places"]


class Place(NamedTuple):
    """The state of a node and its application."""

    node: Node
    delivered: int = 0
    """The number of deliveries that the application has taken."""
    replied: tuple[int, ...] = ()
    """How many times the application has applied each rule for replies."""


class Outcome(NamedTuple):
    """The result of an input, besides the node's next state."""

    sent: tuple[tuple[str, Any], ...] = ()
    """The receivers and messages, in the representation of the backend."""
    timers: tuple[tuple[str, int], ...] = ()
    calls: tuple[Any, ...] = ()
    """The next calls of the application, which are replies."""
    acts: tuple[Effect, ...] = ()
    """The actions that belong in the trace."""
    act: int = 0
    """A number that identifies these actions."""


class Backend(Protocol):
    """Represents nodes and inputs for a `World`."""

    def keep(self, item: Input) -> Any:
        """Return the representation in which an input is queued."""
        ...

    def item(self, kept: Any) -> Input:
        """Return the input that a representation stands for."""
        ...

    def react(self, name: str, place: Any, kept: Any, now: int) -> tuple[Any, Outcome]:
        """Give a node an input. Return its next state and the outcome."""
        ...


def _step(
    name: str, place: Place, item: Input, now: int, replies: Sequence[ReplyRule], paces: bool
) -> tuple[Place, list[Effect], list[Publish]]:
    node, delivered, replied = place
    effects = list(node.step(item, now))
    deliveries = [each for effect in effects for each in _deliveries(effect)]
    if not deliveries:
        return place, effects, []
    counts = list(replied) or [0] * len(replies)
    calls = []
    for delivery in deliveries:
        for number, rule in enumerate(replies):
            if (
                rule.client == name
                and rule.subscription in (None, delivery.subscription)
                and counts[number] < rule.at_most
            ):
                counts[number] += 1
                calls.append(Publish(filled(rule.attributes, delivery)))
    delivered += len(deliveries)
    if paces:
        effects += node.step(Consumed(delivered), now)
    return Place(node, delivered, tuple(counts)), effects, calls


def _deliveries(effect: Effect) -> list[Deliver]:
    if isinstance(effect, Deliver):
        return [effect]
    if isinstance(effect, DeliverMany):
        return [Deliver(event, effect.subscription) for event in effect.events]
    return []


def _outcome(
    name: str,
    effects: Sequence[Effect],
    calls: Sequence[Publish],
    recorded: frozenset[type],
    keep: Callable[[Input], Any],
) -> Outcome:
    sent = tuple((each.peer, keep(Received(name, each.message))) for each in effects if isinstance(each, Send))
    timers = tuple((each.key, each.delay_us) for each in effects if isinstance(each, SetTimer))
    acts = tuple(each for each in effects if type(each) in recorded)
    return Outcome(sent, timers, tuple(map(keep, calls)), acts)


class LivePlaces:
    """A backend of real nodes, for one schedule."""

    def __init__(self, replies: Sequence[ReplyRule], recorded: frozenset[type], *, paces: bool) -> None:
        self._replies, self._recorded, self._paces = replies, recorded, paces
        self.watch: Callable[[str, Node, Input, Sequence[Effect]], None] | None = None

    def keep(self, item: Input) -> Input:
        return item

    def item(self, kept: Input) -> Input:
        return kept

    def react(self, name: str, place: Place, kept: Input, now: int) -> tuple[Place, Outcome]:
        after, effects, calls = _step(name, place, kept, now, self._replies, self._paces)
        if self.watch is not None:
            self.watch(name, place.node, kept, effects)
        return after, _outcome(name, effects, calls, self._recorded, self.keep)


class Places:
    """A backend that stores all visited states of nodes, and all inputs, as numbers."""

    def __init__(self, replies: Sequence[ReplyRule], recorded: frozenset[type], *, paces: bool) -> None:
        self._replies, self._recorded, self._paces = replies, recorded, paces
        self._places: dict[bytes, int] = {}
        self._pickles: list[bytes] = []
        self._items: dict[bytes, int] = {}
        self._inputs: list[Input] = []
        self._acts: dict[bytes, int] = {}
        self._reactions: dict[tuple[int, int, int], tuple[int, Outcome]] = {}
        self.steps = 0
        """How many times the protocol's code ran."""

    def __len__(self) -> int:
        return len(self._pickles)

    def number(self, place: Place) -> int:
        """Return the number of a node's state, adding it if it is new."""
        key = self._dump(place)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self._pickles)
            self._pickles.append(key)
        return found

    def place(self, number: int) -> Place:
        """Return a copy of the node in the state with this number."""
        return self._load(self._pickles[number])  # type: ignore[no-any-return]

    def keep(self, item: Input) -> int:
        """Return the number of an input, adding it if it is new."""
        key = self._dump(item)
        found = self._items.get(key)
        if found is None:
            found = self._items[key] = len(self._inputs)
            self._inputs.append(item)
        return found

    def item(self, kept: int) -> Input:
        """Return the input with this number."""
        return self._inputs[kept]

    def react(self, name: str, place: int, kept: int, now: int) -> tuple[int, Outcome]:
        """Return the result of an input in a state, from the cache if possible."""
        key = place, kept, now
        found = self._reactions.get(key)
        if found is None:
            self.steps += 1
            after, effects, calls = _step(name, self.place(place), self._inputs[kept], now, self._replies, self._paces)
            outcome = _outcome(name, effects, calls, self._recorded, self.keep)
            if outcome.acts:
                act = self._acts.setdefault(self._dump(outcome.acts), len(self._acts) + 1)
                outcome = outcome._replace(act=act)
            found = self._reactions[key] = self.number(after), outcome
        return found

    def _dump(self, value: Any) -> bytes:
        buffer = io.BytesIO()
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
        return buffer.getvalue()

    def _load(self, data: bytes) -> Any:
        return pickle.loads(data)  # this process pickled the data


class _Pickler(pickle.Pickler):
    """A pickler that replaces objects which never change by numbers, and keeps them alive: the tree, and the owners of
    clients.
    """

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Overlay | Owners):
            _constants[id(value)] = value
            return _constant, (id(value),)
        return NotImplemented


_constants: dict[int, Overlay | Owners] = {}


def _constant(number: int) -> Overlay | Owners:
    return _constants[number]

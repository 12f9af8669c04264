"""Represents the state of a whole network as a value, and computes its transitions.

Messages between two nodes stay in order. A transition is one of

    ("deliver", a, b)      the first message from a reaches b; ("deliver", "", b): news of b's failure detector; with a
                           equal to b: the next call of the application
    ("do", thread, how)    the next act of a client, or the next fault of its kind. A crash or a cut loses everything
                           that is in flight from there, or ("keep") nothing
    ("tick",)              nothing is in flight: time advances to the next timer, which fires

Time does not advance between ticks, so that states which differ only in time are one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from gapless.overlay import Overlay
from gapless.protocol import (
    Activated,
    BrokerPlace,
    ClientPlace,
    Connected,
    Ended,
    Input,
    Node,
    ProtocolSpec,
    Published,
    PublishedMany,
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
)
from gapless.simulator.explorer.places import Backend, Outcome, Place
from gapless.simulator.explorer.threads import Act, Threads

__all__ = ["Acts", "State", "Transition", "World"]

Transition: TypeAlias = tuple[str, ...]
Channel: TypeAlias = tuple[str, str]
Acts: TypeAlias = list[tuple[str, Any]]
"""The actions of clients in a transition: pairs of a client and an effect or a call."""
NEWS = ""


class State(NamedTuple):
    """The state of the whole network. Equal states have equal futures."""

    now: int
    places: tuple[Any, ...]
    """The state of each node, or None for a crashed broker."""
    timers: tuple[tuple[tuple[int, str], ...], ...]
    flight: tuple[tuple[Channel, Any], ...]
    """The messages in flight, the oldest first."""
    done: tuple[int, ...]
    """For each thread, the number of its actions so far."""
    suspects: frozenset[tuple[str, str]]
    cut: frozenset[frozenset[str]]
    incarnations: tuple[int, ...]
    histories: tuple[int, ...]
    """For each node, a number that identifies everything that its application has received."""
    standing: frozenset[tuple[str, str]]
    """The subscriptions that are active or have ended."""
    facts: frozenset[tuple[Any, ...]]
    """For each publication, the subscriptions that were active at that time. Nothing else relates the times of
    different clients."""


class World:
    """The network of a scenario, with nodes that `backend` represents."""

    def __init__(
        self, spec: ProtocolSpec, overlay: Overlay, f: int, options: Any, threads: Threads, backend: Backend
    ) -> None:
        self._spec, self._overlay, self._f, self._options = spec, overlay, f, options
        self.threads = threads
        self._backend = backend
        self.names = (*overlay.brokers, *(client.name for client in threads.clients))
        self._index = {name: number for number, name in enumerate(self.names)}
        self._is_broker = dict.fromkeys(overlay.brokers, True)
        self._contacts = {
            client.name: (client.broker, *overlay.within(client.broker, f + 1)) for client in threads.clients
        }
        self._chains: dict[tuple[int, int], int] = {}
        self._live: dict[str, Node] = {}
        self._begun: Callable[[str, Node], None] = lambda name, node: None
        self._noted: set[int] = set()
        self.kinds: set[str] = set()
        """The types of all delivered messages."""

    # ---- the beginning ------------------------------------------------------------------------------------

    def begin(self, acts: Acts) -> State:
        """Start all nodes, without delivering anything. The backend must be one of real nodes."""
        count = len(self.names)
        state = State(
            0, (None,) * count, ((),) * count, (), (0,) * len(self.threads.threads), frozenset(), frozenset(),
            (0,) * count, (0,) * count, frozenset(), frozenset(),
        )  # fmt: skip
        for name in self._overlay.brokers:
            state = self._put(state, name, self._make(name, 0))
        for name in self._overlay.brokers:
            state = self._give(state, name, self._backend.keep(Start()), acts)
        for client in self.threads.clients:
            place = ClientPlace(client.name, client.broker, self._contacts[client.name])
            state = self._put(state, client.name, Place(self._spec.client(place, self._options)))
            state = self._give(state, client.name, self._backend.keep(Start()), acts)
        return state

    def _put(self, state: State, name: str, place: Any) -> State:
        return state._replace(places=_with(state.places, self._index[name], place))

    def observe(self, begin: Callable[[str, Node], None]) -> None:
        """Call `begin` with every new broker."""
        self._begun = begin

    def live_brokers(self) -> dict[str, Node]:
        """Return the nodes of all running brokers. The backend must be one of real nodes."""
        return dict(self._live)

    def _make(self, name: str, incarnation: int) -> Place:
        node = self._spec.broker(BrokerPlace(name, self._overlay, self._f, incarnation), self._options)
        self._live[name] = node
        self._begun(name, node)
        return Place(node)

    # ---- transitions --------------------------------------------------------------------------------------

    def heads(self, state: State) -> list[Transition]:
        """Return the messages that can be delivered, the oldest first."""
        channels = dict.fromkeys(channel for channel, _ in state.flight)
        return [("deliver", *channel) for channel in channels]

    def possible(self, state: State) -> list[Transition]:
        """Return the actions that can happen now."""
        found: list[Transition] = []
        for number, thread in enumerate(self.threads.threads):
            if state.done[number] < len(thread):
                act = thread[state.done[number]]
                if act.kind in ("crash", "cut"):
                    if act.kind == "crash" and state.places[self._index[act.names[0]]] is None:
                        continue
                    found.append(("do", str(number), "keep"))
                found.append(("do", str(number), ""))
        return found

    def touches(self, transition: Transition, state: State) -> tuple[frozenset[str], bool, bool]:
        """Return the nodes that a transition changes, whether it is a fault, and whether it can publish."""
        if transition[0] == "deliver":
            return frozenset((transition[2],)), False, transition[1] == transition[2]
        number = int(transition[1])
        act = self.threads.threads[number][state.done[number]]
        nodes = self.names if act.kind == "restart" else act.names  # other nodes can send to a restarted one
        return frozenset(nodes), act.call is None, act.is_publication

    def commute(self, one: Transition, other: Transition, state: State) -> bool:
        """Return whether both orders of two transitions, which are possible in this state, lead to the same state."""
        nodes, is_fault, publishes = self.touches(one, state)
        nodes2, is_fault2, publishes2 = self.touches(other, state)
        if nodes & nodes2 or (is_fault and is_fault2):
            return False
        if is_fault and other[0] == "deliver" and (other[1] == NEWS or other[1] in nodes):
            return False
        if is_fault2 and one[0] == "deliver" and (one[1] == NEWS or one[1] in nodes2):
            return False
        clients = not any(name in self._is_broker for name in nodes)
        clients2 = not any(name in self._is_broker for name in nodes2)
        return not ((publishes and clients2) or (publishes2 and clients))

    def apply(self, state: State, transition: Transition, acts: Acts) -> State:
        """Return the state after a transition."""
        if transition[0] == "deliver":
            channel = transition[1], transition[2]
            place = next(number for number, (each, _) in enumerate(state.flight) if each == channel)
            kept = state.flight[place][1]
            state = state._replace(flight=state.flight[:place] + state.flight[place + 1 :])
            self._note_kind(kept)
            return self._deliver(state, channel, kept, acts)
        if transition[0] == "tick":
            due, number, key = min(
                (due, number, key) for number, timers in enumerate(state.timers) for due, key in timers
            )
            timers = tuple(each for each in state.timers[number] if each[1] != key)
            state = state._replace(now=max(due, state.now), timers=_with(state.timers, number, timers))
            return self._give(state, self.names[number], self._backend.keep(TimerFired(key)), acts)
        number = int(transition[1])
        act = self.threads.threads[number][state.done[number]]
        state = state._replace(done=_with(state.done, number, state.done[number] + 1))
        return self._do(state, act, transition[2] == "keep", acts)

    def next_due(self, state: State) -> int | None:
        """Return when the next timer fires."""
        return min((timers[0][0] for timers in state.timers if timers), default=None)

    def _note_kind(self, kept: Any) -> None:
        if kept.__class__ is int and kept not in self._noted:
            self._noted.add(kept)
            item = self._backend.item(kept)
            message = getattr(item, "message", item)
            self.kinds.add(type(content(message)).__name__)

    def _deliver(self, state: State, channel: Channel, kept: Any, acts: Acts) -> State:
        name = channel[1]
        if channel[0] == NEWS:
            item = self._backend.item(kept)
            pair = name, getattr(item, "peer", "")
            if isinstance(item, Suspected):
                state = state._replace(suspects=state.suspects | {pair})
            elif isinstance(item, Trusted):
                state = state._replace(suspects=state.suspects - {pair})
        return self._give(state, name, kept, acts)

    # ---- nodes --------------------------------------------------------------------------------------------

    def _give(self, state: State, name: str, kept: Any, acts: Acts) -> State:
        number = self._index[name]
        before = state.places[number]
        if before is None:
            return state
        after, outcome = self._backend.react(name, before, kept, state.now)
        flight = list(state.flight)
        for peer, message in outcome.sent:
            receiver = self._index[peer]
            if state.places[receiver] is not None and (not state.cut or frozenset((name, peer)) not in state.cut):
                flight.append(((name, peer), message))
        flight += [((name, name), call) for call in outcome.calls]
        timers = state.timers
        if outcome.timers:
            due = {key: at for at, key in timers[number]}
            due |= {key: state.now + delay for key, delay in outcome.timers}
            timers = _with(timers, number, tuple(sorted((at, key) for key, at in due.items())))
        state = state._replace(places=_with(state.places, number, after), timers=timers, flight=tuple(flight))
        return self._note(state, name, number, outcome, acts) if outcome.acts else state

    def _note(self, state: State, name: str, number: int, outcome: Outcome, acts: Acts) -> State:
        """Record what the application of a client received."""
        acts += [(name, act) for act in outcome.acts]
        standing, facts = set(state.standing), set(state.facts)
        for act in outcome.acts:
            if isinstance(act, Activated | Ended):
                standing.add((act.subscription, type(act).__name__))
            elif isinstance(act, Published):
                facts.add((name, act.event.seq, frozenset(standing)))
            elif isinstance(act, PublishedMany):
                facts.add((name, act.events.last, frozenset(standing)))
        chain = self._chains.setdefault((state.histories[number], outcome.act), len(self._chains) + 1)
        histories = _with(state.histories, number, chain)
        return state._replace(histories=histories, standing=frozenset(standing), facts=frozenset(facts))

    # ---- acts ---------------------------------------------------------------------------------------------

    def perform(self, state: State, act: Act, acts: Acts) -> State:
        """Return the state after an action that belongs to no thread."""
        return self._do(state, act, False, acts)

    def _do(self, state: State, act: Act, keeps: bool, acts: Acts) -> State:
        if act.call is not None:
            if isinstance(act.call, Subscribe):
                acts.append((act.names[0], act.call))
            return self._give(state, act.names[0], self._backend.keep(act.call), acts)
        match act.kind:
            case "crash":
                return self._crash(state, act.names[0], keeps)
            case "restart":
                return self._restart(state, act.names[0], acts)
            case "suspect":
                return self._add_news(state, act.names[0], Suspected(act.names[1]))
            case "trust":
                return self._add_news(state, act.names[0], Trusted(act.names[1]))
            case "cut":
                one, other = act.names
                lost = () if keeps else ((one, other), (other, one))
                state = _without(state, lambda channel: channel in lost)
                state = state._replace(cut=state.cut | {frozenset((one, other))})
                return self._add_news(self._add_news(state, one, Suspected(other)), other, Suspected(one))
        one, other = act.names
        state = state._replace(cut=state.cut - {frozenset((one, other))})
        return self._connect(state, one, other)

    def _add_news(self, state: State, name: str, *news: Input) -> State:
        return state._replace(flight=(*state.flight, *(((NEWS, name), self._backend.keep(each)) for each in news)))

    def _peers(self, name: str) -> list[str]:
        brokers = self._overlay.within(name, self._f + 1)
        return [*brokers, *(client for client, contacts in self._contacts.items() if name in contacts)]

    def _crash(self, state: State, name: str, keeps: bool) -> State:
        number = self._index[name]
        self._live.pop(name, None)
        state = _without(state, lambda channel: channel[1] == name or (not keeps and channel[0] == name))
        state = state._replace(
            places=_with(state.places, number, None), timers=_with(state.timers, number, ()),
            suspects=frozenset(pair for pair in state.suspects if pair[0] != name),
        )  # fmt: skip
        for peer in self._peers(name):
            if state.places[self._index[peer]] is not None and (peer, name) not in state.suspects:
                state = self._add_news(state, peer, Suspected(name))
        return state

    def _restart(self, state: State, name: str, acts: Acts) -> State:
        number = self._index[name]
        incarnation = state.incarnations[number] + 1
        place: Any = self._make(name, incarnation)
        numbered = getattr(self._backend, "number", None)
        state = self._put(state, name, place if numbered is None else numbered(place))
        state = state._replace(incarnations=_with(state.incarnations, number, incarnation))
        state = self._give(state, name, self._backend.keep(Start()), acts)
        for peer in self._peers(name):
            if state.places[self._index[peer]] is None:
                state = self._add_news(state, name, Suspected(peer))
            elif frozenset((name, peer)) not in state.cut:
                state = self._connect(state, name, peer)
        return state

    def _connect(self, state: State, one: str, other: str) -> State:
        """Open a new connection between two nodes. No message of the previous one arrives after it."""
        gone = {(one, other), (other, one)}
        kept = []
        for channel, each in state.flight:
            item = self._backend.item(each) if channel[0] == NEWS else None
            is_stale = isinstance(item, Suspected) and {channel[1], item.peer} == {one, other}
            if channel not in gone and not is_stale:
                kept.append((channel, each))
        state = state._replace(flight=tuple(kept))
        for at, peer in ((one, other), (other, one)):
            trusted = [Trusted(peer)] if (at, peer) in state.suspects else []
            state = self._add_news(state, at, Connected(peer), *trusted)
        return state


def content(message: Any) -> Any:
    """Return the wrapped message if there is one, and otherwise the message itself."""
    while hasattr(message, "body"):
        message = message.body
    return message


def _with(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _without(state: State, is_lost: Any) -> State:
    return state._replace(flight=tuple(each for each in state.flight if not is_lost(each[0])))

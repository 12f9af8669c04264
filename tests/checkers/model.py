"""A model network without bugs, as the list of calls that a runtime would make to the recorder.

A global log contains all events. Each client *sees* them one by one, in its own order that never shows an event before
those that its publisher had seen when it published; it sees its own events at once. An event that a client sees is
delivered to its matching subscriptions. A subscription can start and end at any time, and the events that the client
had seen by then are its cut. The set of seen events is closed under happens-before, so starting and ending cuts are
consistent: the histories are gapless and causal by construction, not because of a protocol. Later publications were not
seen when a subscription started, so each subscription may claim that its cut is whole.

Tests plant anomalies into a list of `Call`s; `record` plays it to a `Recorder`, so that certificates and everything
else belong to the modified run.
"""

import random
from typing import Literal, NamedTuple

from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import Guarantee, Ready
from gapless.trace import Recorder, Trace

US_PER_CALL = 10


class Call(NamedTuple):
    """One action of a run. Only the model uses `see`."""

    kind: Literal["subscribe", "activate", "cut", "publish", "see", "deliver", "end"]
    client: str
    subscription: str = ""
    event: Event | None = None
    text: str = ""
    publisher: str = ""
    from_seq: int = 0
    last_seq: tuple[tuple[str, int], ...] = ()
    ready: Ready = "first"

    @property
    def happening(self) -> Event:
        assert self.event is not None
        return self.event


class Run(NamedTuple):
    """A run of the model."""

    calls: list[Call]
    guarantee: Guarantee
    quiesced: bool


def record(run: Run, name: str = "model") -> Trace:
    recorder = Recorder(
        run=name, protocol="model", guarantee=run.guarantee, scenario="toy", seed=0, brokers=1, f=0, options="{}"
    )
    for place, call in enumerate(run.calls):
        now_us = place * US_PER_CALL
        match call.kind:
            case "subscribe":
                recorder.subscribe(call.client, call.subscription, call.text, now_us, ready=call.ready)
            case "activate":
                recorder.activate(call.subscription, now_us)
            case "cut":
                recorder.fix_cut(call.subscription, call.publisher, call.from_seq)
            case "publish":
                recorder.publish(call.client, call.happening, now_us)
            case "deliver":
                recorder.deliver(call.client, call.happening, call.subscription, now_us)
            case "end":
                recorder.end(call.subscription, dict(call.last_seq), now_us)
            case "see":
                pass
    return recorder.finish(quiesced=run.quiesced)


class _Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[str, int] = {}
        self.live: dict[str, str] = {}


class Model:
    """Generates a run from a seed."""

    def __init__(
        self, seed: int, *, clients: int = 4, acts: int = 60, guarantee: Guarantee = "gcd",
        ready: tuple[Ready, ...] = ("first",),
    ) -> None:  # fmt: skip
        self.ready = ready
        """The `ready` values of subscriptions, in turn."""
        self.draw = random.Random(seed)
        self.guarantee = guarantee
        self.clients = [_Client(f"c{number}") for number in range(clients)]
        self.log: list[tuple[Event, dict[str, int]]] = []
        self.published: dict[str, int] = {client.name: 0 for client in self.clients}
        self.calls: list[Call] = []
        self.subscriptions = 0
        for _ in range(acts):
            self._act(self.draw.choice(self.clients))

    def run(self, *, quiesced: bool = True) -> Run:
        """Return the run: quiet at the end if `quiesced`; otherwise it stops at a random moment."""
        while quiesced and any(self._see(client) for client in self.clients):
            pass
        return Run(self.calls, self.guarantee, quiesced)

    def _act(self, client: _Client) -> None:
        chance = self.draw.random()
        if chance < 0.25:
            self._publish(client)
        elif chance < 0.85:
            self._see(client)
        elif chance < 0.96 or not client.live:
            self._subscribe(client)
        else:
            self._unsubscribe(client)

    def _publish(self, client: _Client) -> None:
        past = dict(client.seen)
        self.published[client.name] += 1
        event = Event(client.name, self.published[client.name], self._attributes())
        self.log.append((event, past))
        self.calls.append(Call("publish", client.name, event=event))
        self._show(client, event)

    def _attributes(self) -> dict[str, str | int | float | bool]:
        return {"x": self.draw.randrange(6), "topic": self.draw.choice("ab")}

    def _see(self, client: _Client) -> bool:
        open_events = [event for event, past in self.log if self._may_see(client, event, past)]
        if open_events:
            self._show(client, self.draw.choice(open_events))
        return bool(open_events)

    def _may_see(self, client: _Client, event: Event, past: dict[str, int]) -> bool:
        is_next = client.seen.get(event.publisher, 0) == event.seq - 1
        return is_next and all(client.seen.get(publisher, 0) >= seq for publisher, seq in past.items())

    def _show(self, client: _Client, event: Event) -> None:
        client.seen[event.publisher] = event.seq
        self.calls.append(Call("see", client.name, event=event))
        for subscription, text in client.live.items():
            if parse(text).matches(event.attributes):
                self.calls.append(Call("deliver", client.name, subscription, event))

    def _subscribe(self, client: _Client) -> None:
        self.subscriptions += 1
        name = f"s{self.subscriptions}"
        text = self.draw.choice(["x >= 0", "x >= 2", "x < 4", "topic = 'a'"])
        if self.guarantee == "topic-causal":
            text = self.draw.choice(["topic = 'a'", "topic = 'b'"])
        ready = self.ready[self.subscriptions % len(self.ready)]
        self.calls.append(Call("subscribe", client.name, name, text=text, ready=ready))
        for publisher in self.published:
            seen = client.seen.get(publisher, 0)
            if seen or self.draw.random() < 0.7:  # the protocol may know no cut of a publisher that starts late
                self.calls.append(Call("cut", client.name, name, publisher=publisher, from_seq=seen + 1))
        self.calls.append(Call("activate", client.name, name))
        client.live[name] = text

    def _unsubscribe(self, client: _Client) -> None:
        name = self.draw.choice(sorted(client.live))
        del client.live[name]
        last_seq = tuple((publisher, client.seen.get(publisher, 0)) for publisher in self.published)
        self.calls.append(Call("end", client.name, name, last_seq=last_seq))

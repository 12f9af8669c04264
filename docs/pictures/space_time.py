"""Draws a run: a column for each node, time from top to bottom, an arrow for each message."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from docs.pictures.drawing import Drawing
from gapless.events import Event
from gapless.protocols.gapless.journal_messages import Hold
from gapless.registry import find_protocol
from gapless.simulator import Scenario, load_scenario
from gapless.simulator.scenario import Crash
from gapless.simulator.scenario_run import prepare, run_prepared
from gapless.trace import Recorder, Trace

__all__ = ["SCENARIOS", "SpaceTime"]

SCENARIOS = Path(__file__).parent / "scenarios"
LEFT, TOP, STEP = 120, 56, 150
INK, PALE, RED = "#222", "#c8c8c8", "#c0182b"
COLOURS = ("#1f5fbf", "#b35900", "#1b7a3d", "#7d3fb2", "#008080", "#8a6d00", "#a3195b")


class _Message(NamedTuple):
    kind: str
    sender: str
    receiver: str
    sent_ms: float
    received_ms: float | None
    label: str
    lane: int = 0
    """The number of other messages drawn next to this one."""


class SpaceTime(NamedTuple):
    """Selects the run and its contents: nodes from left to right, and kinds of messages with their labels."""

    scenario: str
    title: str
    nodes: tuple[str, ...]
    kinds: Mapping[str, str]
    from_ms: float
    to_ms: float
    scale: float = 3.0
    """The height of a millisecond in pixels."""

    def draw(self) -> str:
        """Return the picture."""
        scenario = load_scenario(SCENARIOS / f"{self.scenario}.toml")
        trace, messages = _run(scenario)
        legend = list(dict.fromkeys(self.kinds.values()))
        height = TOP + (self.to_ms - self.from_ms) * self.scale + 40
        drawing = Drawing(
            2 * LEFT + STEP * (len(self.nodes) - 1), int(height + 22 * ((len(legend) + 2) // 3)), self.title
        )
        self._columns(drawing, scenario)
        drawn: set[str] = set()
        for message in _together([message for message in messages if message.kind in self.kinds]):
            if self._shows(message):
                self._message(drawing, message, legend)
                drawn.add(self.kinds[message.kind])
        assert drawn == set(legend), f"nothing of {set(legend) - drawn} happens in {self.scenario}"
        self._acts(drawing, trace)
        for number, word in enumerate(legend):
            self._legend(drawing, number, word, height)
        return drawing.text()

    def _at(self, node: str, time_ms: float) -> tuple[float, float]:
        return LEFT + STEP * self.nodes.index(node), TOP + (time_ms - self.from_ms) * self.scale

    def _columns(self, drawing: Drawing, scenario: Scenario) -> None:
        crashes = {fault.broker: fault.at_ms for fault in scenario.faults if isinstance(fault, Crash)}
        brokers = {client.broker for client in scenario.clients}
        clients = {client.name for client in scenario.clients}
        assert brokers <= set(self.nodes), "draw the broker of every client"
        for node in self.nodes:
            x, _ = self._at(node, self.from_ms)
            end = crashes.get(node, self.to_ms)
            drawing.words((x, 26), node, INK, size=15, weight="bold")
            drawing.words((x, 42), "client" if node in clients else "broker", "#666", size=11)
            drawing.line(self._at(node, self.from_ms), self._at(node, end), PALE, "2 4" if node in clients else "")
            if node in crashes:
                drawing.cross(self._at(node, end), RED, 8)
                drawing.words((x + 14, self._at(node, end)[1] + 4), "dies", RED, "start")

    def _shows(self, message: _Message) -> bool:
        is_between = {message.sender, message.receiver} <= set(self.nodes)
        return is_between and self.from_ms <= message.sent_ms < self.to_ms and (message.received_ms or 0) <= self.to_ms

    def _message(self, drawing: Drawing, message: _Message, legend: list[str]) -> None:
        colour = COLOURS[legend.index(self.kinds[message.kind])]
        shift = 5 * message.lane / self.scale
        start = self._at(message.sender, message.sent_ms + shift)
        if message.received_ms is None:
            whole = self._at(message.receiver, message.sent_ms + 20 + shift)
            end = ((start[0] + whole[0]) / 2, (start[1] + whole[1]) / 2)
            drawing.line(start, end, colour, "4 3")
            drawing.cross(end, RED, 4)
        else:
            end = self._at(message.receiver, message.received_ms + shift)
            drawing.arrow(start, end, colour)
        if message.label:
            share = 0.3 if message.lane == 0 else 0.6
            place = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]) - 3)
            drawing.words(place, message.label, colour, size=11, weight="bold")

    def _acts(self, drawing: Drawing, trace: Trace) -> None:
        for node, time_ms, word in sorted(_acts(trace)):
            if node in self.nodes and self.from_ms <= time_ms <= self.to_ms:
                x, y = self._at(node, time_ms)
                outward = -1 if self.nodes.index(node) == 0 else 1
                drawing.dot((x, y), INK)
                drawing.words((x + 9 * outward, y + 4), word, INK, "end" if outward < 0 else "start", 11)

    def _legend(self, drawing: Drawing, number: int, word: str, height: float) -> None:
        width = (2 * LEFT + STEP * (len(self.nodes) - 1) - 40) / 3
        x, y = 24 + width * (number % 3), height - 10 + 22 * (number // 3)
        drawing.arrow((x, y), (x + 26, y), COLOURS[number])
        drawing.words((x + 33, y + 4), word, COLOURS[number], "start")


def _acts(trace: Trace) -> Iterator[tuple[str, float, str]]:
    """Yield the actions of clients and their notifications, one line for each moment."""
    found: dict[tuple[str, float], list[str]] = {}
    events: dict[tuple[str, float, str], list[str]] = {}
    for act in trace.history:
        whose, _, number = act.event_id.partition(":")
        word = "publishes" if act.kind == "publish" else f"gets {whose}"
        events.setdefault((act.client, act.time_ms, word), []).append(number)
    for (client, time_ms, word), numbers in events.items():
        many = "" if len(numbers) == 1 else f" to {numbers[-1]}"
        found.setdefault((client, time_ms), []).append(f"{word} {numbers[0]}{many}")
    for subscription in trace.subscriptions:
        found[subscription.client, subscription.requested_ms] = ["subscribes"]
        if subscription.active_ms is not None:
            cuts = [cut for cut in trace.cuts if cut.subscription_id == subscription.subscription_id]
            start = ", ".join(f"{cut.publisher} {cut.from_seq}" for cut in cuts)
            found[subscription.client, subscription.active_ms] = [f"active, from {start}" if start else "active"]
    for (client, time_ms), words in found.items():
        yield client, time_ms, ", ".join(words)


def _run(scenario: Scenario) -> tuple[Trace, list[_Message]]:
    spec = find_protocol(scenario.protocol.name)
    recorder = Recorder(
        run=scenario.name, protocol=spec.name, guarantee=spec.guarantee, scenario=scenario.name, seed=0, brokers=0, f=0
    )
    simulation = prepare(scenario, recorder, with_messages=True)
    result = run_prepared(scenario, simulation)
    assert result.trace is not None
    assert simulation._message_log is not None
    messages = []
    for record in simulation._message_log._records:
        inner = _inside(record.message)
        arrived = None if record.arrived is None else record.arrived / 1000
        names = record.link.sender.name, record.link.receiver.name
        messages.append(_Message(type(inner).__name__, *names, record.sent / 1000, arrived, _label(inner)))
    return result.trace, messages


def _together(messages: list[_Message]) -> Iterator[_Message]:
    """Merge messages of one kind that are sent at the same time; place different kinds next to each other."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for message in messages:
        found.setdefault(message[:5], []).append(message.label)
    lanes: dict[tuple[Any, ...], int] = {}
    for key, labels in found.items():
        numbers = list(dict.fromkeys(label for label in labels if label))
        if len(numbers) > 1 and all(number.isdigit() for number in numbers):
            numbers = [f"{numbers[0]} to {numbers[-1]}"]
        lane = lanes[key[1:]] = lanes.get(key[1:], -1) + 1
        kind, sender, receiver, sent_ms, received_ms = key
        yield _Message(kind, sender, receiver, sent_ms, received_ms, ", ".join(numbers), lane)


def _inside(message: Any) -> Any:
    """Return the message inside its envelopes."""
    while hasattr(message, "body"):
        message = message.body
    return message


def _label(message: Any) -> str:
    """Return the number of the message's event, or of the first event of its cut."""
    stamped = getattr(message, "stamped", message)
    events: list[Event] = [*getattr(message, "events", ()), *([stamped.event] if hasattr(stamped, "event") else ())]
    if isinstance(message, Hold):
        events = [event for entry in message.copy.entries for event in entry.events]
    if events:
        numbers = [event.seq for event in events]
        return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    cuts = getattr(message, "cuts", None)
    return ", ".join(f"from {seq}" for seq in cuts.values()) if isinstance(cuts, Mapping) else ""

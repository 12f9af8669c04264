"""Validates scenarios. Each error message begins with the place in the file.

There are three passes: the network, the names, and the order of events in time. The order is
checked by replaying actions and faults, sorted by time (and by their order in the file), without
running any node.
"""

from collections.abc import Iterable
from typing import Any

from gapless.errors import OverlayError, ProtocolError, ScenarioError
from gapless.filters import FilterError, parse
from gapless.overlay import Overlay
from gapless.protocol import ProtocolSpec, check_overlay
from gapless.registry import find_protocol
from gapless.simulator.networks import overlay_of
from gapless.simulator.options import convert_options, refusal
from gapless.simulator.relinking import misfits
from gapless.simulator.scenario import (
    AdvertiseAction,
    Crash,
    Cut,
    Delay,
    DeleteEvents,
    Forget,
    Heal,
    LatencySpec,
    LeaveAction,
    Network,
    PublishAction,
    Relink,
    Restart,
    Scenario,
    SetClock,
    SubscribeAction,
    Suspect,
    Trust,
    UnadvertiseAction,
    UnsubscribeAction,
)  # fmt: skip
from gapless.simulator.scenario_names import check_names

__all__ = ["check_scenario"]


def check_scenario(scenario: Scenario, protocol: ProtocolSpec | None = None) -> None:
    """Raise a `ScenarioError` if the scenario cannot be run. A given `protocol` replaces the scenario's own."""
    overlay = _checked_overlay(scenario.network)
    _check_links(scenario.network, overlay, _coming_links(scenario))
    _check_protocol(scenario, protocol, overlay)
    names = _Names(scenario, overlay)
    _check_clients(scenario, names)
    _check_actions(scenario, names)
    _check_replies(scenario, names)
    _check_faults(scenario, names)
    _check_run(scenario)


# ---- the network and the protocol


def _checked_overlay(network: Network) -> Overlay:
    try:
        return overlay_of(network)
    except OverlayError as error:
        raise ScenarioError(f"network: {error}") from None


def _check_links(network: Network, overlay: Overlay, coming: list[set[str]]) -> None:
    if network.f < 0:
        raise ScenarioError(f"network.f: {network.f} is negative; 0 means that no broker may fail")
    for key in ("loss", "duplication"):
        _check_probability(f"network.{key}", getattr(network, key))
    _check_delay("network.detection", network.detection)
    _check_delay("network.reconnect", network.reconnect)
    _check_latency(network.latency, overlay, coming)
    if network.node_model is not None:
        _not_negative("network.node_model.processing_ms", network.node_model.processing_ms)
        _not_negative("network.node_model.transmission_ms", network.node_model.transmission_ms)


def _check_latency(latency: LatencySpec, overlay: Overlay, coming: list[set[str]]) -> None:
    place = "network.latency"
    needed = ("ms",) if latency.model == "constant" else ("min_ms", "max_ms")
    for key in ("ms", "min_ms", "max_ms"):
        value = getattr(latency, key)
        if value is not None and key not in needed:
            takes = " and ".join(needed)
            raise ScenarioError(f"{place}.{key}: model {latency.model!r} has no {key!r}; it takes {takes}")
        if value is None and key in needed and latency.model != "constant":
            raise ScenarioError(f"{place}: model {latency.model!r} needs {key!r}")
        _not_negative(f"{place}.{key}", value or 0)
    if latency.min_ms is not None and latency.max_ms is not None:
        _check_delay(place, Delay(latency.min_ms, latency.max_ms))
    _not_negative(f"{place}.client_ms", latency.client_ms)
    for link, value in latency.links.items():
        a, _, b = link.partition("-")
        is_link = a in overlay and b in overlay and (latency.direct or a in overlay.neighbours(b))
        if not is_link and {a, b} not in coming:
            raise ScenarioError(f'{place}.links: {link!r} is not a link of the tree; write two neighbours as "b0-b1"')
        _not_negative(f'{place}.links."{link}"', value)


def _coming_links(scenario: Scenario) -> list[set[str]]:
    return [set(fault.new) for fault in scenario.faults if isinstance(fault, Relink)]


def _check_protocol(scenario: Scenario, protocol: ProtocolSpec | None, overlay: Overlay) -> None:
    try:
        spec = protocol or find_protocol(scenario.protocol.name)
    except ProtocolError as error:
        raise ScenarioError(f"protocol.name: {error}") from None
    try:
        options = convert_options(spec, scenario.protocol.options)
    except ProtocolError as error:
        raise ScenarioError(f"protocol.options: {error}") from None
    try:
        check_overlay(spec, overlay, scenario.network.f, options)
    except ProtocolError as error:
        raise ScenarioError(f"network: {error}") from None
    check_names(scenario, spec)
    for key in ("loss", "duplication"):
        if getattr(scenario.network, key) and key not in spec.copes_with:
            raise ScenarioError(f"network.{key}: protocol {spec.name!r} does not claim to tolerate {key}; set it to 0")
    for number, fault in enumerate(scenario.faults):
        if isinstance(fault, Relink) and "relink" not in spec.copes_with:
            raise ScenarioError(f"faults[{number}]: {refusal(spec, 'relink')}")
        if isinstance(fault, Forget) and not spec.forgets:
            raise ScenarioError(
                f"faults[{number}]: brokers of {spec.name!r} do not wait for others, so none can be forgotten"
            )
        if isinstance(fault, DeleteEvents) and not spec.deletes:
            raise ScenarioError(
                f"faults[{number}]: brokers of {spec.name!r} keep no history, so nothing can be deleted"
            )


# ---- names


class _Names:
    """The names of brokers and clients in the scenario."""

    def __init__(self, scenario: Scenario, overlay: Overlay) -> None:
        self.overlay = overlay
        self.joined: dict[str, float] = {}
        for number, client in enumerate(scenario.clients):
            if client.name in self.joined:
                raise ScenarioError(f"clients[{number}].name: there are two clients {client.name!r}; rename one")
            if client.name in overlay:
                raise ScenarioError(f"clients[{number}].name: {client.name!r} is a broker; choose another name")
            self.joined[client.name] = client.join_ms

    def need_broker(self, place: str, name: str) -> None:
        if name not in self.overlay:
            raise ScenarioError(f"{place}: there is no broker {name!r} ({_listed(self.overlay.brokers)})")

    def need_client(self, place: str, name: str) -> None:
        if name not in self.joined:
            raise ScenarioError(f"{place}: there is no client {name!r} ({_listed(self.joined)})")

    def need_pair(self, place: str, a: str, b: str) -> None:
        for name in (a, b):
            if name not in self.overlay and name not in self.joined:
                known = _listed([*self.overlay.brokers, *self.joined])
                raise ScenarioError(f"{place}: there is no broker or client {name!r} ({known})")
        if a == b or (a in self.joined and b in self.joined):
            raise ScenarioError(
                f"{place}: {a!r} and {b!r} have no connection: name two brokers, or a client and a broker"
            )


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    if len(known) > 6:
        return f"{known[0]} … {known[-1]}"
    return ", ".join(known) or "there are none"


def _check_clients(scenario: Scenario, names: _Names) -> None:
    for number, client in enumerate(scenario.clients):
        place = f"clients[{number}]"
        names.need_broker(f"{place}.broker", client.broker)
        _not_negative(f"{place}.join_ms", client.join_ms)
        _not_negative(f"{place}.latency_ms", client.latency_ms or 0)
        _not_negative(f"{place}.consume_ms", client.consume_ms)


def _check_replies(scenario: Scenario, names: _Names) -> None:
    subscribes = [action for action in scenario.actions if isinstance(action, SubscribeAction)]
    wanted = {(action.client, action.subscription) for action in subscribes}
    for number, reply in enumerate(scenario.replies):
        place = f"replies[{number}]"
        names.need_client(f"{place}.client", reply.client)
        if reply.subscription is not None and (reply.client, reply.subscription) not in wanted:
            raise ScenarioError(f"{place}.subscription: {reply.client!r} never subscribes as {reply.subscription!r}")
        _check_probability(f"{place}.probability", reply.probability)
        _not_negative(f"{place}.at_most", reply.at_most)
        _not_negative(f"{place}.delay_ms", reply.delay_ms)
        _not_negative(f"{place}.after", reply.after)


# ---- the order in time


def _in_time(rows: Iterable[Any]) -> list[tuple[int, Any]]:
    return sorted(enumerate(rows), key=lambda row: row[1].at_ms)


def _check_actions(scenario: Scenario, names: _Names) -> None:
    calls = _Calls()
    for number, action in enumerate(scenario.actions):
        place = f"actions[{number}]"
        names.need_client(f"{place}.client", action.client)
        _not_negative(f"{place}.at_ms", action.at_ms)
        if action.at_ms < names.joined[action.client]:
            acts = f"{action.client!r} acts at {action.at_ms:g} ms"
            raise ScenarioError(f"{place}.at_ms: {acts}, but joins at {names.joined[action.client]:g} ms")
        if isinstance(action, SubscribeAction | AdvertiseAction):
            _check_filter(f"{place}.filter", action.filter)
        if isinstance(action, PublishAction):
            _not_negative(f"{place}.count", action.count)
            _not_negative(f"{place}.every_ms", action.every_ms)
    for number, action in enumerate(scenario.actions):
        calls.declare(f"actions[{number}]", action)
    for number, action in _in_time(scenario.actions):
        calls.play(f"actions[{number}]", action)


class _Calls:
    """Replays the calls of clients: records which client opens each subscription and advertisement before it
    is closed."""

    def __init__(self) -> None:
        self._declared: dict[tuple[str, str], tuple[str, float]] = {}
        self._closed: dict[tuple[str, str], float] = {}
        self._left: dict[str, float] = {}

    def declare(self, place: str, action: Any) -> None:
        """Record which client opens a subscription or advertisement, and when. A name can be used once."""
        for kind, struct in (("subscription", SubscribeAction), ("advertisement", AdvertiseAction)):
            if isinstance(action, struct):
                name = getattr(action, kind)
                if (kind, name) in self._declared:
                    raise ScenarioError(f"{place}.{kind}: two have the name {name!r}; rename one")
                self._declared[kind, name] = (action.client, action.at_ms)

    def play(self, place: str, action: Any) -> None:
        """Replay the next action."""
        if action.client in self._left:
            acts = f"{action.client!r} acts at {action.at_ms:g} ms"
            raise ScenarioError(f"{place}.at_ms: {acts}, but left at {self._left[action.client]:g} ms")
        if isinstance(action, UnsubscribeAction):
            self._close(place, action, "subscription", action.subscription)
        elif isinstance(action, UnadvertiseAction):
            self._close(place, action, "advertisement", action.advertisement)
        elif isinstance(action, LeaveAction):
            self._left[action.client] = action.at_ms

    def _close(self, place: str, action: Any, kind: str, name: str) -> None:
        client, opened = self._declared.get((kind, name), (None, 0.0))
        if client != action.client:
            raise ScenarioError(f"{place}.{kind}: {action.client!r} has no {kind} {name!r}")
        if action.at_ms < opened:
            raise ScenarioError(f"{place}.at_ms: {name!r} ends at {action.at_ms:g} ms, but starts at {opened:g} ms")
        if (kind, name) in self._closed:
            raise ScenarioError(f"{place}.{kind}: {name!r} has already ended at {self._closed[kind, name]:g} ms")
        self._closed[kind, name] = action.at_ms


def _check_faults(scenario: Scenario, names: _Names) -> None:
    for number, fault in enumerate(scenario.faults):
        place = f"faults[{number}]"
        _not_negative(f"{place}.at_ms", fault.at_ms)
        match fault:
            case Crash() | Restart():
                names.need_broker(f"{place}.broker", fault.broker)
            case Cut() | Heal():
                names.need_pair(f"{place}.between", *fault.between)
            case Suspect() | Trust():
                names.need_pair(f"{place}.observer", fault.observer, fault.target)
            case SetClock():
                names.need_broker(f"{place}.broker", fault.broker)
                _not_negative(f"{place}.ahead_ms", fault.ahead_ms)
                if not -1 < fault.drift < 1:
                    raise ScenarioError(f"{place}.drift: it must be between -1 and 1, but is {fault.drift:g}")
            case Forget():
                names.need_broker(f"{place}.broker", fault.broker)
                names.need_broker(f"{place}.via", fault.via)
            case DeleteEvents():
                names.need_client(f"{place}.publisher", fault.publisher)
                names.need_broker(f"{place}.via", fault.via)
            case Relink():
                for key in ("old", "new"):
                    for name in getattr(fault, key):
                        names.need_broker(f"{place}.{key}", name)
                _not_negative(f"{place}.gap_ms", fault.gap_ms)
    _check_fault_order(scenario)
    _check_relinks(scenario, names.overlay)


def _check_fault_order(scenario: Scenario) -> None:
    """Check that each fault begins before it ends, and ends before it begins again."""
    words = {"crash": ("crashes", "restarts"), "cut": ("is cut", "heals"), "suspect": ("is suspected", "is trusted")}
    begun: dict[tuple[str, ...], float] = {}
    later = {_fault_key(fault): fault.at_ms for fault in scenario.faults if isinstance(fault, Crash | Cut | Suspect)}
    for number, fault in _in_time(scenario.faults):
        if isinstance(fault, Relink | Forget | DeleteEvents | SetClock):
            continue
        key = _fault_key(fault)
        begins, ends = words[key[0]]
        at, who, when = f"faults[{number}].at_ms", "–".join(key[1:]), f"at {fault.at_ms:g} ms"
        if isinstance(fault, Crash | Cut | Suspect):
            if key in begun:
                raise ScenarioError(
                    f"{at}: {who} {begins} {when}, but did so at {begun[key]:g} ms and that has not ended"
                )
            begun[key] = fault.at_ms
        elif key not in begun:
            soon = later.get(key, -1.0) >= fault.at_ms
            other = f"only {begins} at {later[key]:g} ms" if soon else f"never {begins} before"
            raise ScenarioError(f"{at}: {who} {ends} {when}, but {other}")
        else:
            del begun[key]


def _fault_key(fault: Any) -> tuple[str, ...]:
    match fault:
        case Crash() | Restart():
            return ("crash", fault.broker)
        case Cut() | Heal():
            return ("cut", *sorted(fault.between))
    return ("suspect", fault.observer, fault.target)


def _check_relinks(scenario: Scenario, overlay: Overlay) -> None:
    """Check that each relink leaves a tree, and that its brokers are running."""
    for number, sentence in misfits(overlay, scenario.faults).items():
        raise ScenarioError(f"faults[{number}]: {sentence}")
    for number, fault in enumerate(scenario.faults):
        if isinstance(fault, Relink):
            for key, moment in (("old", fault.at_ms), ("new", fault.at_ms + fault.gap_ms)):
                for name in getattr(fault, key):
                    if _is_dead(scenario, name, moment):
                        raise ScenarioError(
                            f"faults[{number}].{key}: {name!r} is down at {moment:g} ms; relink other brokers"
                        )


def _is_dead(scenario: Scenario, broker: str, moment_ms: float) -> bool:
    """Return whether the broker is down at this time, including the times of its crash and its restart."""
    own = [fault for fault in scenario.faults if isinstance(fault, Crash | Restart) and fault.broker == broker]
    changes = sorted(own, key=lambda fault: fault.at_ms)
    before = [fault for fault in changes if fault.at_ms <= moment_ms]
    return bool(before) and (isinstance(before[-1], Crash) or before[-1].at_ms == moment_ms)


def _check_run(scenario: Scenario) -> None:
    run = scenario.run
    _not_negative("run.settle_ms", run.settle_ms)
    _not_negative("run.sample_ms", run.sample_ms)
    last = max((row.at_ms for row in (*scenario.actions, *scenario.faults)), default=0.0)
    if run.until_ms is not None and run.until_ms < last:
        ends = f"the run ends at {run.until_ms:g} ms"
        raise ScenarioError(f"run.until_ms: {ends}, before the last action or fault at {last:g} ms")


# ---- values


def _check_filter(place: str, text: str) -> None:
    try:
        parse(text)
    except FilterError as error:
        raise ScenarioError(f"{place}: {error}") from None


def _check_delay(place: str, delay: Delay) -> None:
    _not_negative(f"{place}.min_ms", delay.min_ms)
    if delay.max_ms < delay.min_ms:
        raise ScenarioError(f"{place}.max_ms: {delay.max_ms:g} is less than min_ms, {delay.min_ms:g}")


def _check_probability(place: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ScenarioError(f"{place}: {value:g} is not a probability; choose a number from 0 to 1")


def _not_negative(place: str, value: float) -> None:
    if value < 0:
        raise ScenarioError(f"{place}: {value:g} is negative")

"""Explains why a protocol does not support a scenario, in a short phrase.

A scenario can be run with a protocol that does not claim to tolerate its faults, to see what happens. In a comparison
that would be unfair, so there it counts as unsupported.
"""

from collections.abc import Iterator

from gapless.errors import ProtocolError, ScenarioError
from gapless.filters import parse
from gapless.filters.syntax import Attribute, Comparison, Literal
from gapless.protocol import ProtocolSpec, convert_options
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import (
    AdvertiseAction,
    Crash,
    Cut,
    Fault,
    Heal,
    PublishAction,
    Relink,
    Restart,
    Scenario,
    SetClock,
    SubscribeAction,
    Suspect,
    Trust,
)  # fmt: skip
from gapless.simulator.scenario_checks import check_scenario

__all__ = ["why_unfit"]

_KINDS: dict[type[Fault], str] = {
    Crash: "crash",
    Restart: "restart",
    Cut: "cut",
    Heal: "cut",
    Suspect: "suspicion",
    Trust: "suspicion",
    Relink: "relink",
    SetClock: "clock",
}


def why_unfit(scenario: Scenario, spec: ProtocolSpec) -> str | None:
    """Return why the protocol does not support the scenario, or None if it does. The options are taken
    from the scenario.
    """
    beyond = [kind for kind in _faults(scenario) if kind not in spec.copes_with]
    if beyond:
        return f"does not claim to tolerate {_listed(beyond)}"
    if spec.topics_only and not all(map(_is_topic, _filters(scenario))):
        return "supports only topics, but the scenario has other filters"
    if spec.topics_only and not all(isinstance(topic, str) for topic in _topics(scenario)):
        return "supports only topics, but the scenario has events without one"
    try:
        options = convert_options(spec, scenario.protocol.options)
        reason = spec.refuses(overlay_of(scenario.network), scenario.network.f, options)
        if reason is None:
            check_scenario(scenario, spec)
    except ProtocolError as error:
        return f"protocol.options: {error}"
    except ScenarioError as error:
        return str(error)
    return reason


def _faults(scenario: Scenario) -> list[str]:
    """Return the kinds of faults that occur in the scenario."""
    kinds = [_KINDS[type(fault)] for fault in scenario.faults]
    kinds += [kind for kind in ("loss", "duplication") if getattr(scenario.network, kind)]
    return list(dict.fromkeys(kinds))


def _filters(scenario: Scenario) -> Iterator[str]:
    return (action.filter for action in scenario.actions if isinstance(action, SubscribeAction | AdvertiseAction))


def _topics(scenario: Scenario) -> Iterator[object]:
    published = (action.attributes for action in scenario.actions if isinstance(action, PublishAction))
    return (attributes.get("topic") for attributes in [*published, *(reply.attributes for reply in scenario.replies)])


def _is_topic(text: str) -> bool:
    match parse(text).condition:
        case Comparison("=", Attribute("topic"), Literal(str())) | Comparison("=", Literal(str()), Attribute("topic")):
            return True
    return False


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""Validates the durable subscriptions of a scenario."""

from gapless.errors import ScenarioError
from gapless.protocol import ProtocolSpec
from gapless.simulator.scenario import (
    AckAction,
    AckEachAction,
    InProgressAction,
    NackAction,
    Scenario,
    SubscribeAction,
)

__all__ = ["check_names"]


def check_names(scenario: Scenario, spec: ProtocolSpec) -> None:
    """Raise a `ScenarioError` if the scenario's durable subscriptions are invalid."""
    manual = {}
    for number, action in enumerate(scenario.actions):
        place = f"actions[{number}]"
        if not isinstance(action, SubscribeAction):
            continue
        if action.name and not spec.keeps_names:
            raise ScenarioError(f"{place}.name: protocol {spec.name!r} has no durable subscriptions; leave it out")
        if action.name and (action.since_ms >= 0 or action.until_ms):
            raise ScenarioError(
                f"{place}.name: {action.name!r} continues after the acknowledged events; leave out since_ms"
            )
        if not action.name and (action.ack != "auto" or action.replace):
            raise ScenarioError(f"{place}: only a durable subscription is acknowledged or replaced; give it a name")
        if not action.name and action.group:
            raise ScenarioError(f"{place}.group: only a durable subscription is shared by a group; give it a name")
        if action.max_deliveries < 0 or (action.max_deliveries and not action.name):
            raise ScenarioError(f"{place}.max_deliveries: only a durable subscription has it; leave it out")
        if action.redeliver_s <= 0:
            raise ScenarioError(f"{place}.redeliver_s: {action.redeliver_s:g} is not more than 0")
        if action.name and action.ack == "manual":
            manual[action.client, action.subscription] = action
    for number, action in enumerate(scenario.actions):
        if not isinstance(action, AckAction | AckEachAction | NackAction | InProgressAction):
            continue
        if (action.client, action.subscription) not in manual:
            raise ScenarioError(
                f"actions[{number}].subscription: {action.client!r} has no durable subscription "
                f'{action.subscription!r} with ack = "manual"'
            )

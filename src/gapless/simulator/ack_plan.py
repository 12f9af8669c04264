"""Adds acknowledgements of single events, negative acknowledgements and dead letters to random scenarios. It has a
random generator of its own, so that the rest of a run is unchanged.
"""

import random
from collections.abc import Iterable

import msgspec

from gapless.simulator.scenario import AckAction, AckEachAction, Action, InProgressAction, NackAction, SubscribeAction

__all__ = ["draw_single_acks"]

WITH_SINGLE_ACKS = 0.4
"""The fraction of runs in which not all acknowledgements are cumulative."""


def draw_single_acks(seed: int, actions: Iterable[Action]) -> list[Action]:
    """Return the actions with changes in some runs: some actions acknowledge one event, or call `nack`, instead of
    acknowledging all, and some durable subscriptions have a maximum of deliveries.
    """
    rng = random.Random(f"{seed}/single acknowledgements")
    if rng.random() > WITH_SINGLE_ACKS:
        return list(actions)
    return [_changed(rng, action) for action in actions]


def _changed(rng: random.Random, action: Action) -> Action:
    match action:
        case SubscribeAction() if action.name and action.ack == "manual" and rng.random() < 0.4:
            return msgspec.structs.replace(action, max_deliveries=rng.choice([1, 2, 3]))
        case AckAction(at_ms, client, subscription):
            given_back = NackAction(at_ms, client, subscription, rng.choice([0.0, 10.0, 1_000.0]))
            each = AckEachAction(at_ms, client, subscription)
            extended = InProgressAction(at_ms, client, subscription)
            choices: list[Action] = [action, each, each, extended, given_back]
            return rng.choice(choices)
    return action

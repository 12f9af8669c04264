"""Chooses the broker and the time of a fault so that it affects an operation in progress.

An operation is a call of a client: it travels from the client's broker to brokers of other clients,
and its answer travels back. A fault hits a broker on that path, between the call and the time at
which the slowest answer can be back. Calls that change the state of brokers (subscribe, advertise
and their opposites) are chosen more often than publications, since there are fewer of them.
"""

import random
from collections.abc import Sequence

from gapless.overlay import Overlay
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    PublishAction,
    SubscribeAction,
    UnadvertiseAction,
    UnsubscribeAction,
)

__all__ = ["Operation", "draw_target", "operations_of"]

Operation = tuple[float, str, float]
"""The time of a call, the broker that receives it, and the weight with which it is chosen."""

_WEIGHTS: dict[type[Action], float] = {
    SubscribeAction: 4.0,
    AdvertiseAction: 4.0,
    UnsubscribeAction: 2.0,
    UnadvertiseAction: 2.0,
    PublishAction: 0.2,
}


def operations_of(actions: Sequence[Action], clients: Sequence[Client]) -> tuple[Operation, ...]:
    """Return the calls that a crash can affect."""
    at = {client.name: client.broker for client in clients}
    return tuple(
        (action.at_ms, at[action.client], _WEIGHTS[type(action)]) for action in actions if type(action) in _WEIGHTS
    )


def draw_target(
    dice: random.Random, tree: Overlay, operations: Sequence[Operation], places: Sequence[str], hop_ms: float
) -> tuple[str, float]:
    """Return a broker on the path of an operation, and a time at which the operation is not answered yet.

    `places` are the brokers with clients, `hop_ms` the latency of the slowest link.
    """
    [(at_ms, asked, _)] = dice.choices(operations, [weight for *_, weight in operations])
    path = tree.path(asked, dice.choice(places))
    broker = dice.choice((path[0], path[-1], dice.choice(path)))
    return broker, round(at_ms + dice.random() * 2 * max(1, len(path) - 1) * hop_ms, 3)

"""Adds shared subscriptions to random scenarios, with a random generator of its own, so that the rest of a run is
unchanged.

Members come and go. The first one stays, and acknowledges its deliveries: the unfinished work of a group without
members or acknowledgements is not an error. Some of the others acknowledge by separate actions, or never: their
deliveries are redelivered.
"""

import random

from gapless.simulator.scenario import AckAction, Action, Client, MoveAction, SubscribeAction, UnsubscribeAction

__all__ = ["GROUP_MS", "draw_group", "draw_misfits", "draw_moves"]

WITH_GROUP = 0.15
"""The fraction of runs with a group."""
WITH_MOVES = 0.2
"""The fraction of runs with durable subscriptions in which some are moved or deleted."""
WITH_MISFITS = 0.3
"""The fraction of runs with durable subscriptions in which a client attaches with contradicting options."""
GROUP_MS = 45_000.0
"""The additional time for a run to settle, until disconnected members have expired and their deliveries are
redelivered."""


def draw_group(seed: int, clients: list[Client], end_ms: float, filters: list[str]) -> list[Action]:
    """Return the actions of clients in a group; mostly none."""
    rng = random.Random(f"{seed}/groups")
    if rng.random() > WITH_GROUP or len(clients) < 2:
        return []
    text, redeliver_s = rng.choice(filters), rng.choice([3.0, 10.0, 30.0])
    found: list[Action] = []
    members = rng.sample(clients, rng.randint(2, min(4, len(clients))))
    for number, member in enumerate(members):
        begin_ms = max(member.join_ms, rng.uniform(0, end_ms / 2))
        subscription = f"g.{number}"
        is_manual = rng.random() < 0.3 and number > 0
        found.append(
            SubscribeAction(
                round(begin_ms, 3), member.name, subscription, text, name="group",
                ack="manual" if is_manual else "auto", group=True, redeliver_s=redeliver_s,
            )
        )  # fmt: skip
        for _ in range(rng.randint(0, 4) if is_manual else 0):
            at_ms = rng.uniform(begin_ms, end_ms)
            found.append(AckAction(round(max(begin_ms, at_ms), 3), member.name, subscription))
        if number and rng.random() < 0.4:
            leave_ms = begin_ms + rng.choice([5.0, 100.0, end_ms / 3]) * rng.uniform(0.2, 1)
            found.append(UnsubscribeAction(round(leave_ms, 3), member.name, subscription))
    return found


def _attaching(actions: list[Action]) -> list[SubscribeAction]:
    return [action for action in actions if isinstance(action, SubscribeAction) and action.name]


def draw_misfits(seed: int, actions: list[Action], clients: list[Client], end_ms: float) -> list[Action]:
    """Return actions of clients that attach to a durable subscription with another filter, or as a group although no
    group shares it. They are refused, unless they are the first.
    """
    rng = random.Random(f"{seed}/misfits")
    attaching = _attaching(actions)
    if not attaching or rng.random() > WITH_MISFITS:
        return []
    found: list[Action] = []
    for number in range(rng.randint(1, 3)):
        fitting, member = rng.choice(attaching), rng.choice(clients)
        is_other = rng.random() < 0.5
        at_ms = max(member.join_ms, rng.uniform(fitting.at_ms, end_ms))
        found.append(
            SubscribeAction(
                round(at_ms, 3), member.name, f"m.{number}", "misfit = 1" if is_other else fitting.filter,
                name=fitting.name, group=fitting.group is is_other, redeliver_s=fitting.redeliver_s,
            )
        )  # fmt: skip
    return found


def draw_moves(seed: int, actions: list[Action], clients: list[Client], end_ms: float) -> list[Action]:
    """Return actions of clients that move durable subscriptions to the beginning of history, or delete them."""
    rng = random.Random(f"{seed}/moves")
    attaching = _attaching(actions)
    if not attaching or rng.random() > WITH_MOVES:
        return []
    found: list[Action] = []
    for _ in range(rng.randint(1, 3)):
        one, client = rng.choice(attaching), rng.choice(clients)
        at_ms = max(client.join_ms, rng.uniform(one.at_ms, end_ms))
        found.append(
            MoveAction(round(at_ms, 3), client.name, one.name, one.filter, rng.choice(["earliest", "nowhere"]))
        )
    return found

"""Durable subscriptions that a group shares, in random scenarios. With dice of its own, so that the rest of a run stays
as it is.

Members come and go. The first stays, and confirms what it takes: what a group has left undone that all have left, or in
which nobody confirms anything, is nobody's fault. Some of the others confirm when they are told to, or never: what they
have is given to others.
"""

import random

from gapless.simulator.scenario import AckAction, Action, Client, SubscribeAction, UnsubscribeAction

__all__ = ["GROUP_MS", "draw_group"]

WITH_GROUP = 0.15
"""The share of runs with a group."""
GROUP_MS = 45_000.0
"""How much longer a run takes to come to rest: until those who are out of sight are given up, and what they had is
given to others."""


def draw_group(seed: int, clients: list[Client], end_ms: float, filters: list[str]) -> list[Action]:
    """What clients do with a group; mostly nothing."""
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

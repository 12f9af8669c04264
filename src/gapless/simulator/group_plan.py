"""Shared subscriptions in random scenarios, with their own random generator, so that the rest of a
run is unchanged.

Members come and go. The first one stays, and acknowledges its deliveries: the unfinished work of a
group without members or acknowledgements is not an error. Some of the others acknowledge when they
are told to, or never: their deliveries are redelivered.
"""

import random

from gapless.simulator.scenario import AckAction, Action, Client, SubscribeAction, UnsubscribeAction

__all__ = ["GROUP_MS", "draw_group"]

WITH_GROUP = 0.15
"""The fraction of runs with a group."""
GROUP_MS = 45_000.0
"""The additional time for a run to settle: until disconnected members have expired, and their
deliveries are redelivered.
"""


def draw_group(seed: int, clients: list[Client], end_ms: float, filters: list[str]) -> list[Action]:
    """Return the clients' actions with a group; mostly none."""
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

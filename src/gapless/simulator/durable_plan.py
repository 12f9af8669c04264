"""Adds durable subscriptions to random scenarios, with a random generator of its own, so that the rest of a run is
unchanged.

Clients attach one after the other. The next one attaches after the previous one has left, or takes over while it is
attached. Some acknowledge automatically, some by separate actions.
"""

import random

from gapless.simulator.scenario import AckAction, Action, Client, SubscribeAction, UnsubscribeAction

__all__ = ["draw_names"]

WITH_NAMES = 0.25
"""The fraction of runs with durable subscriptions."""


def draw_names(seed: int, clients: list[Client], end_ms: float, filters: list[str]) -> list[Action]:
    """Return the actions of clients with durable subscriptions; mostly none."""
    rng = random.Random(f"{seed}/names")
    if rng.random() > WITH_NAMES or len(clients) < 2:
        return []
    found: list[Action] = []
    for number in range(rng.choice([1, 1, 2])):
        found += _draw_name(rng, f"n{number}", clients, end_ms, rng.choice(filters))
    return found


def _draw_name(rng: random.Random, name: str, clients: list[Client], end_ms: float, text: str) -> list[Action]:
    found: list[Action] = []
    begin_ms = rng.uniform(0, end_ms / 3)
    before = ""
    for turn in range(rng.randint(2, 4)):
        there = [client.name for client in clients if client.join_ms <= begin_ms and client.name != before]
        if not there:
            break
        client = rng.choice(there)
        length_ms = rng.choice([5.0, 100.0, end_ms / 3]) * rng.uniform(0.2, 1)
        subscription = f"{name}.{turn}"
        is_manual = rng.random() < 0.4
        found.append(
            SubscribeAction(
                round(begin_ms, 3), client, subscription, text, name=name, ack="manual" if is_manual else "auto"
            )
        )
        for _ in range(rng.randint(0, 4) if is_manual else 0):
            found.append(AckAction(_moment(rng, begin_ms, begin_ms + 2 * length_ms), client, subscription))
        before = client
        if rng.random() < 0.5:
            found.append(UnsubscribeAction(round(begin_ms + length_ms, 3), client, subscription))
            before = ""
        begin_ms += length_ms * rng.choice([1.0, 1.0, 3.0])
    return found


def _moment(rng: random.Random, least_ms: float, most_ms: float) -> float:
    return round(rng.uniform(least_ms, most_ms), 3)

"""Compares the deliveries of the executable specification (`model/`) with those of the protocol's code.

    python -m trials.agreement --first 0 --runs 1000

Random operations and crashes happen one after the other, each when the network is quiet. Then the specification
allows only one result, and every subscription must get the same events from both. The checkers of each side cover
operations that overlap in time.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from model.search import attempt
from model.world import Operation
from model.world import Scenario as ModelScenario

from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Fault,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
)
from gapless.simulator.scenario_run import run_scenario

from .scopes import PROTOCOL

__all__ = ["Drawn", "by_code", "by_model", "compare", "draw"]

APART = 1_500
"""The time between two operations in the specification; in the code, the same number of milliseconds."""
TOPICS = 3

Got = dict[tuple[str, int], set[tuple[str, int]]]
"""The delivered events (publisher and number), by client and number of its subscription."""


@dataclass(frozen=True)
class Drawn:
    """A random case: a tree, the brokers of clients, and successive operations."""

    parents: tuple[int | None, ...]
    homes: tuple[int, ...]
    operations: tuple[tuple[str, int, tuple[int, ...]], ...]
    """For each operation: its kind, the client or broker, and the topics."""


def draw(seed: int) -> Drawn:
    """Return a case with 3 to 6 brokers, 2 or 3 clients, 6 to 12 operations, and at most one broker that crashes and
    may return.
    """
    dice = random.Random(f"agreement/{seed}")
    count = dice.randint(3, 6)
    parents = tuple(None if number == 0 else dice.randrange(number) for number in range(count))
    homes = tuple(dice.randrange(count) for _ in range(dice.randint(2, 3)))
    operations: list[tuple[str, int, tuple[int, ...]]] = []
    for client in range(len(homes)):
        operations.append(("adv", client, tuple(range(TOPICS))))
    victim, crashed = dice.randrange(count), False
    for _ in range(dice.randint(6, 12)):
        kind = dice.choice(("pub", "pub", "pub", "sub", "sub", "crash"))
        client = dice.randrange(len(homes))
        if kind == "pub":
            operations.append(("pub", client, (dice.randrange(TOPICS),)))
        elif kind == "sub":
            operations.append(("sub", client, tuple(sorted(dice.sample(range(TOPICS), dice.randint(1, TOPICS))))))
        else:
            operations.append(("restart" if crashed else "crash", victim, ()))
            crashed = not crashed
    return Drawn(parents, homes, tuple(operations))


def by_model(drawn: Drawn, seed: int) -> Got:
    """Return the deliveries of the specification."""
    operations: list[Operation] = []
    for number, (kind, who, topics) in enumerate(drawn.operations):
        argument = topics[0] if kind == "pub" else frozenset(topics)
        operations.append((float((number + 1) * APART), kind, who, argument))
    violation, world = attempt(ModelScenario(seed, drawn.parents, 1, drawn.homes, tuple(operations)))
    assert violation is None, violation
    assert world is not None
    numbers: dict[str, int] = {}
    got: Got = {}
    for seen in world.checker.subscriptions.values():
        numbers[seen.client] = numbers.get(seen.client, 0) + 1
        got[seen.client, numbers[seen.client]] = set(seen.got)
    return got


def by_code(drawn: Drawn, seed: int) -> Got:
    """Return the deliveries of the shipped code."""
    actions: list[Action] = []
    faults: list[Fault] = []
    numbers: dict[str, int] = {}
    for number, (kind, who, topics) in enumerate(drawn.operations):
        at, client = float((number + 1) * APART), f"c{who}"
        if kind == "adv":
            actions.append(AdvertiseAction(at, client, f"{client}/a", _filter(topics)))
        elif kind == "sub":
            numbers[client] = numbers.get(client, 0) + 1
            actions.append(SubscribeAction(at, client, f"{client}/{numbers[client]}", _filter(topics)))
        elif kind == "pub":
            actions.append(PublishAction(at, client, {"t": topics[0]}))
        else:
            faults.append(Crash(at, f"b{who}") if kind == "crash" else Restart(at, f"b{who}"))
    edges = tuple((f"b{number}", f"b{parent}") for number, parent in enumerate(drawn.parents) if parent is not None)
    scenario = Scenario(
        network=Network("edges", edges=edges, latency=LatencySpec(ms=2.0)),
        protocol=ProtocolChoice(PROTOCOL),
        run=Run(seed=seed, settle_ms=4_000.0),
        clients=tuple(Client(f"c{number}", f"b{home}") for number, home in enumerate(drawn.homes)),
        actions=tuple(actions),
        faults=tuple(faults),
    )
    trace = run_scenario(scenario, check_invariants=True).trace
    assert trace is not None
    got: Got = {(client, number + 1): set() for client, count in numbers.items() for number in range(count)}
    for row in trace.history:
        if row.subscription_id is not None:
            client, number_text = row.subscription_id.split("/")
            publisher, seq = row.event_id.rsplit(":", 1)
            got[client, int(number_text)].add((publisher, int(seq)))
    return got


def _filter(topics: tuple[int, ...]) -> str:
    return " OR ".join(f"t = {topic}" for topic in topics)


def compare(seed: int) -> str:
    """Return the differences between the two; empty if they agree."""
    drawn = draw(seed)
    model, code = by_model(drawn, seed), by_code(drawn, seed)
    return "" if model == code else f"seed {seed}: {drawn}\n  specification {model}\n  code          {code}"


def main(arguments: Sequence[str]) -> int:
    """Compare the given runs and print the result; return 1 if there is a difference."""
    parser = argparse.ArgumentParser(prog="python -m trials.agreement", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args(arguments)
    differences = [found for seed in range(asked.first, asked.first + asked.runs) if (found := compare(seed))]
    for found in differences:
        print(found)
    print(f"{asked.runs} scenarios, {len(differences)} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

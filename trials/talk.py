"""Runs the workload of `make chaos` in the simulator: more of it in a minute than a real network in an hour.

Clients request, answer and subscribe to various filters for a while. Brokers are killed, paused, or cut off from one
neighbour or all others, one or two neighbours at a time (f = 2), and failure detection is slow.

    python -m trials.talk 0 1000
"""

import os
import random
import sys
from multiprocessing import Pool

from rich.progress import track

from gapless.events import Attributes
from gapless.overlay import from_edges
from gapless.simulator import Outcome, try_scenario
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Delay,
    Fault,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
    UnsubscribeAction,
)

EDGES = (("b0", "b1"), ("b0", "b2"), ("b0", "b3"), ("b3", "b4"), ("b4", "b5"), ("b2", "b6"))
TREE = from_edges(EDGES)
ASKERS, ANSWERERS = 4, 3
UNTIL_MS = 40_000.0
CALM_MS = 6_000.0
"""The time between the last fault and the end."""


class Talk:
    """One random scenario."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._dice = random.Random(seed)
        self._clients: list[Client] = []
        self._actions: list[Action] = []
        self._replies: list[Reply] = []
        self._faults: list[Fault] = []
        self._detection_ms = self._dice.choice([150.0, 1_000.0, 1_500.0, 2_000.0])
        few = self._dice.random() < 0.6
        self._homes = self._dice.sample(TREE.brokers, self._dice.choice([2, 3])) if few else list(TREE.brokers)

    def scenario(self) -> Scenario:
        """Return the complete scenario."""
        for number in range(ASKERS):
            self._ask(number)
        for number in range(ANSWERERS):
            self._answer(number)
        for number in range(self._dice.choice([5, 9])):
            self._observe(number)
        self._hurt()
        detection = Delay(0.6 * self._detection_ms, self._detection_ms)
        slowest_ms = self._dice.choice([1.0, 1.0, 30.0])
        return Scenario(
            network=Network(
                shape="edges", edges=EDGES, f=2, detection=detection,
                latency=LatencySpec(model="jitter", min_ms=0.2, max_ms=slowest_ms),
            ),
            protocol=ProtocolChoice("gapless"),
            name=f"talk-{self._seed}",
            clients=tuple(self._clients),
            actions=tuple(sorted(self._actions, key=lambda action: action.at_ms)),
            replies=tuple(self._replies),
            faults=tuple(sorted(self._faults, key=lambda fault: fault.at_ms)),
            run=Run(seed=self._seed, settle_ms=12_000.0),
        )  # fmt: skip

    # ---- clients ------------------------------------------------------------------------------------------

    def _client(self, name: str) -> str:
        self._clients.append(Client(name, self._dice.choice(self._homes)))
        return name

    def _ask(self, number: int) -> None:
        name = self._client(f"asker{number}")
        offer = f"kind IN ('request', 'settled') AND asker = {number}"
        self._actions.append(AdvertiseAction(50, name, f"{name}/a", offer))
        self._actions.append(SubscribeAction(60, name, f"{name}/s", f"kind = 'answer' AND asker = {number}"))
        settled: Attributes = {"kind": "settled", "asker": number, "serial": 11}
        self._replies.append(Reply(name, settled, f"{name}/s", probability=0.5, at_most=1_000))
        at_ms, serial = 300.0, 0
        while at_ms < UNTIL_MS - 1_500:
            serial += 1
            request: Attributes = {"kind": "request", "asker": number, "serial": serial, "topic": serial % ANSWERERS}
            self._actions.append(PublishAction(at_ms, name, request))
            at_ms += self._dice.expovariate(1 / 300)

    def _answer(self, number: int) -> None:
        name = self._client(f"answerer{number}")
        self._actions.append(AdvertiseAction(50, name, f"{name}/a", f"kind = 'answer' AND answerer = {number}"))
        self._actions.append(SubscribeAction(60, name, f"{name}/s", f"kind = 'request' AND topic = {number}"))
        answer: Attributes = {"kind": "answer", "answerer": number, "asker": self._dice.randrange(ASKERS), "serial": 11}
        self._replies.append(Reply(name, answer, f"{name}/s", at_most=2_000))

    def _observe(self, number: int) -> None:
        name, dice = self._client(f"observer{number}"), self._dice
        filters = ["TRUE", "kind = 'answer'", "kind = 'request' OR answerer = 0", f"asker = {number}", "serial > 10"]
        at_ms, stay_ms, count = dice.uniform(100, 150), dice.choice([150, 600, 3_000]), 1
        while True:
            pattern = "TRUE" if count == 1 else dice.choice(filters)
            self._actions.append(SubscribeAction(at_ms, name, f"{name}/s{count}", pattern))
            at_ms += dice.uniform(0.3, 1.7) * stay_ms
            if at_ms > UNTIL_MS - 1_200:
                return
            self._actions.append(UnsubscribeAction(at_ms, name, f"{name}/s{count}"))
            at_ms += dice.choice([0.1, 2.0, 20.0])
            count += 1

    # ---- faults -------------------------------------------------------------------------------------------

    def _hurt(self) -> None:
        """Inject faults into one or two neighbours, let the network recover, and repeat."""
        dice = self._dice
        at_ms = dice.uniform(800, 2_000)
        while at_ms < UNTIL_MS - CALM_MS:
            first = dice.choice(TREE.brokers)
            victims = [first]
            if dice.random() < 0.67:
                victims.append(dice.choice(TREE.neighbours(first)))
            parted: set[frozenset[str]] = set()
            end_ms = at_ms
            for broker in victims:
                start_ms = at_ms + (0.0 if broker == first else dice.choice([0.0, 0.5, 3.0, 50.0, 300.0, 1_200.0]))
                end_ms = max(end_ms, self._strike(broker, start_ms, parted))
            at_ms = end_ms + dice.uniform(100, 1_500) + self._detection_ms + 900

    def _strike(self, broker: str, at_ms: float, parted: set[frozenset[str]]) -> float:
        """Inject a fault into one broker; return when it is over."""
        dice = self._dice
        kind = dice.choice(["kill", "freeze", "cut", "isolate"])
        end_ms = at_ms + dice.choice([20, 300, 1_200, 2_500, 4_000])
        if kind in ("kill", "freeze"):
            self._faults += [Crash(at_ms, broker), Restart(end_ms, broker, kind == "freeze")]
            return end_ms
        others = list(TREE.brokers) if kind == "isolate" else [dice.choice(TREE.neighbours(broker))]
        for other in others:
            pair = frozenset((broker, other))
            if other != broker and pair not in parted:
                parted.add(pair)
                self._faults += [Cut(at_ms, (broker, other)), Heal(end_ms, (broker, other))]
        return end_ms


def attempt(seed: int) -> tuple[int, Outcome]:
    """Run one seed."""
    return seed, try_scenario(Talk(seed).scenario())


def main() -> int:
    """Run the seeds from the first argument up to the second."""
    first, end = int(sys.argv[1]), int(sys.argv[2])
    failed = 0
    with Pool(os.cpu_count()) as pool:
        for seed, outcome in track(pool.imap_unordered(attempt, range(first, end)), total=end - first):
            if outcome.failed:
                failed += 1
                print(f"seed {seed}: {', '.join(outcome.symptoms)} {outcome.summary}")
    print(f"{end - first} runs, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Measures how long a handover occupies its brokers: the longest step, and all steps together.

    python benchmarks/handover.py                      # a minute or two
    python benchmarks/handover.py --quick              # seconds
    python benchmarks/handover.py --events 8000 --subscriptions 1000

Four brokers form a chain; the second one dies and restarts. Each has four publishers, and subscribers with ten
subscriptions each. When it dies, every log holds `--events` events that are not stable, and there are `--subscriptions`
different subscriptions, one of ten with another that covers it. The benchmark measures the processor time of each step
of a broker from the crash on, and the time to encode and decode the largest contribution. It fails if a step takes
longer than `TURN_MS_MAX`.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from gapless.overlay import chain
from gapless.protocol import Advertise, BrokerNode, BrokerPlace, Effect, Input, Publish, Send, Subscribe
from gapless.protocols.gapless.membership_messages import Contribution
from gapless.protocols.gapless.messages import Frame
from gapless.registry import find_protocol
from gapless.simulator import Latency, Settings, Simulation

TURN_MS_MAX = 100.0
CASES = ((8_000, 100), (100, 7_000), (4_000, 2_000))
QUICK = ((500, 100), (100, 500))
BROKERS = 4
EACH = 10
"""The number of subscriptions per client."""
SECOND = 1_000_000


class Meter:
    """Measures the steps of all brokers from a given time on."""

    def __init__(self) -> None:
        self.begins = 0
        self.longest_ms = 0.0
        self.what = ""
        self.total_ms = 0.0
        self.steps = 0
        self.largest: tuple[int, msgspec.Struct | None] = (0, None)

    def note(self, broker: str, item: Input, spent_ms: float, effects: Sequence[Effect]) -> None:
        """Record a step."""
        self.steps += 1
        self.total_ms += spent_ms
        if spent_ms > self.longest_ms:
            self.longest_ms = spent_ms
            input_message = getattr(item, "message", item)
            self.what = f"{broker}: {type(getattr(input_message, 'body', input_message)).__name__}"
        for effect in effects:
            message = effect.message if isinstance(effect, Send) else None
            if isinstance(message, Frame) and isinstance(message.body, Contribution):
                size = len(msgspec.msgpack.encode(message))
                if size > self.largest[0]:
                    self.largest = (size, message)


class Metered(BrokerNode):
    """A broker whose steps are measured."""

    def __init__(self, name: str, node: BrokerNode, meter: Meter) -> None:
        self._name = name
        self._node = node
        self._meter = meter

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Forward the input and measure the step."""
        if now < self._meter.begins:
            return self._node.step(item, now)
        begun = time.thread_time_ns()
        effects = self._node.step(item, now)
        self._meter.note(self._name, item, (time.thread_time_ns() - begun) / 1e6, effects)
        return effects

    def state_size(self) -> Mapping[str, int]:
        """Return the size of the broker's state."""
        return self._node.state_size()


def run(events: int, subscriptions: int) -> Meter:
    """Crash and restart a broker; return the measurements."""
    meter = Meter()
    spec = find_protocol("gapless")

    def make(place: BrokerPlace, options: msgspec.Struct) -> BrokerNode:
        return Metered(place.name, spec.broker(place, options), meter)

    simulation = Simulation(
        chain(BROKERS),
        msgspec.structs.replace(spec, broker=make),
        options={"wave_ms": 1e6},
        settings=Settings(latency=Latency(1_000, 1_000, client_us=100), max_steps=100_000_000),
    )
    names = list(simulation.overlay.brokers)
    for place, name in enumerate(names):
        for number in range(4):
            simulation.add_client(f"publisher {place}.{number}", name)
            simulation.call(f"publisher {place}.{number}", Advertise(f"a{place}.{number}", "x >= 0"), at=SECOND)
    for number in range(0, subscriptions, EACH * BROKERS):
        for place, name in enumerate(names):
            simulation.add_client(f"subscriber {place}.{number}", name)
    for number in range(subscriptions):
        text = f"x = {number}" if number % 10 else f"x BETWEEN {number} AND {number + 1}"
        call = Subscribe(f"s{number}", text)
        client = f"subscriber {number % BROKERS}.{number - number % (EACH * BROKERS)}"
        simulation.call(client, call, at=2 * SECOND + number * 1_000)
    begin = 3 * SECOND + subscriptions * 1_000
    for number in range(events):
        client = f"publisher {number % BROKERS}.{number // BROKERS % 4}"
        simulation.call(client, Publish({"x": number % max(1, subscriptions)}), at=begin + number * 100)
    dead = begin + events * 100 + SECOND
    meter.begins = dead
    simulation.crash(names[1], at=dead)
    simulation.restart(names[1], at=dead + 60 * SECOND)
    gc.collect()
    gc.freeze()
    simulation.run(settle=60 * SECOND)
    return meter


def _timed(action: Callable[[], object]) -> float:
    """Return the best of three times in milliseconds, to exclude garbage collection."""
    spent = []
    for _ in range(3):
        begun = time.thread_time_ns()
        action()
        spent.append(time.thread_time_ns() - begun)
    return min(spent) / 1e6


def main() -> int:
    """Print the figures of each case; return 1 if a step takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--events", type=int)
    parser.add_argument("--subscriptions", type=int, default=100)
    given = parser.parse_args()
    cases: Sequence[tuple[int, int]] = QUICK if given.quick else CASES
    if given.events is not None:
        cases = ((given.events, given.subscriptions),)
    too_long = False
    figures = []
    print(
        "events  subscriptions  longest step  all steps     steps  largest contribution  encode   decode   longest is"
    )
    for events, subscriptions in cases:
        meter = run(events, subscriptions)
        size, message = meter.largest
        data = msgspec.msgpack.encode(message)
        encode = _timed(partial(msgspec.msgpack.encode, message))
        decode = _timed(partial(msgspec.msgpack.decode, data, type=type(message)))
        print(
            f"{events:6} {subscriptions:14} {meter.longest_ms:10.1f} ms {meter.total_ms:7.0f} ms {meter.steps:9}"
            f" {size / 1024:17.0f} KiB {encode:5.1f} ms {decode:5.1f} ms   {meter.what}",
            flush=True,
        )
        too_long |= meter.longest_ms > TURN_MS_MAX
        figures.append(
            {
                "events": events,
                "subscriptions": subscriptions,
                "longest_ms": meter.longest_ms,
                "total_ms": meter.total_ms,
                "largest_bytes": size,
            }
        )
    if given.out:
        given.out.write_text(json.dumps(figures))
    return int(too_long)


if __name__ == "__main__":
    sys.exit(main())

"""A history read begins exactly after an event, and ends at one, even within a batch of events published together."""

from itertools import product

import pytest

from gapless.checkers import check
from gapless.event_runs import EventTable
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.protocol import NEWEST, Advertise, PublishMany, Subscribe
from gapless.registry import find_protocol
from gapless.simulator import Simulation
from gapless.trace import Recorder

SECOND = 1_000_000
TEXT = "TRUE"


class Noting(Recorder):
    def __init__(self) -> None:
        super().__init__(run="r", protocol="gapless", guarantee="gcd", scenario="since", seed=0, brokers=5, f=1)
        self.came: dict[str, list[Event]] = {}

    def deliver(
        self, client: str, event: Event, subscription_id: str, now_us: int, *, redelivered: bool = False
    ) -> None:
        super().deliver(client, event, subscription_id, now_us, redelivered=redelivered)
        self.came.setdefault(subscription_id, []).append(event)


def run(crashes: tuple[str, ...] = ()) -> dict[str, list[Event]]:
    recorder = Noting()
    simulation = Simulation(chain(5), find_protocol("gapless"), recorder=recorder, f=1)
    for publisher, broker in (("ann", "b1"), ("bob", "b2")):
        simulation.add_client(publisher, broker)
        simulation.call(publisher, Advertise(f"{publisher}/a", TEXT), at=0)
        for second in (1, 2, 9):
            run = PublishMany(EventTable.of([{"at": second}] * 10, [b""] * 10))
            simulation.call(publisher, run, at=second * SECOND)
    simulation.add_client("live", "b4")
    simulation.call("live", Subscribe("live/s", TEXT), at=SECOND // 2)
    simulation.add_client("cat", "b4")
    simulation.add_client("dan", "b3")

    def begin() -> None:
        places = sorted(event.position for event in recorder.came["live/s"])
        for since in (0, 4, 9, 14, 23, 39):
            simulation.call("cat", Subscribe(f"cat/{since}", TEXT, since=places[since]), at=5 * SECOND)
        for since, until in product((2, 13), (7, 17, 25)):
            span = Subscribe(f"dan/{since}-{until}", TEXT, since=places[since], until=places[until])
            if since < until:
                simulation.call("dan", span, at=5 * SECOND)
        now = Subscribe("dan/18-now", TEXT, since=places[18], until=NEWEST)
        simulation.call("dan", now, at=5 * SECOND)

    simulation.event_queue.call(4 * SECOND, begin)
    for broker in crashes:
        simulation.crash(broker, at=5 * SECOND + 1_000)
        simulation.restart(broker, at=7 * SECOND)
    result = simulation.run(settle=20 * SECOND)
    assert result.trace is not None
    verdict = check(result.trace)
    assert (verdict.status, verdict.anomalies, result.trace.skipped) == ("valid", (), [])
    return recorder.came


@pytest.mark.parametrize("crashes", [(), ("b4",), ("b3", "b0")])
def test_exactly_the_events_after_an_event_are_delivered_once(crashes: tuple[str, ...]) -> None:
    came = run(crashes)
    everything = sorted(came["live/s"], key=lambda event: event.position)
    assert len(everything) == 60
    assert len({event.stamp for event in everything[:20]}) < 20, "they were published together"
    for name, events in came.items():
        since, _, until = name.partition("/")[2].partition("-")
        if name == "live/s":
            continue
        last = 39 if until == "now" else int(until or 59)
        assert sorted(event.id for event in events) == sorted(e.id for e in everything[int(since) + 1 : last + 1]), name


def test_every_position_is_before_the_newest() -> None:
    assert Position.after(NEWEST.timestamp - 1, "z", 1) < NEWEST

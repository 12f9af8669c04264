"""Stamps follow causality, and a final position stays as it is, whatever fails."""

from typing import Any

import pytest

from gapless.events import Event
from gapless.protocol import Deliver, DeliverMany, Published, PublishedMany
from gapless.protocols.gapless.client import GaplessClient
from gapless.protocols.gapless.messages import Wave
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.parts.clock import Clock
from gapless.simulator import generate, run_scenario

SEEDS = range(12)


class Watch:
    """Sees what brokers admit and call final, and what clients publish and are delivered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.final = 0
        self.admitted: dict[tuple[str, int, int], None] = {}
        self.late: list[str] = []
        self.stamps: dict[str, set[int]] = {}
        self.causes: dict[str, int] = {}
        """By event: the largest stamp of what its publisher had been delivered."""
        admit, begin, step = Journal.admit, Waves.begin, GaplessClient.step

        def watched_admit(journal: Journal, events: list[Event], *rest: Any) -> int:
            for event in events:
                key = (event.publisher, event.seq, event.stamp)
                if key not in self.admitted and event.stamp <= self.final:
                    self.late.append(f"{event.id} at {event.stamp} after {self.final} was final")
                self.admitted[key] = None
            return admit(journal, events, *rest)

        def watched_begin(waves: Waves, wave: Wave, *rest: Any) -> bool:
            self.final = max(self.final, wave.final)
            return begin(waves, wave, *rest)

        seen: dict[int, int] = {}

        def watched_step(client: GaplessClient, item: Any, now: int) -> Any:
            effects = step(client, item, now)
            for effect in effects:
                events = effect.events if isinstance(effect, DeliverMany | PublishedMany) else ()
                if isinstance(effect, Deliver | Published):
                    events = [effect.event]
                for event in events:
                    if isinstance(effect, Deliver | DeliverMany):
                        self.stamps.setdefault(event.id, set()).add(event.stamp)
                        seen[id(client)] = max(seen.get(id(client), 0), event.stamp)
                    else:
                        self.causes[event.id] = seen.get(id(client), 0)
            return effects

        monkeypatch.setattr(Journal, "admit", watched_admit)
        monkeypatch.setattr(Waves, "begin", watched_begin)
        monkeypatch.setattr(GaplessClient, "step", watched_step)


@pytest.mark.parametrize("faults", ["none", "crash", "all"])
def test_in_random_runs(faults: str, monkeypatch: pytest.MonkeyPatch) -> None:
    finals = 0
    for seed in SEEDS:
        with monkeypatch.context() as patch:
            watch = Watch(patch)
            run_scenario(generate(seed, "gapless", faults))
        assert not watch.late, f"seed {seed}: {watch.late[0]}"
        assert all(len(stamps) == 1 and 0 not in stamps for stamps in watch.stamps.values()), seed
        for event, cause in watch.causes.items():
            assert min(watch.stamps.get(event, {cause + 1})) > cause, f"seed {seed}: {event}"
        finals += watch.final > 0
    assert finals > len(SEEDS) / 2


def test_a_clock_runs_ahead_of_all_that_it_has_seen() -> None:
    clock = Clock()
    clock.now = 10
    assert clock.next() == 10
    assert clock.next() == 11
    clock.see(50)
    assert clock.next() == 51
    clock.now = 100
    clock.see(60)
    assert clock.next() == 100

"""Subscriptions that read history: their required cuts, and the losses reported to them."""

import pytest

from gapless.checkers import check
from gapless.events import Event
from gapless.positions import Position
from gapless.protocol import NEWEST
from gapless.trace import Recorder


def recorder() -> Recorder:
    """Record a run in which ann publishes 1 to 5 at 10, 20, 30, 40, 50 µs, and cat gets them all; they are admitted 5
    µs after publication."""
    found = Recorder(run="r", protocol="gapless", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    found.subscribe("cat", "all", "TRUE", 0, ready="whole")
    found.fix_cut("all", "ann", 1)
    found.activate("all", 0)
    for seq in range(1, 6):
        found.publish("ann", event(seq), 10 * seq)
        found.deliver("cat", event(seq), "all", 10 * seq + 7)
        found.confirm("ann", seq, 10 * seq + 6)
    return found


def event(seq: int) -> Event:
    return Event("ann", seq, {"x": seq}, b"", 10 * seq + 5)


def read(found: Recorder, since: int, until: int, got: tuple[int, ...], *, is_complete: bool = True) -> str:
    end = None if not until else NEWEST if until < 0 else Position.at(until)
    found.subscribe("bob", "s", "TRUE", 60, ready="whole", since=Position.at(since), until=end)
    found.activate("s", 61)
    for seq in got:
        found.deliver("bob", event(seq), "s", 70 + seq)
    if until:
        found.end("s", {"ann": max(got, default=0)}, 90, is_complete=is_complete)
    verdict = check(found.finish(quiesced=True))
    return verdict.status if verdict.status == "valid" else f"{verdict.anomalies[0].kind} {verdict.anomalies[0].event}"


@pytest.mark.parametrize(
    ("since", "got", "verdict"),
    [
        (0, (1, 2, 3, 4, 5), "valid"),
        (25, (3, 4, 5), "valid"),
        (24, (2, 3, 4, 5), "valid"),
        (25, (2, 3, 4, 5), "spurious ann:2"),
        (25, (4, 5), "gap ann:3"),
        (25, (3, 4), "unobserved ann:5"),
        (25, (3, 5, 4), "fifo-inversion ann:4"),
        (25, (3, 4, 4, 5), "duplicate ann:4"),
    ],
)
def test_reading_from_a_position_gives_all_larger_timestamps(since: int, got: tuple[int, ...], verdict: str) -> None:
    assert read(recorder(), since, 0, got) == verdict


@pytest.mark.parametrize(
    ("until", "got", "verdict"),
    [
        (45, (1, 2, 3, 4), "valid"),
        (45, (1, 2, 3), "gap ann:4"),
        (45, (1, 2, 3, 4, 5), "spurious ann:5"),
        (-1, (1, 2, 3, 4, 5), "valid"),
        (-1, (1, 2, 3, 4), "gap ann:5"),
    ],
)
def test_reading_up_to_a_position_gives_everything_up_to_it(until: int, got: tuple[int, ...], verdict: str) -> None:
    assert read(recorder(), 0, until, got) == verdict


def test_a_reading_that_its_client_ended_is_due_no_more() -> None:
    assert read(recorder(), 0, 45, (1, 2), is_complete=False) == "valid"


def test_events_reported_as_lost_are_not_missing() -> None:
    found = recorder()
    found.skip("s", {"ann": [(2, 3)]})
    assert read(found, 0, 0, (1, 4, 5)) == "valid"
    found = recorder()
    found.skip("s", {"ann": [(2, 2)]})
    assert read(found, 0, 0, (1, 4, 5)) == "gap ann:3"


def test_events_in_a_skipped_range_are_not_required() -> None:
    found = recorder()
    found.skip("s", {}, (0, 30))
    assert read(found, 0, 0, (3, 4, 5)) == "valid"
    found = recorder()
    found.skip("s", {}, (0, 30))
    assert read(found, 0, 0, (4, 5)) == "gap ann:3"

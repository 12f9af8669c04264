"""The live checker during a run: when it finds anomalies, and which events it keeps."""

import pickle
from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.checkers.live import replay
from gapless.checkers.live.replay import Line
from gapless.events import Event
from gapless.trace import RunRow, merge_parts
from gapless.trace import part_records as records

from .parts import LiveNetwork, lines_of

RUN = RunRow("net", "gapless", "gcd", "net", 0, 3, 1, False, "{}")


class Network:
    def __init__(self, *clients: str) -> None:
        self.judge = LiveNetwork()
        self.now_us = 1_000_000
        self.batch: list[Line] = [(client, records.Opened(RUN, client, "here")) for client in clients]

    def say(self, client: str, record: records.Record) -> None:
        self.batch.append((client, record))

    def subscribe(self, client: str, name: str, text: str = "TRUE", **cuts: int) -> None:
        self.say(client, records.Subscribed(name, text, "first", self._tick()))
        for publisher, first in cuts.items():
            self.say(client, records.CutFixed(name, publisher, first))
        self.say(client, records.Activated(name, self._tick()))

    def publish(self, client: str, seq: int, **attributes: int) -> None:
        self.say(client, records.Published(seq, dict(attributes), self._tick(), self.now_us))
        self.say(client, records.Confirmed(seq))

    def deliver(self, client: str, name: str, publisher: str, *seqs: int) -> None:
        for seq in seqs:
            self.say(client, records.Delivered(publisher, seq, name, self._tick()))

    def read(self) -> set[tuple[str, str | None, str | None]]:
        batch, self.batch = self.batch, []
        self.judge.feed(batch)
        return self.judge.found()

    def _tick(self) -> int:
        self.now_us += 1_000
        return self.now_us


def test_a_gap_is_found_at_once_and_becomes_an_inversion_when_the_event_comes_late() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    for seq in (1, 2, 3):
        network.publish("ann", seq)
    network.deliver("bob", "s", "ann", 1)
    assert network.read() == set()
    assert network.judge.reports["s"].lag == 2
    network.deliver("bob", "s", "ann", 3)
    assert network.read() == {("gap", "s", "ann:2")}
    [gap] = network.judge.reports["s"].anomalies
    assert gap.message == "bob was never delivered ann:2 for s, although it starts at ann:1 and it was delivered ann:3"
    network.deliver("bob", "s", "ann", 2)
    assert network.read() == {("fifo-inversion", "s", "ann:2")}


def test_a_duplicate_is_found_at_once() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    network.publish("ann", 1)
    network.deliver("bob", "s", "ann", 1)
    assert network.read() == set()
    network.deliver("bob", "s", "ann", 1)
    assert network.read() == {("duplicate", "s", "ann:1")}


def test_an_effect_without_its_cause_is_an_inversion_at_once() -> None:
    network = Network("ann", "bob", "eve")
    network.subscribe("bob", "s", ann=1)
    network.subscribe("eve", "t", ann=1, bob=1)
    network.publish("ann", 1)
    network.deliver("bob", "s", "ann", 1)
    network.publish("bob", 1)
    network.deliver("eve", "t", "bob", 1)
    assert network.read() == {("causal-inversion", "t", "ann:1")}


def test_an_effect_before_the_start_of_its_publisher_is_missing() -> None:
    network = Network("ann", "bob", "eve")
    network.subscribe("bob", "s", "kind = 1", ann=1)
    network.publish("ann", 1, kind=1)
    network.deliver("bob", "s", "ann", 1)
    network.publish("bob", 1, kind=2)
    network.subscribe("eve", "t", ann=1, bob=2)
    assert network.read() == set()
    network.deliver("eve", "t", "ann", 1)
    assert network.read() == {("missing-effect", "t", "bob:1")}


def test_a_delivery_read_before_its_publication_is_kept_until_then() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    network.deliver("bob", "s", "ann", 1)
    assert network.read() == set()
    assert network.judge.replay.report().waiting == 1
    network.publish("ann", 1)
    assert network.read() == set()
    assert network.judge.reports["s"].accepted == 1


def test_a_publication_that_is_nowhere_was_never_made() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    network.deliver("bob", "s", "ann", 7)
    for _ in range(replay.PATIENCE):
        assert network.read() == set()
    network.say("ann", records.Closed())
    assert network.read() == {("spurious", "s", "ann:7")}


def test_an_event_that_may_not_have_left_is_not_required() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    network.say("ann", records.Published(1, {}, network.now_us, network.now_us))
    network.read()
    assert network.judge.reports["s"].lag == 0
    network.say("ann", records.Confirmed(1))
    network.read()
    assert network.judge.reports["s"].lag == 1


def test_parts_of_two_networks_are_refused() -> None:
    network = Network("ann")
    other = RunRow("other", "gapless", "gcd", "other", 0, 3, 1, False, "{}")
    network.say("bob", records.Opened(other, "bob", "here"))
    network.judge.feed(network.batch)
    assert "two networks: 'net' and 'other'" in network.judge.replay.report().fault


@pytest.fixture
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "KEPT_MAX", 20)


@pytest.mark.usefixtures("short_memory")
def test_memory_is_bounded_by_the_number_of_open_events() -> None:
    network = Network("ann", "bob", "eve")
    network.subscribe("bob", "s", "kind = 1", ann=1)
    network.subscribe("eve", "t", ann=1, bob=1)
    held, sizes = [], []
    for round_ in range(60):
        for seq in range(10 * round_ + 1, 10 * round_ + 11):
            network.publish("ann", seq, kind=1)
            network.deliver("bob", "s", "ann", seq)
            network.publish("bob", seq)
            network.deliver("eve", "t", "ann", seq)
            network.deliver("eve", "t", "bob", seq)
        assert network.read() == set()
        reports = network.judge.reports
        held.append((network.judge.replay.report().held, sum(report.open for report in reports.values())))
        sizes.append(len(pickle.dumps((network.judge.replay, network.judge.judges))))
    assert max(held) == (40, 0)
    assert sizes[-1] < 1.1 * sizes[len(sizes) // 2]
    verdict = network.judge.verdict(quiesced=False)
    assert (verdict.status, verdict.events, verdict.deliveries) == ("valid", 1_200, 1_800)


@pytest.mark.usefixtures("short_memory")
def test_a_lagging_subscriber_is_checked_like_any_other() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    for seq in range(1, 101):
        network.publish("ann", seq)
    network.read()
    network.read()
    assert network.judge.reports["s"].lag == 100
    network.deliver("bob", "s", "ann", *range(1, 60), *range(61, 101))
    assert network.read() == {("gap", "s", "ann:60")}


@pytest.mark.usefixtures("short_memory")
def test_events_from_too_far_back_are_counted_but_not_checked() -> None:
    network = Network("ann", "bob")
    for seq in range(1, 101):
        network.publish("ann", seq)
    network.read()
    network.subscribe("bob", "s")
    network.deliver("bob", "s", "ann", 1, 2)
    assert network.read() == set()
    assert network.judge.reports["s"].unjudged == 2


def test_the_state_of_a_subscription_that_ended_is_let_go() -> None:
    network = Network("ann", "bob")
    network.subscribe("bob", "s", ann=1)
    for seq in range(1, 6):
        network.publish("ann", seq)
    network.deliver("bob", "s", "ann", 1, 2)
    network.say("bob", records.Ended("s", {"ann": 2}, network.now_us + 1))
    assert network.read() == set()
    assert (network.judge.reports["s"].state, network.judge.reports["s"].open) == ("ended", 0)


def test_the_page_of_the_format_is_checked_as_a_whole_and_live(tmp_path: Path) -> None:
    from gapless.trace import PartRecorder

    ann, bob = (PartRecorder(tmp_path, RUN, name) for name in ("ann", "bob"))
    bob.subscribe("bob/s1", "TRUE", 1_000, ready="whole")
    bob.fix_cut("bob/s1", "ann", 1)
    bob.activate("bob/s1", 2_000)
    for seq in (1, 2):
        ann.publish(Event("ann", seq, {}), 3_000)
        bob.deliver(Event("ann", seq, {}), "bob/s1", 4_000)
    ann.close()
    bob.close()
    judge = LiveNetwork()
    judge.feed([line for lines in lines_of(tmp_path).values() for line in lines])
    live, whole = judge.verdict(quiesced=True), check(merge_parts(tmp_path, quiesced=True))
    assert live == whole

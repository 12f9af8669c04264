"""Runs of the model as the parts that clients would write, and the live checker's verdict on them."""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from gapless.checkers import Verdict
from gapless.checkers.live import LiveChecker, Replay, SubscriptionReport, sum_up
from gapless.checkers.live.replay import Line
from gapless.trace import PartRecorder, RunRow
from gapless.trace.part import read_part
from tests.checkers.model import US_PER_CALL, Run

START_US = 1_000_000


def write_parts(run: Run, directory: Path, *, close: bool = True) -> list[str]:
    """Write each client's part of the run; return the writer of each record, in order."""
    row = RunRow("model", "model", run.guarantee, "toy", 0, 1, 0, False, "{}")
    publishers = {call.happening.publisher for call in run.calls if call.kind == "deliver"}
    clients = sorted({call.client for call in run.calls} | publishers)
    parts = {client: PartRecorder(directory, row, client) for client in clients}
    written = list(clients)
    for place, call in enumerate(run.calls):
        if call.kind != "see":
            written.append(call.client)
        part, now_us = parts[call.client], START_US + place * US_PER_CALL
        match call.kind:
            case "subscribe":
                part.subscribe(call.subscription, call.text, now_us, ready=call.ready)
            case "activate":
                part.activate(call.subscription, now_us)
            case "cut":
                part.fix_cut(call.subscription, call.publisher, call.from_seq)
            case "publish":
                part.publish(call.happening, now_us)
            case "deliver":
                part.deliver(call.happening, call.subscription, now_us)
            case "end":
                part.end(call.subscription, dict(call.last_seq), now_us)
            case "see":
                pass
    for part in parts.values():
        part.close() if close else part.flush()
    return [*written, *clients] if close else written


def lines_of(directory: Path) -> dict[str, list[Line]]:
    return {path.stem: [(path.stem, record) for record in read_part(path)] for path in (directory / "parts").iterdir()}


class LiveNetwork:
    """Runs the live checker without Spark."""

    def __init__(self) -> None:
        self.replay = Replay()
        self.judges: dict[str, LiveChecker] = {}
        self.reports: dict[str, SubscriptionReport] = {}

    def feed(self, lines: Sequence[Line]) -> None:
        reported = set()
        for name, fact in self.replay.feed(lines):
            self.judges.setdefault(name, LiveChecker(name)).take(fact)
            reported.add(name)
        for name in reported:
            self.reports[name] = self.judges[name].report()

    def verdict(self, *, quiesced: bool) -> Verdict:
        return sum_up(self.replay.report(), self.reports.values(), quiesced=quiesced)

    def found(self) -> set[tuple[str, str | None, str | None]]:
        verdict = self.verdict(quiesced=False)
        return {(each.kind, each.subscription, each.event) for each in verdict.anomalies}


def batches(directory: Path, written: Sequence[str], seed: int) -> Iterator[list[Line]]:
    """Yield the growing parts in batches, each one read a moment later than the previous one; then three
    empty batches."""
    draw = random.Random(seed)
    lines = {part: deque(found) for part, found in lines_of(directory).items()}
    places: dict[str, deque[int]] = {part: deque() for part in lines}
    for place, client in enumerate(written):
        places[client].append(place)
    end = 0
    while any(lines.values()):
        begin, end = end, end + draw.choice([1, 5, 20])
        batch = []
        for part in draw.sample(sorted(lines), len(lines)):
            begin = draw.randint(begin, end)
            while places[part] and places[part][0] < begin:
                places[part].popleft()
                batch.append(lines[part].popleft())
        yield batch
    yield from ([], [], [])


def judged(directory: Path, written: Sequence[str], seed: int, *, quiesced: bool) -> Verdict:
    live = LiveNetwork()
    for batch in batches(directory, written, seed):
        live.feed(batch)
    return live.verdict(quiesced=quiesced)

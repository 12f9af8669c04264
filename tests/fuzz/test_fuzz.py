"""A short run of `make fuzz` with fixed inputs, and a check that it finds defects."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.loop import LONG_S, Finding, Summary, fuzz, judge
from tests.fuzz.target import Target, Unexpected
from tests.fuzz.targets import TARGETS, name_of

INPUTS = {
    "filters": 500,
    "network-files": 1_000,
    "http": 1_000,
    "connections": 1_000,
    "sessions": 150,
    "disk-files": 800,
}
KEPT = Path(__file__).parent / "kept"


@pytest.mark.parametrize("name", TARGETS)
def test_rubbish_is_refused_with_a_sentence_or_taken_for_what_it_is(name: str) -> None:
    target = TARGETS[name]()
    summary = fuzz(target, seed=1, inputs=INPUTS.get(name, 3_000))
    target.close()
    wrong = [finding for finding in summary.findings if finding.kind != "slow"]
    assert not wrong, f"{wrong[0].text}\n{wrong[0].data!r}"
    assert not any("without a reason" in outcome for outcome in summary.outcomes)
    assert len(summary.outcomes) > 1, "what is drawn is neither all good nor all bad"


@pytest.mark.parametrize("path", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_findings_are_fixed(path: Path) -> None:
    name = name_of(path)
    assert name is not None
    target = TARGETS[name]()
    finding = judge(target, path.read_bytes(), Summary(name))
    target.close()
    assert finding is None, finding.text


class _Faulty(Target):
    name = "faulty"
    about = "a target that is wrong"

    def draw(self, dice: Random) -> bytes:
        return bytes(dice.choice(b"ABQ"[: 2 + (dice.random() < 0.01)]) for _ in range(5))

    def change(self, data: bytes, dice: Random) -> bytes:
        return data

    def run(self, data: bytes) -> str:
        if b"Q" in data:
            raise Unexpected("a Q")
        if b"Z" in data:
            end = time.process_time() + 2 * LONG_S
            while time.process_time() < end:
                pass
        return "taken"


def test_an_exception_is_found_once_for_each_place_and_saved(tmp_path: Path) -> None:
    summary = fuzz(_Faulty(), seed=1, inputs=2_000)
    [finding] = summary.findings
    assert finding.kind == "Unexpected"
    assert b"Q" in finding.data
    path = finding.save(tmp_path, "faulty")
    assert path.read_bytes() == finding.data
    assert "a Q" in path.with_suffix(".txt").read_text()


def test_an_input_that_takes_too_long_is_found() -> None:
    finding = judge(_Faulty(), b"Z", Summary("faulty"))
    assert isinstance(finding, Finding)
    assert finding.kind == "slow"


def test_the_same_seed_draws_the_same_inputs() -> None:
    drawn = []
    for _ in range(2):
        target, seen = _Faulty(), list[bytes]()
        target.run = lambda data, seen=seen: seen.append(data) or "taken"  # type: ignore[method-assign, misc]
        fuzz(target, seed=7, inputs=300)
        drawn.append(seen)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 10

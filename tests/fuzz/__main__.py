"""The command behind `make fuzz`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.loop import Summary, fuzz, judge
from tests.fuzz.tally import Tally
from tests.fuzz.targets import TARGETS, name_of

SAVED = Path("out/fuzz")
CORPUS = SAVED / "corpus"
TALLY = SAVED / "tally.json"


def main() -> int:
    given = _arguments()
    if given.tally:
        print(Tally(TALLY).text())
        return 0
    if given.again:
        return _again(given.again)
    names = given.target or list(TARGETS)
    if given.guided:
        return max(_guided(name, 60 * given.minutes / len(names)) for name in names)
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    print(f"seed {seed}: {', '.join(names)}", flush=True)
    summaries = [_fuzz(name, seed, given.inputs, 60 * given.minutes / len(names)) for name in names]
    found = sum(len(summary.findings) for summary in summaries)
    print(f"{sum(summary.inputs for summary in summaries):,} inputs, {found} findings")
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make fuzz", description="Pass malformed input to every parser of outside data."
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together (10)")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="only this one; may be repeated")
    parser.add_argument("--inputs", type=int, help="so many for each target, however long it takes")
    parser.add_argument("--seed", type=int, help="the same inputs again; drawn if it is not given")
    parser.add_argument("--again", type=Path, metavar="FILE", help="one input that was saved")
    parser.add_argument("--tally", action="store_true", help="what all runs here came to together")
    parser.add_argument("--guided", action="store_true", help="let coverage choose what is changed (needs atheris)")
    return parser.parse_args()


def _fuzz(name: str, seed: int, inputs: int | None, seconds: float) -> Summary:
    target = TARGETS[name]()
    # The corpus of an earlier guided run, if there is one.
    corpus = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]
    try:
        summary = fuzz(target, seed, inputs=inputs, seconds=None if inputs else seconds, corpus=corpus)
    finally:
        target.close()
    print(summary.line(), flush=True)
    Tally(TALLY).add(summary)
    for finding in summary.findings:
        path = finding.save(SAVED, name)
        print(f'  {finding.kind}: {path}.txt\n  repeat it: make fuzz ARGS="--again {path}"', flush=True)
    return summary


def _again(path: Path) -> int:
    name = name_of(path)
    if name is None:
        print(f"{path}: the name of a saved input begins with its target; there are {', '.join(TARGETS)}")
        return 2
    target = TARGETS[name]()
    finding = judge(target, path.read_bytes(), Summary(name))
    target.close()
    print("nothing is wrong with it any more" if finding is None else f"{finding.kind}\n{finding.text}")
    return 0 if finding is None else 1


def _guided(name: str, seconds: float) -> int:
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.guided", name, str(corpus), str(max(1, int(seconds)))]
    return 1 if subprocess.run(command, check=False).returncode else 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the results of experiments into the documents: `python -m docs.results`.

`experiments/results` has one CSV file for each experiment: its rows of the `claims.csv` that `gapless lab figures`
writes. To store new results, name that file: `python -m docs.results out/figures/claims.csv`. A document contains
them between

    <!-- numbers: 003-fig9-tree -->
    <!-- end of numbers -->

The program replaces the text between these comments; `runs` shows the number of runs of the experiments. A test
checks that the documents are up to date.
"""

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterator, Sequence
from math import floor, log10
from pathlib import Path
from typing import Any

from gapless_papers.lab.experiment_file import load_experiment
from gapless_papers.lab.grid import cases_of

__all__ = ["RESULTS", "pages", "start_figures", "store", "with_numbers"]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
START = "start-on-another-node"
"""The benchmark whose figures are stored there as JSON."""
BLOCK = re.compile(r"(<!-- numbers: (?P<name>[\w-]+) -->\n).*?(<!-- end of numbers -->)", re.DOTALL)
WORDS = {"agrees": "agrees", "differs": "differs", "uncertain": "cannot tell", "unmeasured": "not measured"}
HEADINGS = ("what the paper says", "read as", "paper", "ours", "runs", "tolerance", "verdict")


def pages() -> Iterator[Path]:
    """Return the documents that can contain results."""
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from sorted((ROOT / "docs" / "protocols").glob("*.md"))


def with_numbers(text: str) -> str:
    """Return the document with the stored results."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{_table(found['name'])}\n{found[3]}", text)


def store(claims: Path) -> list[Path]:
    """Store the results of a run of `gapless lab`, by experiment."""
    with claims.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    written = []
    for name in dict.fromkeys(row["experiment"] for row in rows):
        target = RESULTS / f"{name}.csv"
        target.parent.mkdir(exist_ok=True)
        with target.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for row in rows if row["experiment"] == name)
        written.append(target)
    return written


def _table(name: str) -> str:
    if name == "runs":
        return _runs()
    if name == START:
        return _start_table()
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = [_cells(row) for row in csv.DictReader(file)]
    lines = [" | ".join(("", *cells, "")).strip() for cells in (HEADINGS, ("---",) * len(HEADINGS), *rows)]
    return "\n".join(lines) + "\n"


def start_figures() -> dict[str, Any]:
    """Return the stored output of `benchmarks/start_on_another_node.py --out`."""
    found: dict[str, Any] = json.loads((ROOT / "experiments" / "results" / f"{START}.json").read_text(encoding="utf-8"))
    return found


def _start_table() -> str:
    lines = [
        "| | `subscribe()` takes | events published later and missed | first event after |",
        "| --- | --: | --: | --: |",
    ]
    for row in start_figures()["rows"]:
        missed = f"{row['missed']:,} of {row['published']:,}"
        lines.append(f"| {row['system']} | {row['call_ms']:.1f} ms | {missed} | {row['first_event_ms']:.1f} ms |")
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, str]) -> Sequence[str]:
    free = int(row["free_choices"])
    sense = row["read_as"] + (f" ({free} free {'choice' if free == 1 else 'choices'})" if free else "")
    tolerance = f"{float(row['tolerance']):.3g}" if row["tolerance"] else ""
    share = f"{100 * float(tolerance):g} %" if tolerance else ""
    paper = _number(row["paper_value"], row["paper_half_width"], row["unit"])
    ours = _number(row["ours"], row["half_width"], row["unit"])
    return row["says"], sense, paper, ours, row["runs"], share, WORDS[row["verdict"]]


def _number(value: str, half: str, unit: str) -> str:
    try:
        text = f"{float(value):,.6g}"
    except ValueError:
        return value
    if half and float(half):
        places = max(0, 1 - floor(log10(float(half))))
        text = f"{float(value):,.{places}f} ± {float(half):,.{places}f}"
    return f"{text} {unit}".strip()


def _runs() -> str:
    """Return the number of runs of each paper's experiments."""
    experiments = [load_experiment(file) for file in sorted((ROOT / "experiments").glob("*.toml"))]
    rows = ["| command | runs |", "| --- | --- |"]
    for paper in sorted({experiment.paper for experiment in experiments}):
        count = sum(len(cases_of(experiment)) for experiment in experiments if experiment.paper == paper)
        rows.append(f"| `gapless lab figures --paper {paper} --out DIR` | {count:,} |")
    glance = sum(len(cases_of(experiment, quick=True)) for experiment in experiments)
    return "\n".join([*rows, f"| `gapless lab figures --quick --out DIR` | {glance:,} |"]) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Store the given results, then update the documents."""
    parser = argparse.ArgumentParser(prog="python -m docs.results", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("claims", nargs="*", metavar="CLAIMS", type=Path, help="a claims.csv to store first")
    for file in parser.parse_args(arguments).claims:
        for target in store(file):
            print(f"stored {target.relative_to(ROOT)}")
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = with_numbers(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Writes the numbers of experiments into the documents: `python -m docs.results`.

`experiments/results` has one CSV file for each experiment: its rows of the `claims.csv` that `gapless lab figures`
leaves. `experiments/results/figures` has the CSV files of figures. To store new results, name the `claims.csv`:
`python -m docs.results out/figures/claims.csv`. Figures are read from the same directory, and so are the pictures in
`docs/images`. A document shows the numbers between

    <!-- numbers: 003-fig9-tree -->
    <!-- end of numbers -->

and this program replaces the text in between. After `numbers:` there is one of

- the names of experiments, whose claims become one table; `002-fig6/exponential` selects the claims read in one way;
- `lines` and the names of figures: each becomes a row with the first and the last point of every line (or all of two or
  three), or, if it is the only one, each of its lines becomes a row;
- `runs`: how many runs the experiments of each paper have;
- `start-on-another-node`: the figures of that benchmark;
- `locaps-search`: the outcome of random searches, in blocks of seeds that follow each other, by faults and f.

A test keeps the documents as this program writes them.
"""

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import floor, log10
from pathlib import Path
from typing import Any

from gapless_papers.lab.experiment import FigureSpec, Scalar
from gapless_papers.lab.experiment_file import load_experiment
from gapless_papers.lab.grid import cases_of

__all__ = ["BLOCK", "IMAGES", "RESULTS", "figures", "pages", "shown", "start_figures", "store", "with_numbers"]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
IMAGES = ROOT / "docs" / "images"
START = "start-on-another-node"
"""The benchmark whose figures are stored there as JSON."""
SEARCH = "locaps-search"
"""The random searches whose outcome is stored there as JSON."""
OUTCOMES = ("runs", "valid", "unknown", "invalid")
BLOCK = re.compile(r"(<!-- numbers: (?P<names>[\w/ -]+) -->\n).*?(<!-- end of numbers -->)", re.DOTALL)
LINES = "lines"
WORDS = {"agrees": "agrees", "differs": "differs", "uncertain": "cannot tell", "unmeasured": "not measured"}
HEADINGS = ("what the paper says", "read as", "paper", "ours", "runs", "tolerance", "verdict")


def pages() -> Iterator[Path]:
    """Yield the documents that can show numbers."""
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from sorted((ROOT / "docs" / "protocols").glob("*.md"))


def with_numbers(text: str) -> str:
    """Return the document with the stored numbers inserted."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{_table(found['names'].split())}\n{found[3]}", text)


def shown(text: str) -> Iterator[str]:
    """Yield the files below `RESULTS` that the document shows, without their suffix."""
    for block in BLOCK.finditer(text):
        first, *others = block["names"].split()
        if first == LINES:
            yield from (f"figures/{name}" for name in others)
        elif first != "runs":
            yield from (name.partition("/")[0] for name in (first, *others))


def store(claims: Path) -> list[Path]:
    """Store the claims of experiments, and the figures and pictures that documents show; return the written files."""
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
    needed = {name for page in pages() for name in shown(page.read_text(encoding="utf-8")) if "/" in name}
    copies = {RESULTS / f"{name}.csv": claims.parent / f"{name.partition('/')[2]}.csv" for name in sorted(needed)}
    copies |= {picture: claims.parent / picture.name for picture in sorted(IMAGES.glob("*.svg"))}
    for target, source in copies.items():
        if source.exists():
            target.parent.mkdir(exist_ok=True)
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            written.append(target)
    return written


def _table(names: Sequence[str]) -> str:
    if names[0] == "runs":
        return _runs()
    if names[0] == START:
        return _start_table()
    if names[0] == SEARCH:
        return _search_table()
    if names[0] == LINES:
        return _lines(names[1:])
    rows = [_cells(row) for name in names for row in _claims(name)]
    return _markdown([HEADINGS, ("---",) * len(HEADINGS), *rows])


def _markdown(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(" | ".join(("", *cells, "")).strip() for cells in rows) + "\n"


def _claims(name: str) -> list[dict[str, str]]:
    """Return the stored claims of an experiment. With `NAME/READING`, return only those that are read in this way."""
    experiment, _, reading = name.partition("/")
    with (RESULTS / f"{experiment}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if reading in ("", row["read_as"])]


def _lines(names: Sequence[str]) -> str:
    """Return a table with the first and the last point of each line of these figures."""
    rows: list[tuple[str, dict[str, str]]] = []
    for name in names:
        spec = figures()[name]
        lines: dict[str, list[dict[str, str]]] = {}
        with (RESULTS / "figures" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                lines.setdefault(spec.label([_value(row[axis]) for axis in spec.series]), []).append(row)
        points = max(lines.values(), key=len)
        runs = sorted({int(row["runs"]) for line in lines.values() for row in line})
        span = " → ".join(row[spec.x] for row in _shown_points(points))
        count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        head = f"`{name}`: {spec.y_label}; {spec.x_label or spec.x} {span}; {count} runs"
        rows.append((head, {label: _span(line) for label, line in lines.items()}))
    if len(rows) == 1:
        head, cells = rows[0]
        return _markdown([(head, "first → last"), ("---", "---"), *cells.items()])
    labels = list(dict.fromkeys(label for _, cells in rows for label in cells))
    body = [(head, *(cells.get(label, "") for label in labels)) for head, cells in rows]
    return _markdown([("", *labels), ("---",) * (len(labels) + 1), *body])


@cache
def figures() -> dict[str, FigureSpec]:
    """Return the lines and bars of all experiments by the name of their file."""
    found: dict[str, FigureSpec] = {}
    for file in sorted((ROOT / "experiments").glob("*.toml")):
        for number, spec in enumerate(load_experiment(file).figures):
            found[spec.name or (file.stem if number == 0 else f"{file.stem}-{number + 1}")] = spec
    return found


def _value(text: str) -> Scalar:
    """Return the value on an axis that was written as this text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _span(line: Sequence[dict[str, str]]) -> str:
    texts = [_number(row["mean"], row["half_width_95"], "") for row in _shown_points(line)]
    return texts[0] if len(set(texts)) == 1 else " → ".join(texts)


def _shown_points(line: Sequence[dict[str, str]]) -> Sequence[dict[str, str]]:
    """Return all points of a short line, and the ends of a longer one."""
    return line if len(line) <= 3 else (line[0], line[-1])


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


def _search_table() -> str:
    blocks = json.loads((RESULTS / f"{SEARCH}.json").read_text(encoding="utf-8"))
    rows = [
        (f"`{block['faults']}`", block["f"], block["seeds"], *(f"{block[key]:,}" for key in OUTCOMES))
        for block in blocks
    ]
    last = ("all", "", "", *(f"{sum(block[key] for block in blocks):,}" for key in OUTCOMES))
    return _markdown([("`--faults`", "`--f`", "seeds", *OUTCOMES), ("---", "---", "---", *["--:"] * 4), *rows, last])


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
    """Return a table with the number of runs of each paper's experiments."""
    experiments = [load_experiment(file) for file in sorted((ROOT / "experiments").glob("*.toml"))]
    rows = ["| command | runs |", "| --- | --- |"]
    for paper in sorted({experiment.paper for experiment in experiments}):
        count = sum(len(cases_of(experiment)) for experiment in experiments if experiment.paper == paper)
        rows.append(f"| `gapless lab figures --paper {paper} --out DIR` | {count:,} |")
    glance = sum(len(cases_of(experiment, quick=True)) for experiment in experiments)
    return "\n".join([*rows, f"| `gapless lab figures --quick --out DIR` | {glance:,} |"]) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Store the named results, then update the documents."""
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

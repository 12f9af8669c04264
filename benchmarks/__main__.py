"""Runs every benchmark in this folder, stores their figures, and prints a summary.

    python benchmarks                       # minutes
    python benchmarks --quick               # a short run
    python benchmarks --only filters        # one of them; can be repeated
    python benchmarks --against FILE        # with ratios to an earlier run

A benchmark is a program that prints its figures, writes them as JSON with `--out`, supports `--quick`, and fails if it
is slower than required. All figures of a run, with a description of the machine, are stored in one file under
`out/bench`; `--against` reads such a file.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEPT = HERE.parent / "out" / "bench"


def machine() -> dict[str, Any]:
    """Return a description of the machine and its other load."""
    return {
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": _line("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def _line(file: str, name: str) -> str:
    """Return the value of a name in a system file; empty if the file does not exist."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def run(program: Path, options: list[str]) -> dict[str, Any]:
    """Run one benchmark; return its exit code, its duration, and its figures if it finished."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        start = time.perf_counter()
        command = [sys.executable, str(program), *options, "--out", str(file)]
        code = subprocess.run(command, check=False).returncode
        figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        return {"code": code, "seconds": time.perf_counter() - start, "figures": figures}


def numbers(figures: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Return all numbers in nested figures, by path."""
    if isinstance(figures, dict):
        for name, inner in figures.items():
            yield from numbers(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(figures, list):
        for place, inner in enumerate(figures):
            yield from numbers(inner, f"{path}[{place}]")
    elif isinstance(figures, int | float) and not isinstance(figures, bool):
        yield path, figures


def ratios(now: dict[str, Any], then: dict[str, Any]) -> list[str]:
    """Return a line for each number that both runs have and that differs."""
    lines = []
    for name, result in now.items():
        before = dict(numbers(then.get(name, {}).get("figures")))
        for path, value in numbers(result["figures"]):
            old = before.get(path)
            if old and old != value:
                lines.append(f"{value / old:7.2f}  {name}.{path}: {value:,.6g}, was {old:,.6g}")
    return lines


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a glance")
    parser.add_argument("--only", action="append", metavar="NAME", help="this benchmark; may be said several times")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print ratios to the figures of an earlier run")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the chosen benchmarks; return 1 if one of them failed."""
    chosen = parsed(arguments)
    programs = {program.stem: program for program in sorted(HERE.glob("[!_]*.py"))}
    unknown = sorted(set(chosen.only or ()) - set(programs))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(programs)}", file=sys.stderr)
        return 2
    earlier: dict[str, Any] = {}
    if chosen.against:
        try:
            earlier = json.loads(chosen.against.read_text(encoding="utf-8"))["benchmarks"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{chosen.against} holds no figures of an earlier run: {error!r}", file=sys.stderr)
            return 2
    begun, on = datetime.now(UTC), machine()
    results: dict[str, dict[str, Any]] = {}
    for name in chosen.only or programs:
        print(f"== {name}", flush=True)
        results[name] = run(programs[name], ["--quick"] if chosen.quick else [])
        print(flush=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    file = KEPT / f"{begun:%Y%m%dT%H%M%S}.json"
    kept = {"begun": begun.isoformat(), "quick": chosen.quick, "machine": on, "benchmarks": results}
    file.write_text(json.dumps(kept, indent=2), encoding="utf-8")
    if chosen.against:
        print(f"== ratios to {chosen.against}", *ratios(results, earlier), "", sep="\n")
    print("== summary")
    for name, result in results.items():
        state = "ok" if result["code"] == 0 else f"FAILED ({result['code']})"
        print(f"{name:<24} {state:<14} {result['seconds']:7.1f} s")
    print(f"figures: {file}")
    return 0 if all(result["code"] == 0 for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m trials.explore`: explores the standard suite of small scenarios within bounds, and prints a table.

    python -m trials.explore --delays 1 --seconds 60
    python -m trials.explore --write out/scopes       # as files for `gapless sim explore`
    python -m trials.explore NAME --off void          # with a rule of the protocol switched off

The exit code is that of `gapless`: 0 nothing found, 1 a violation, 2 a scope was not finished.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gapless.checkers import Status
from gapless.cli.exit_codes import code_of, worst
from gapless.simulator.explorer import Bounds, Report, explore, save_schedule

from .scopes import FROM_MS, SCOPES, scenario_of

HEAD = """| scope | delays | complete | states | transitions | ends | CPU s | transitions/s | found |
|---|---|---|--:|--:|--:|--:|--:|---|"""


def main(arguments: Sequence[str]) -> int:
    """Explore the scopes, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trials.explore", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--delays", type=int, default=1, help="below 0: every order (default: 1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each (default: 60)")
    parser.add_argument("--off", nargs="*", default=[], metavar="RULE", help="rules of the protocol to switch off")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write the scenarios here, and explore nothing")
    parser.add_argument("--keep", type=Path, default=Path("out/schedules"), metavar="DIR", help="for what is found")
    asked = parser.parse_args(arguments)
    names = asked.names or list(SCOPES)
    if asked.write:
        asked.write.mkdir(parents=True, exist_ok=True)
        for name in names:
            (asked.write / f"{name}.toml").write_text(scenario_of(name).to_toml(), encoding="utf-8")
        return 0
    print(HEAD, flush=True)
    statuses: list[Status] = []
    for name in names:
        scenario = scenario_of(name, tuple(asked.off))
        begun = time.process_time()
        report = explore(scenario, FROM_MS, Bounds(asked.delays, SCOPES[name].ticks, asked.seconds))
        print(_row(report, time.process_time() - begun), flush=True)
        if report.symptom:
            save_schedule(asked.keep / f"{name}.toml", scenario, FROM_MS, report.schedule)
        statuses.append("invalid" if report.symptom else "valid" if report.is_complete else "unknown")
    return code_of(worst(statuses))


def _row(report: Report, cpu: float) -> str:
    delays = "any" if report.delays < 0 else str(report.delays)
    complete = "yes" if report.is_complete else "no"
    counts = f"{report.states:,} | {report.transitions:,} | {report.schedules:,}"
    rate = report.transitions / max(cpu, 0.01)
    return (
        f"| {report.scenario} | {delays} | {complete} | {counts} | {cpu:.1f} | {rate:,.0f} | {report.symptom[:100]} |"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

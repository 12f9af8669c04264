"""`make night`: random search for hours on all cores, continuing the last one.

    python -m trials.night --hours 8
    python -m trials.night --hours 1 --faults all partition --keep out/night

The kinds of faults take turns. A violation of the guarantee is shrunk and saved as a scenario, and the search
continues. Some runs are measured for the branches of the protocol's rules that they take (`rules`). At the end, or
when it is interrupted, the program prints the runs, the faults of each kind, the violations, and the branches that no
run has reached. The next search continues after the last seed; the counts of branches restart if the protocol has
changed.

Exit codes are those of `gapless`: 0 no violation, 1 a violation in this or an earlier search, 130 interrupted.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import cycle
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gapless.cli.exit_codes import INTERRUPTED, code_of
from gapless.cli.terminal import output_console, print_json, progress_bars
from gapless.cli.verdict_view import status_text
from gapless.errors import GaplessError
from gapless.registry import find_protocol
from gapless.simulator.generator import generate
from gapless.simulator.shrink import shrink
from gapless.simulator.trial import try_scenario

from .rules import Branches, RuleMeter, Unreached, fingerprint, rules_of, unreached

KINDS = ("none", "crash", "all", "disk,blackout", "partition")
SEEDS = 64
"""The number of seeds of one kind before the next kind takes its turn."""
CHUNK = 4
"""The number of seeds of one task."""
MEASURED = 16
"""One run in this many is measured, because measuring makes it several times slower."""
SHRINK_S = 60.0
SHOWN = 20
"""The number of unreached branches to print; the report has all."""


class Found(msgspec.Struct, frozen=True):
    """A run that violated the guarantee."""

    seed: int
    symptom: str
    scenario: str
    """The file with the reduced scenario."""


class KindState(msgspec.Struct):
    """The progress of one kind of faults."""

    next_seed: int = 0
    valid: int = 0
    unknown: int = 0
    found: list[Found] = []
    faults: dict[str, int] = {}
    """The number of faults, by their names in a scenario."""


class NightState(msgspec.Struct):
    """The state stored between searches."""

    protocol: str
    kinds: dict[str, KindState] = {}
    rules: str = ""
    """The fingerprint of the rules to which the branches belong."""
    measured: int = 0
    branches: list[tuple[str, int, int, int]] = []
    """For each branch, the number of measured runs that took it."""
    hours: float = 0.0


class SeedResult(msgspec.Struct, frozen=True):
    """The result of one seed."""

    seed: int
    status: str
    symptom: str
    faults: dict[str, int]
    branches: list[tuple[str, int, int]] | None
    """The branches that the run took, if it was measured."""


def main(arguments: Sequence[str]) -> int:
    """Search, store and print the results; return the exit code."""
    parser = argparse.ArgumentParser(prog="make night", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=8.0, help="how long it goes on (default: 8)")
    parser.add_argument("--faults", nargs="+", default=list(KINDS), metavar="KINDS", help=f"default: {' '.join(KINDS)}")
    parser.add_argument("--protocol", default="gapless", metavar="NAME")
    parser.add_argument("--keep", type=Path, default=Path("out/night"), metavar="DIR", help="default: out/night")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, metavar="N", help=f"in a row of one kind (default: {SEEDS})"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    asked = parser.parse_args(arguments)
    try:
        find_protocol(asked.protocol)
        for kinds in asked.faults:
            generate(0, asked.protocol, kinds, scale="mixed")
        night = Night(asked.keep, asked.protocol, asked.faults, asked.seeds)
    except (GaplessError, OSError) as error:
        print(f"night: {error}", file=sys.stderr)
        return 64
    is_interrupted = False
    try:
        night.pass_by(asked.hours, asked.processes, hidden=asked.json)
    except KeyboardInterrupt:
        is_interrupted = True
    night.tell(output_console(), as_json=asked.json)
    return INTERRUPTED if is_interrupted else code_of("invalid" if night.has_found else "valid")


class Night:
    """One search, with the state of earlier ones."""

    def __init__(self, place: Path, protocol: str, kinds: Sequence[str], seeds: int) -> None:
        self._file = place / "night.json"
        self._protocol = protocol
        self._rules = rules_of(protocol)
        place.mkdir(parents=True, exist_ok=True)
        self._state = self._read()
        self._branches: Branches = Counter({(file, line, to): runs for file, line, to, runs in self._state.branches})
        self._kinds = list(kinds)
        self._seeds = seeds
        for name in kinds:
            self._state.kinds.setdefault(name, KindState())

    @property
    def has_found(self) -> bool:
        """Return whether any run violated the guarantee."""
        return any(kind.found for kind in self._state.kinds.values())

    def _read(self) -> NightState:
        rules = fingerprint(self._rules) if self._rules.is_dir() else ""
        if not self._file.exists():
            return NightState(self._protocol, rules=rules)
        try:
            state = msgspec.json.decode(self._file.read_bytes(), type=NightState)
        except msgspec.MsgspecError as error:
            raise GaplessError(f"{self._file} cannot be read ({error}); remove it to start again") from None
        if state.protocol != self._protocol:
            raise GaplessError(f"{self._file} is of {state.protocol!r}; give --keep another directory")
        if state.rules != rules:
            state.rules, state.measured, state.branches = rules, 0, []
        return state

    def _keep(self) -> None:
        self._state.branches = [(*branch, runs) for branch, runs in sorted(self._branches.items())]
        beside = self._file.with_suffix(".new")
        beside.write_bytes(msgspec.json.encode(self._state))
        beside.replace(self._file)

    # ---- during the search --------------------------------------------------------------------------------

    def pass_by(self, hours: float, processes: int, *, hidden: bool) -> None:
        """Run seeds until the time is over, and store the results after each round."""
        begun = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TimeRemainingColumn())
        with (
            progress_bars(*columns, hidden=hidden) as progress,
            multiprocessing.get_context("spawn").Pool(processes, initializer=_ignore_interrupts) as pool,
        ):
            task = progress.add_task("", total=hours * 3600)
            for kinds in cycle(self._kinds):
                started = time.monotonic()
                progress.update(task, completed=started - begun, description=self._line(kinds))
                self._take_turn(pool, kinds)
                self._state.hours += (time.monotonic() - started) / 3600
                self._keep()
                if time.monotonic() - begun >= hours * 3600:
                    break

    def _line(self, kinds: str) -> str:
        runs = sum(kind.next_seed for kind in self._state.kinds.values())
        found = sum(len(kind.found) for kind in self._state.kinds.values())
        return f"{runs:,} runs, {found} found; now {kinds}"

    def _take_turn(self, pool: "multiprocessing.pool.Pool", kinds: str) -> None:
        state = self._state.kinds[kinds]
        first = state.next_seed
        seeds = range(first, first + self._seeds)
        chunks = [(self._protocol, kinds, list(seeds[start : start + CHUNK])) for start in range(0, len(seeds), CHUNK)]
        for results in pool.imap(_try_chunk, chunks):
            for result in results:
                self._note(kinds, state, result)

    def _note(self, kinds: str, state: KindState, result: SeedResult) -> None:
        state.next_seed = result.seed + 1
        state.faults = dict(Counter(state.faults) + Counter(result.faults))
        if result.branches is not None:
            self._state.measured += 1
            self._branches.update(result.branches)
        if result.symptom:
            state.found.append(Found(result.seed, result.symptom, self._save(kinds, result)))
        elif result.status == "unknown":
            state.unknown += 1
        else:
            state.valid += 1

    def _save(self, kinds: str, result: SeedResult) -> str:
        spec = find_protocol(self._protocol)
        scenario = generate(result.seed, self._protocol, kinds, scale="mixed")
        small = shrink(scenario, result.symptom, protocol=spec, seconds=SHRINK_S)
        file = self._file.parent / f"{kinds.replace(',', '-')}-{result.seed}.toml"
        file.write_text(small.to_toml(), encoding="utf-8")
        return str(file)

    # ---- results ------------------------------------------------------------------------------------------

    def tell(self, console: Console, *, as_json: bool) -> None:
        """Print the results of all searches so far."""
        state = self._state
        count, missing = unreached(self._rules, self._branches) if self._branches else (0, [])
        if as_json:
            document = msgspec.to_builtins(state)
            document["branches"] = {"of": count, "unreached": msgspec.to_builtins(missing)}
            print_json(document)
            return
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("faults", "runs", "valid", "unknown", "found"):
            table.add_column(heading, justify="left" if heading == "faults" else "right")
        for name, kind in state.kinds.items():
            table.add_row(name, *(f"{n:,}" for n in (kind.next_seed, kind.valid, kind.unknown, len(kind.found))))
        console.print(table)
        drawn = sum((Counter(kind.faults) for kind in state.kinds.values()), Counter[str]())
        console.print(Text("drawn: " + ", ".join(f"{n:,} × {name}" for name, n in drawn.most_common())))
        for name, kind in state.kinds.items():
            for found in kind.found:
                console.print(Text(f"{name} {found.seed}: {found.symptom}; gapless sim run {found.scenario}", "red"))
        self._tell_rules(console, count, missing)
        status = status_text("invalid" if self.has_found else "valid")
        console.print(Text.assemble(status, f"  {state.hours:.1f} hours in all; kept in {self._file}"))

    def _tell_rules(self, console: Console, count: int, missing: Sequence[Unreached]) -> None:
        if not count:
            return
        taken = count - len(missing)
        console.print(
            f"{taken:,} of {count:,} branches of the rules were reached in {self._state.measured:,} measured runs"
        )
        for branch in missing[:SHOWN]:
            console.print(Text(f"  {branch.file}:{branch.line} -> {branch.to}  {branch.rule}: {branch.text}", "dim"))
        if len(missing) > SHOWN:
            console.print(Text(f"  and {len(missing) - SHOWN} more: --json lists them", "dim"))


def _ignore_interrupts() -> None:
    """Ignore interrupts: the parent process ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@cache
def _meter(protocol: str) -> RuleMeter:
    """Return the meter of this process."""
    return RuleMeter(rules_of(protocol))


def _try_chunk(work: tuple[str, str, list[int]]) -> list[SeedResult]:
    return list(_tried(*work))


def _tried(protocol: str, kinds: str, seeds: Sequence[int]) -> Iterator[SeedResult]:
    spec = find_protocol(protocol)
    for seed in seeds:
        scenario = generate(seed, protocol, kinds, scale="mixed")
        branches: list[tuple[str, int, int]] | None = None
        if seed % MEASURED == 0:
            outcome, taken = _meter(protocol).measure(lambda drawn=scenario: try_scenario(drawn, spec))  # type: ignore[misc]
            branches = list(taken)
        else:
            outcome = try_scenario(scenario, spec)
        faults = Counter(type(fault).__struct_config__.tag for fault in scenario.faults)
        symptom = outcome.symptoms[0] if outcome.failed else ""
        yield SeedResult(seed, outcome.status, symptom, {str(name): n for name, n in faults.items()}, branches)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

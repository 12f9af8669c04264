"""`make jepsen`: some runs, their table, and the page."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from rich.table import Table

from gapless.cli.exit_codes import code_of
from gapless.cli.terminal import output_console
from trials.jepsen.faults import kinds
from trials.jepsen.page import page
from trials.jepsen.trial import Trial, try_network

__all__ = ["main"]


def main() -> int:
    """Run, write the page, show the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="make jepsen", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long each run lasts (default: 10)")
    parser.add_argument("--f", type=int, nargs="+", default=[2, 1], help="one run for each (default: 2 1)")
    parser.add_argument("--seed", type=int, default=1, help="of the tree and of the faults (default: 1)")
    parser.add_argument("--faults", nargs="+", choices=kinds(), metavar="KIND", help=f"of {', '.join(kinds())}")
    parser.add_argument("--page", type=Path, default=Path("out/jepsen.html"), help="default: out/jepsen.html")
    asked = parser.parse_args()
    trials: list[Trial] = []
    for f in asked.f:
        place = Path(tempfile.mkdtemp(prefix=f"gapless-jepsen-{f}."))
        chosen = tuple(asked.faults or kinds())
        trials.append(try_network(place, f=f, seed=asked.seed, seconds=60 * asked.minutes, kinds=chosen))
        if trials[-1].status == "valid":
            shutil.rmtree(place)
        else:
            print(f"trace, logs and data: {place}", file=sys.stderr)
        asked.page.parent.mkdir(parents=True, exist_ok=True)
        asked.page.write_text(page(trials), encoding="utf-8")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("run", "verdict", "minutes", "faults", "confirmed", "deliveries", "lost", "refused data"):
        table.add_column(head, justify="left" if head in ("run", "verdict") else "right")
    for trial in trials:
        table.add_row(
            f"f = {trial.f}, seed {trial.seed}", trial.status, f"{trial.seconds / 60:.1f}", f"{len(trial.strikes)}",
            f"{trial.published:,}", f"{trial.deliveries:,}", f"{trial.lost:,}", f"{len(trial.replaced)}",
        )  # fmt: skip
    console = output_console()
    console.print(table)
    for trial in trials:
        console.print(f"f = {trial.f}: {trial.reason}", markup=False)
    console.print(f"page: {asked.page}", markup=False)
    return max(code_of(trial.status) for trial in trials)

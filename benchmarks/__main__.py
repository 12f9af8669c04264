"""Runs every benchmark of this folder, one after the other, and sums up.

    python benchmarks            # minutes
    python benchmarks --quick    # a glance

A benchmark is a program that prints its figures, knows `--quick`, and fails if it is slower than we ask of ourselves.
"""

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Run them all; 1 if one of them failed."""
    results = []
    for program in sorted(HERE.glob("[!_]*.py")):
        print(f"== {program.stem}", flush=True)
        start = time.perf_counter()
        code = subprocess.run([sys.executable, str(program), *arguments], check=False).returncode
        results.append((program.stem, code, time.perf_counter() - start))
        print(flush=True)
    print("== summary")
    for name, code, seconds in results:
        print(f"{name:<24} {'ok' if code == 0 else f'FAILED ({code})':<14} {seconds:7.1f} s")
    return 0 if all(code == 0 for _, code, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

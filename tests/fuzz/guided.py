"""One target under `atheris`, which prefers inputs that reach new code: `python -m tests.fuzz.guided TARGET CORPUS
SECONDS`.

The mutations are the target's own. An input that raises, or takes too long, is saved next to the corpus.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from random import Random
from typing import Any


def main() -> None:
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        sys.exit("--guided needs atheris: pip install -e '.[fuzz]'")
    name, corpus, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    with atheris.instrument_imports(include=["gapless"]):
        from tests.fuzz.loop import LONG_S
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]()
    for place in range(50):
        (corpus / f"drawn-{place}").write_bytes(target.draw(Random(place)))

    def run(data: bytes) -> None:
        begun = time.process_time()
        target.run(data)
        taken = time.process_time() - begun
        # Measuring coverage makes the code about ten times slower, which is still acceptable.
        if taken > 10 * LONG_S:
            raise TimeoutError(f"it takes {taken * 1000:.0f} ms")

    def change(data: bytes, size_max: int, seed: int) -> bytes:
        return target.change(data, Random(seed))[:size_max]

    saved = f"{corpus.parent.parent}/{name}-"
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={saved}", "-max_len=20000", "-rss_limit_mb=1024"]
    arguments: list[Any] = [sys.argv[0], *options, "-print_final_stats=1", str(corpus)]
    atheris.Setup(arguments, run, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Fixtures: small experiments that run in a moment."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.experiment_file import load_experiment, parse_experiment

EXAMPLES = Path(__file__).parents[3] / "examples"
TINY = """
title = "A tiny experiment"
question = "Does it work?"
workload = "tree-subscriptions"
measure = ["subscription-latency", "messages"]
seeds = 2

[parameters]
newcomers = 3
f = 1

[[grid]]
protocol = ["locaps", "gapless"]
depth = [2, 3]

[quick]
seeds = 1
grid = { depth = [2] }

[[figures]]
x = "depth"
y = { metric = "subscription-latency" }
series = ["protocol"]

[[claims]]
says = "It takes longer in a deeper tree"
shape = "grows"
along = "depth"
by = ["protocol"]
y = { metric = "subscription-latency" }

[[claims]]
says = "There and back"
paper = 300
y = { metric = "subscription-latency" }
where = { depth = 3 }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Experiment]:
    """Return a function that makes the tiny experiment, with the given parts of its text replaced."""

    def make(*changes: tuple[str, str]) -> Experiment:
        text = TINY
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        file = tmp_path / "tiny.toml"
        file.write_text(text, encoding="utf-8")
        return parse_experiment(text, file)

    return make


@pytest.fixture
def sweep_of_first(tmp_path: Path) -> Callable[[str], Experiment]:
    """Return a function that makes an experiment file which sweeps an example scenario over a grid."""

    def make(grid: str) -> Experiment:
        file = tmp_path / "sweep.toml"
        file.write_text(
            'title = "t"\nquestion = "q?"\nmeasure = ["messages"]\n'
            f'scenario = "{EXAMPLES}/first.toml"\n\n[[grid]]\n{grid}\n', encoding="utf-8",
        )  # fmt: skip
        return load_experiment(file)

    return make

"""The scenario files that we show can be run, and keep the promise."""

from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.simulator import load_scenario, parse_scenario, run_scenario, scenario

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_and_are_valid(path: Path) -> None:
    result = run_scenario(load_scenario(path))
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.status == "valid", verdict.reason
    assert verdict.deliveries > 0
    assert result.quiesced
    assert result.refusals == ()


def test_there_are_examples() -> None:
    assert {"first", "late_publisher", "request_reply"} <= {path.stem for path in EXAMPLES}


def test_the_example_in_the_reference_runs() -> None:
    assert scenario.__doc__ is not None
    text = scenario.__doc__.split("```toml\n")[1].split("```")[0]
    result = run_scenario(parse_scenario(text))
    assert result.trace is not None
    assert check(result.trace).status == "valid"
    assert check(result.trace).deliveries == 1

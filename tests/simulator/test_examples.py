"""The example scenarios run, and their protocols keep the guarantees."""

from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.registry import protocols
from gapless.simulator import compare, load_scenario, parse_scenario, run_scenario, scenario

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


@pytest.mark.parametrize(
    ("example", "held", "broke"),
    [
        (
            "promises",
            {"delta": "gcd", "epidemic": "best-effort", "gapless": "gcd", "gryphon": "topic-causal",
             "locaps": "gcd", "srpt": "gcd", "vcube": "topic-causal"},
            {"epidemic": "6 of 19 due events were never delivered",
             "gryphon": "watcher was delivered white:1 for game, but not its effect black:1: it starts at black:4 only",
             "vcube": "scribe was delivered guest:1 before its cause host:1 for minutes"},
        ),
        (
            "promises_cut",
            {"delta": "topic-causal", "epidemic": "best-effort", "gapless": "gcd", "gryphon": "gcd"},
            {"delta": "scribe was delivered guest:1 before its cause host:2 for minutes",
             "epidemic": "scribe was never delivered host:2 for minutes, although it starts at host:1 and the run "
             "ended quietly"},
        ),
    ],
)  # fmt: skip
def test_each_protocol_holds_what_it_promises_and_breaks_what_it_does_not(
    example: str, held: dict[str, str], broke: dict[str, str]
) -> None:
    [path] = [path for path in EXAMPLES if path.stem == example]
    entries = [entry for entry in compare(load_scenario(path), list(protocols().values())) if entry.unfit is None]
    assert {entry.protocol: entry.held for entry in entries} == held
    assert {entry.protocol: entry.how for entry in entries if entry.how} == broke
    assert {entry.status for entry in entries} == {"valid"}


def test_there_are_examples() -> None:
    assert {"first", "late_publisher", "request_reply"} <= {path.stem for path in EXAMPLES}


def test_the_example_in_the_reference_runs() -> None:
    assert scenario.__doc__ is not None
    text = scenario.__doc__.split("```toml\n")[1].split("```")[0]
    result = run_scenario(parse_scenario(text))
    assert result.trace is not None
    assert check(result.trace).status == "valid"
    assert check(result.trace).deliveries == 1

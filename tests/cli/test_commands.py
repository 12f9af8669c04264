"""Every command runs: its output is correct, fits the terminal, and is valid JSON with `--json`."""

import json
import shlex
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest

from gapless.cli import sim_search
from gapless.simulator import load_scenario, search
from tests.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"gapless {version('gapless')}\n", "")


@pytest.mark.parametrize("words", [(), ("sim",), ("filter",)])
def test_without_a_command_there_is_help(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli(*words)
    assert ran.code == 0
    assert "Usage: gapless" in ran.out


@pytest.mark.parametrize(
    "words", ["", "demo", "check", "protocols", "sim", "sim run", "sim compare", "sim search", "filter", "filter check"]
)
def test_help_explains_the_exit_codes(cli: Cli, words: str) -> None:
    ran = cli(*words.split(), "--help")
    assert ran.code == 0
    assert "64 bad" in ran.out
    assert "130 interrupted" in " ".join(ran.out.split())


def test_the_registry(cli: Cli) -> None:
    ran = cli("protocols")
    assert ran.code == 0
    assert "gapless" in ran.out
    assert "gapless causal" in ran.out
    listed = {row["name"]: row for row in json.loads(cli("protocols", "--json").out)}
    assert listed["gapless"]["guarantee"] == "gcd"
    assert "crash" in listed["gapless"]["copes_with"]


def test_one_protocol_with_its_options(cli: Cli) -> None:
    ran = cli("protocols", "gapless")
    assert ran.code == 0
    assert "switched_off" in ran.out
    assert json.loads(cli("protocols", "gapless", "--json").out)["options"]["wave_ms"] == 200.0


# ---- sim run


def test_a_run_shows_its_figures_and_the_verdict(cli: Cli) -> None:
    ran = cli("sim", "run", EXAMPLES / "request_reply.toml")
    assert ran.code == 0
    assert "VALID" in ran.out
    assert ran.err == ""
    for word in ("protocol", "brokers", "events", "subscribing", "messages", "state"):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_run_as_json(cli: Cli) -> None:
    ran = cli("sim", "run", EXAMPLES / "request_reply.toml", "--seed", 5, "--json")
    assert ran.code == 0
    assert ran.err == ""
    document = json.loads(ran.out)
    assert document["seed"] == 5
    assert document["verdict"]["status"] == "valid"
    assert document["deliveries"] > 0
    assert document["messages"]
    assert all(row["ms"] is not None for row in document["subscriptions"])


def test_a_run_records_the_meaning_of_active(cli: Cli, tmp_path: Path) -> None:
    text = (EXAMPLES / "request_reply.toml").read_text(encoding="utf-8")
    assert "active (whole) after" in cli("sim", "run", EXAMPLES / "request_reply.toml").out
    first = tmp_path / "first.toml"
    first.write_text(text.replace('do = "subscribe"', 'do = "subscribe"\nready = "first"'), encoding="utf-8")
    ran = cli("sim", "run", first)
    assert "active (first) after" in ran.out
    assert "(whole)" not in ran.out
    rows = json.loads(cli("sim", "run", first, "--json").out)["subscriptions"]
    assert {row["ready"] for row in rows} == {"first"}


def test_hops_are_counted_where_all_take_the_same(cli: Cli, tmp_path: Path) -> None:
    text = (EXAMPLES.parent / "src/gapless/cli/demo.toml").read_text(encoding="utf-8")
    (tmp_path / "shop.toml").write_text(text, encoding="utf-8")
    rows = json.loads(cli("sim", "run", tmp_path / "shop.toml", "--json").out)["subscriptions"]
    hops = {row["subscription"]: row["hops"] for row in rows}
    assert hops["invoices-due"] == 12
    assert hops["large-orders"] == 2
    assert hops["parcels-sent"] == 0
    uneven = text.replace("ms = 10\n", 'ms = 10\nlinks = { "b0-b1" = 25 }\n', 1)
    (tmp_path / "uneven.toml").write_text(uneven, encoding="utf-8")
    rows = json.loads(cli("sim", "run", tmp_path / "uneven.toml", "--json").out)["subscriptions"]
    assert {row["hops"] for row in rows} == {None}


def test_a_trace_is_written_and_judged_again(cli: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    ran = cli("sim", "run", EXAMPLES / "request_reply.toml", "--trace", trace)
    assert ran.code == 0
    assert (trace / "messages").is_dir()
    judged = cli("check", trace)
    assert judged.code == 0
    assert "VALID" in judged.out
    document = json.loads(cli("check", trace, "--json").out)
    assert document["status"] == "valid"
    assert len(document["runs"]) == 1


# ---- sim search


def test_a_search_that_finds_nothing(cli: Cli) -> None:
    words = ("sim", "search", "--runs", 2, "--scale", "small")
    ran = cli(*words)
    assert ran.code == 0
    assert "2 valid" in ran.out
    document = json.loads(cli(*words, "--json").out)
    assert document["status"] == "valid"
    assert document["finding"] is None


def test_a_search_that_finds_something_prints_how_to_repeat_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sim_search, "search", partial(search, shrink_seconds=0.2))
    saved = tmp_path / "found" / "small.toml"
    words = ("--faults", "crash", "--runs", 3, "--scale", "small", "--option", "switched_off=void")
    found = cli("sim", "search", *words, "--save", saved)
    assert found.code == 1
    assert "INVALID" in found.out
    line = next(line.strip() for line in found.out.splitlines() if line.startswith("  gapless sim search"))
    again = cli(*shlex.split(line)[1:], "--json")
    assert again.code == 1
    finding = json.loads(again.out)["finding"]
    assert finding["repeat"] == line
    assert f"seed {finding['seed']} shows {finding['symptom']}" in found.out
    assert load_scenario(saved).protocol.options["switched_off"] == ["void"]
    assert cli("sim", "run", saved).code == 1


def test_options_are_read_by_their_types(cli: Cli) -> None:
    words = ("wave_ms=50", "window=500", "switched_off=")
    ran = cli(
        "sim", "search", "--runs", 2, "--scale", "small", *(word for pair in words for word in ("--option", pair))
    )
    assert ran.code == 0


# ---- filter check


@pytest.mark.parametrize(
    ("event", "code", "answer"),
    [('{"price": 7}', 0, "matches"), ('{"price": 12}', 1, "does not match"), ('{"size": 1}', 2, "unknown")],
)
def test_a_filter_on_an_event(cli: Cli, event: str, code: int, answer: str) -> None:
    ran = cli("filter", "check", "price < 10", "--event", event)
    assert ran.code == code
    assert answer in ran.out
    document = json.loads(cli("filter", "check", "price < 10", "--event", event, "--json").out)
    assert document["matches"] is {0: True, 1: False, 2: None}[code]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("price < 10", ["price: < 10"]),
        ("price BETWEEN 1 AND 2.5", ["price: >= 1 and <= 2.5"]),
        ("a = 'x' OR a = 'y'", ["a: 'x', 'y'"]),
        ("a LIKE 'x%' AND a <> 'xy'", ["a: string like 'x%' and none of 'xy'"]),
        ("NOT sold", ["sold: false"]),
        ("a IS NULL OR b IS NOT NULL", ["a: absent", "b: present"]),
        ("x <> 3", ["x: < 3 or > 3"]),
        ("a + b > 3", ["a: any number; b: any number; [(a + b) > 3]"]),
        ("x > 1 AND x < 1", []),
        ("TRUE", ["anything"]),
    ],
)
def test_the_normal_form(cli: Cli, text: str, lines: list[str]) -> None:
    ran = cli("filter", "check", text, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["normal_form"] == lines
    assert cli("filter", "check", text).code == 0


def test_a_filter_that_may_mean_something_else(cli: Cli) -> None:
    shown = " ".join(cli("filter", "check", "order-id = 1").out.split())
    assert 'order-id is a subtraction here: if you mean the attribute of this name, write "order-id"' in shown
    assert len(json.loads(cli("filter", "check", "order-id = 1", "--json").out)["hints"]) == 1
    quoted = cli("filter", "check", '"order-id" = 1', "--event", '{"order-id": 1}')
    assert quoted.code == 0
    assert "hint" not in quoted.out
    assert '"order-id": = 1' in quoted.out


def test_half_a_character_is_refused(cli: Cli) -> None:
    ran = cli("filter", "check", "a = 1", "--event", '{"a": "\\udce9"}')
    assert ran.code == 64
    assert "half of a surrogate pair" in ran.err


def test_two_filters(cli: Cli) -> None:
    document = json.loads(cli("filter", "check", "x > 1", "--against", "x > 2", "--json").out)
    assert document["covers"] is True
    assert document["overlaps"] is True
    assert "covers it" in cli("filter", "check", "x > 1", "--against", "x < 0").out


# ---- as a program


def test_the_installed_command_runs_and_minds_a_closed_pipe() -> None:
    program = Path(sys.executable).with_name("gapless")
    line = f"{shlex.quote(str(program))} protocols --json | head -n 1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert ran.stdout == "[\n"
    assert ran.stderr == ""
    assert ran.returncode in (0, 141)

"""`gapless sim compare`: the table fits, the JSON is complete, and the exit code reflects the worst verdict."""

import json
from pathlib import Path

import msgspec
import pytest

from gapless.cli.comparison_table import cost_table, promise_table
from gapless.registry import protocols
from gapless.simulator import Entry, Figures, Outcome
from gapless.simulator.run_metrics import Times
from tests.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_all_protocols_run_where_there_are_topics_only(cli: Cli) -> None:
    ran = cli("sim", "compare", EXAMPLES / "topics.toml", "--json")
    assert ran.code == 0
    assert ran.err == ""
    document = json.loads(ran.out)
    assert document["status"] == "valid"
    assert [row["protocol"] for row in document["protocols"]] == list(protocols())
    for row in document["protocols"]:
        assert row["unfit"] is None, row
        assert row["status"] == "valid", row
        assert row["figures"]["delivering"]["count"] > 0
    by_name = {row["protocol"]: row["figures"] for row in document["protocols"]}
    assert by_name["gapless"]["lost"] == 0
    assert by_name["gapless"]["subscribing"]["mean_ms"] < by_name["gryphon"]["subscribing"]["mean_ms"]


@pytest.mark.parametrize(
    ("example", "runs", "does_not"), [("crash", "gapless", "gryphon"), ("loss", "gryphon", "gapless")]
)
def test_protocols_that_cannot_run_the_scenario_say_so_and_others_continue(
    cli: Cli, example: str, runs: str, does_not: str
) -> None:
    ran = cli("sim", "compare", EXAMPLES / f"{example}.toml", "--protocols", f"{does_not},{runs}", "--json")
    assert ran.code == 0
    left_out, row = json.loads(ran.out)["protocols"]
    assert left_out["unfit"] == f"does not claim to tolerate {example}"
    assert left_out["figures"] is left_out["status"] is None
    assert row["status"] == "valid"
    assert row["figures"]["lost"] == 0


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_fits(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    ran = cli("sim", "compare", EXAMPLES / "crash.toml", "--protocols", "gapless, vcube,gryphon,gapless")
    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    named = [line.split()[0] for line in lines if line.startswith(("g", "vcube"))]
    assert named == ["gapless", "vcube", "gryphon", "gapless"], "all of them, and then what those took that ran"
    assert "does not claim to tolerate crash" in ran.out


def test_the_seed_is_above_the_table(cli: Cli) -> None:
    words = ("sim", "compare", EXAMPLES / "topics.toml", "--protocols", "locaps", "--seed", 5)
    assert "topics, seed 5: 8 brokers" in cli(*words).out
    assert json.loads(cli(*words, "--json").out)["seed"] == 5


def test_a_broken_promise_is_1_and_shown_with_its_witness(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "loss.toml"
    text = (EXAMPLES / "loss.toml").read_text(encoding="utf-8")
    text = text.replace('"epidemic"', '"gryphon"').replace(
        'recovery = "combined-pull"\ngossip_ms = 20', 'switched_off = ["repeats"]'
    )
    file.write_text(text, encoding="utf-8")
    ran = cli("sim", "compare", file, "--protocols", "gryphon,epidemic,gapless")
    assert ran.code == 1
    assert "✗" in ran.out
    assert "witness:" in ran.out
    assert "does not claim to tolerate loss" in ran.out
    document = json.loads(cli("sim", "compare", file, "--protocols", "gryphon", "--json").out)
    assert document["status"] == document["protocols"][0]["status"] == "invalid"
    assert document["protocols"][0]["anomalies"]


def test_2_if_no_run_was_made(cli: Cli) -> None:
    ran = cli("sim", "compare", EXAMPLES / "loss.toml", "--protocols", "locaps")
    assert ran.code == 2
    assert (
        json.loads(cli("sim", "compare", EXAMPLES / "loss.toml", "--protocols", "locaps", "--json").out)["status"]
        == "unknown"
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((EXAMPLES / "topics.toml", "--protocols", "gapples"), "there is no protocol 'gapples'"),
        ((EXAMPLES / "topics.toml", "--protocols", ", "), "--protocols names no protocol"),
        (("nowhere.toml",), "nowhere.toml: cannot be read"),
        ((), "Try 'gapless sim compare --help'"),
    ],
)
def test_64_is_bad_input(cli: Cli, words: tuple[object, ...], hint: str) -> None:
    ran = cli("sim", "compare", *words)
    assert ran.code == 64
    assert ran.out == ""
    assert hint in ran.err


def test_refused_calls_are_reported(cli: Cli, tmp_path: Path) -> None:
    text = (EXAMPLES / "topics.toml").read_text(encoding="utf-8")
    stray = '[[actions]]\nat_ms = 9\nclient = "ben"\ndo = "publish"\nattributes = { topic = "news" }\n'
    (tmp_path / "stray.toml").write_text(text + stray, encoding="utf-8")
    ran = cli("sim", "compare", tmp_path / "stray.toml", "--protocols", "locaps,gryphon")
    assert ran.code == 0
    assert "locaps: calls refused: 1" in ran.out
    assert "gryphon: calls refused: 1" in ran.out


# ---- the table, at its widest

WIDE = Figures(
    subscribing=Times(1, 9_999.4, 9_999.4, 123_456.7), never_active=0, delivering=Times(1, 99.96, 999_499.0, 1.0),
    due=999_999, lost=123_456, messages=99_999_999, bytes=1_234_567_890, state_mean=9_999.4, state_most=1,
    refused_calls=0,
)  # fmt: skip


def test_large_numbers_and_long_reasons_keep_the_width() -> None:
    entries = [
        Entry("epidemic", "topic-causal", outcome=Outcome("valid"), held="topic-causal", figures=WIDE),
        Entry("vcube", "gfd", outcome=Outcome("valid"), held="topic-causal", figures=WIDE),
        Entry("srpt", "topic-causal", unfit="it cannot " + "because of this and that " * 6),
        Entry(
            "delta",
            "gfd",
            outcome=Outcome("broken", ("exception KeyError",), summary="b3 failed at 12 ms: " + "x" * 90),
        ),
        Entry("gryphon", "gfd", outcome=Outcome("invalid", ("gap",)), held="best-effort", figures=WIDE),
        Entry(
            "locaps", "gcd", outcome=Outcome("unknown"), figures=msgspec.structs.replace(WIDE, delivering=Times.of([]))
        ),
    ]
    lines = [line.plain for line in promise_table(entries)]
    assert max(map(len, lines)) <= 80
    assert lines[1].split(maxsplit=3) == ["epidemic", "causal", "per", "topic  ✗ causal per topic  123,456 of 999,999"]
    assert lines[2].split(maxsplit=3)[3] == "✗ causal per topic  123,456 of 999,999"
    assert "✗ broke down: b3 failed" in "\n".join(lines)
    [unknown] = [line for line in lines if line.startswith("locaps")]
    assert unknown.split() == ["locaps", "gapless", "causal", "?", "123,456", "of", "999,999"]
    lines = [line.plain for line in cost_table(entries)]
    assert max(map(len, lines)) <= 80
    assert len(set(map(len, lines[1:]))) == 1
    assert lines[2].split() == ["epidemic", "9999", "123k", "100.0", "999k", "100M", "1.23G", "9999"]
    assert [line.split()[0] for line in lines[2:]] == ["epidemic", "vcube", "gryphon", "locaps"]
    assert "–" in lines[-1]
    assert list(cost_table([entries[2]])) == []


def test_lost_events_are_counted_beside_the_kept_ones(cli: Cli) -> None:
    ran = cli("sim", "compare", EXAMPLES / "topics.toml", "--protocols", "epidemic")
    assert "✓ best effort  1 of " in ran.out
    assert "not gapless FIFO: 1 of " in " ".join(ran.out.split())
    [row] = json.loads(cli("sim", "compare", EXAMPLES / "topics.toml", "--protocols", "epidemic", "--json").out)[
        "protocols"
    ]
    assert (row["status"], row["claims"], row["held"], row["broke"]) == ("valid", "best-effort", "best-effort", "gfd")


def test_the_example_of_promises_shows_which_protocol_breaks_what(cli: Cli) -> None:
    ran = cli("sim", "compare", EXAMPLES / "promises.toml")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    *_, breaches = ran.out.partition("Not promised, and violated:")
    assert [line.split()[0] for line in breaches.splitlines() if line[:1].isalpha()] == ["epidemic", "gryphon", "vcube"]
    assert "vcube     not gapless causal: scribe was delivered guest:1 before its cause" in breaches

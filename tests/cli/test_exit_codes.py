"""Exit codes are reliable for scripts, and errors have no tracebacks."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gapless.cli.demo_simulated import scenario_text
from gapless.cli.exit_codes import worst
from gapless.simulator import NodeError
from tests.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples"

SILENT = """
[network]
shape = "chain"
brokers = 3

[protocol]
name = "gapless"

[[clients]]
name = "alice"
broker = "b0"

[[actions]]
at_ms = 0
client = "alice"
do = "subscribe"
subscription = "s"
filter = "TRUE"
"""


def test_0_is_valid(cli: Cli) -> None:
    assert cli("sim", "run", EXAMPLES / "late_publisher.toml").code == 0


def test_1_is_invalid(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    off = '[protocol.options]\nswitched_off = ["union"]\n\n[run]'
    file.write_text(scenario_text().replace("[run]", off, 1), encoding="utf-8")
    ran = cli("sim", "run", file, "--trace", tmp_path / "trace")
    assert ran.code == 1
    assert "INVALID" in ran.out
    assert "gap" in ran.out
    assert f"gapless sim run {file} --seed 1" in ran.out
    judged = cli("check", tmp_path / "trace")
    assert judged.code == 1
    assert "witness:" in judged.out


def test_2_is_unknown(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "silent.toml"
    file.write_text(SILENT, encoding="utf-8")
    ran = cli("sim", "run", file)
    assert ran.code == 2
    assert "UNKNOWN" in ran.out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["sim", "run", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["sim", "rum"], "Did you mean 'run'?"),
        (["sim", "run"], "Try 'gapless sim run --help'"),
        (["sim", "run", "x.toml", "--sed", "3"], "--seed"),
        (["sim", "run", "x.toml", "--seed", "three"], "--seed"),
        (["sim", "search", "--protocol", "gapples"], "there is no protocol 'gapples'"),
        (["sim", "search", "--runs", "0"], "--runs"),
        (["sim", "search", "--faults", "fire"], "there is no kind 'fire'"),
        (["sim", "search", "--option", "windov=1"], "did you mean 'window'?"),
        (["sim", "search", "--option", "window"], "write it as key=value"),
        (["sim", "search", "--option", "window=many"], "window"),
        (["protocols", "gapples"], "there is no protocol"),
        (["check", "nowhere"], "there is no trace at nowhere"),
        (["filter", "check", "price <"], "^"),
        (["filter", "check", "x > 1", "--event", "{"], "--event: this is not JSON"),
        (["filter", "check", "x > 1", "--event", "[1]"], "an event is a JSON object"),
        (["filter", "check", "x > 1", "--event", '{"x": null}'], "leave out absent values"),
        (["filter", "check", "x > 1", "--event", '{"x": 9223372036854775808}'], "64-bit integer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_64_is_bad_input_in_one_clear_line(cli: Cli, words: list[str], hint: str) -> None:
    ran = cli(*words)
    assert ran.code == 64
    assert ran.out == ""
    assert ran.err.startswith("gapless: ")
    assert hint in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) <= 3


def test_64_names_the_place_in_a_scenario(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "typo.toml"
    file.write_text(SILENT.replace("brokers", "brockers"), encoding="utf-8")
    ran = cli("sim", "run", file)
    assert ran.code == 64
    assert "network.brockers" in ran.err
    assert "did you mean 'brokers'?" in ran.err


def test_64_when_a_file_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("not a directory", encoding="utf-8")
    ran = cli("sim", "run", EXAMPLES / "first.toml", "--trace", tmp_path / "taken")
    assert ran.code == 64
    assert "is a file" in ran.err


@pytest.mark.parametrize(
    "error",
    [
        AssertionError("we were wrong"),
        NodeError("b1 failed: we were wrong", "KeyError", "Traceback of the node", "exception KeyError"),
    ],
    ids=["ours", "a node's"],
)
def test_70_is_a_bug_with_its_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("gapless.cli.sim_run.run_scenario", fail)
    ran = cli("sim", "run", EXAMPLES / "first.toml", "--json")
    assert ran.code == 70
    assert ran.out == ""
    assert "Traceback" in ran.err
    assert "we were wrong" in ran.err
    assert "Please report" in ran.err


def test_130_when_interrupted() -> None:
    program = Path(sys.executable).with_name("gapless")
    words = [str(program), "sim", "search", "--runs", "1000000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
        workers = _wait_for_children(search.pid)
        # A terminal signals the whole group. Here each process is signalled by its own id, so that no other can be hit.
        for pid in workers:
            os.kill(pid, signal.SIGINT)
        search.send_signal(signal.SIGINT)
        out, err = search.communicate(timeout=30)
    assert search.returncode == 130
    assert out == ""
    assert "Traceback" not in err


def _wait_for_children(pid: int) -> list[int]:
    """Return the ids of this process's children once there are any; an empty list if the system does not
    report them."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + (20 if listed.exists() else 2)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        children = [int(word) for word in listed.read_text(encoding="ascii").split()] if listed.exists() else []
        if children:
            return children
    return []


def test_the_worst_of_several_runs_counts() -> None:
    assert worst(["valid", "invalid", "unknown"]) == "invalid"
    assert worst(["valid", "unknown"]) == "unknown"
    assert worst(["valid"]) == "valid"
    assert worst([]) == "unknown"

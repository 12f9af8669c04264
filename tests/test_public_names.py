"""What a program may use of `gapless`, by name and by type: a name that goes, comes or loses its type is noticed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gapless
import gapless.client
import gapless.errors
import gapless.sync

ROOT = Path(__file__).parents[1]

ERRORS = {
    "CallError", "ClosedError", "ConfigError", "ConnectError", "EventError", "ExperimentError", "FilterError",
    "GaplessError", "OverlayError", "ProtocolError", "ScenarioError", "SlowConsumerError", "SparkError",
    "SubscriptionEndedError", "TraceError", "WireError",
}  # fmt: skip
CLIENT = {"Advertisement", "Client", "Connecting", "Subscription", "connect"}


def test_the_public_names_are_these() -> None:
    assert set(gapless.__all__) == ERRORS | CLIENT | {"Event", "__version__", "sync"}
    assert set(gapless.errors.__all__) == ERRORS
    assert set(gapless.client.__all__) == CLIENT
    assert set(gapless.sync.__all__) == CLIENT - {"Connecting"}


@pytest.mark.parametrize("name", gapless.__all__)
def test_each_public_name_is_there(name: str) -> None:
    found = getattr(gapless, name)
    assert name in dir(gapless)
    if name in ERRORS:
        assert found is getattr(gapless.errors, name)
        assert issubclass(found, gapless.GaplessError)
    if name in CLIENT:
        assert found is getattr(gapless.client, name)


def test_the_version_is_that_of_the_package() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert gapless.__version__ == about["project"]["version"]


def test_a_name_that_does_not_exist_is_an_error_when_the_program_runs() -> None:
    with pytest.raises(AttributeError, match=r"module 'gapless' has no attribute 'conect'. Did you mean: 'connect'?"):
        _run("import gapless; gapless.conect")
    assert _run("import gapless; print(gapless.sync.connect.__name__)") == "connect\n"


def _run(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise AttributeError(ran.stderr)
    return ran.stdout


PROGRAM = """
import gapless
import gapless.sync
from gapless import Client, Event, Subscription, sync


async def main() -> None:
    async with gapless.connect("gapless://127.0.0.1:7400") as client:
        reveal_type(client)  # gapless.client.client.Client
        subscription = await client.subscribe("TRUE")
        reveal_type(subscription)  # gapless.client.subscription.Subscription
        reveal_type(await client.publish({"n": 1}))  # gapless.events.Event
        async for event in subscription:
            reveal_type(event)  # gapless.events.Event
        await client.publsh({"n": 1})  # error: "Client" has no attribute "publsh"
        await client.subscribe(5)  # error: Argument 1 to "subscribe" of "Client" has incompatible type "int"
    gapless.conect("gapless://127.0.0.1:7400")  # error: Module has no attribute "conect"


def sync_main(known: Client, event: Event, subscription: Subscription) -> None:
    with gapless.sync.connect("gapless://127.0.0.1:7400") as client:
        reveal_type(client)  # gapless.client.sync_client.Client
        reveal_type(client.subscribe("TRUE").take(timeout_s=1))  # list[gapless.events.Event]
    gapless.sync.conect("gapless://127.0.0.1:7400")  # error: Module has no attribute "conect"
    sync.connect(5)  # error: Argument 1 to "connect" has incompatible type "int"
    try:
        reveal_type(known.name)  # str
    except gapless.SubscriptionEndedError as error:
        reveal_type(error.last)  # dict[str, int]
    reveal_type(gapless.__version__)  # str
    raise gapless.CalError("no")  # error: Module has no attribute "CalError"
"""
"""Each line with a comment is one that `mypy --strict` has something to say about, and this is what."""


def test_a_type_checker_knows_every_name_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    source = str(Path(gapless.__file__).parents[1])
    told = subprocess.run(command, cwd=tmp_path, env={"MYPYPATH": source}, capture_output=True, text=True, check=False)
    found = {int(line.split(":")[1]): line for line in told.stdout.splitlines() if line.startswith("program.py:")}
    expected = {
        number: line.partition("  # ")[2] for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line
    }
    assert found.keys() == expected.keys(), told.stdout + told.stderr
    for number, text in expected.items():
        assert text in re.sub(r"builtins\.", "", found[number]).replace("Revealed type is ", ""), found[number]

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
    "CallError", "ClosedError", "ConfigError", "ConnectError", "DeniedError", "EventError", "ExperimentError",
    "FilterError", "GaplessError", "GivenAwayError", "MisfitError", "NoReplyError", "OverlayError", "ProtocolError",
    "ScenarioError", "SlowConsumerError", "SparkError", "StorageError", "SubscriptionEndedError", "TraceError",
    "WireError",
}  # fmt: skip
CLIENT = {
    "Advertisement", "Change", "Changes", "Client", "Connecting", "Credentials", "Request", "Requests", "Subscription",
    "TypedSubscription", "connect",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(gapless.__all__) == ERRORS | CLIENT | {"Event", "__version__", "sync"}
    assert set(gapless.errors.__all__) == ERRORS
    assert set(gapless.client.__all__) == CLIENT
    assert set(gapless.sync.__all__) == CLIENT - {"Change", "Connecting"}


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
from dataclasses import dataclass

import gapless
import gapless.sync
from gapless import Client, Event, Subscription, sync


@dataclass
class Trade:
    amount: int


async def main() -> None:
    async with gapless.connect("gapless://127.0.0.1:7400") as client:
        reveal_type(client)  # gapless.client.client.Client
        subscription = await client.subscribe("TRUE")
        reveal_type(subscription)  # gapless.client.subscription.Subscription
        reveal_type(await client.publish({"n": 1}))  # gapless.events.Event
        async for event in subscription:
            reveal_type(event)  # gapless.events.Event
        await client.publsh({"n": 1})  # error: "Client" has no attribute "publsh"
        await client.subscribe(5)  # error: No overload variant of "subscribe" of "Client" matches argument type "int"
        reveal_type(await client.subscribe("TRUE", type=Trade))  # gapless.client.subscription.TypedSubscription[
        async for trade in await client.subscribe("TRUE", type=Trade):
            reveal_type(trade)  # program.Trade
            print(trade.amont)  # error: "Trade" has no attribute "amont"
        await client.publish(Trade(5))
        reveal_type(await client.request({"n": 1}, reply="n = 2"))  # gapless.events.Event
        reveal_type(await client.request({"n": 1}, type=Trade))  # program.Trade
        async for request in await client.answer("n = 1"):
            reveal_type(await request.reply({"n": 2}))  # gapless.events.Event
        async for change in client.changes():
            reveal_type(change.broker)  # str
    gapless.conect("gapless://127.0.0.1:7400")  # error: Module has no attribute "conect"


def sync_main(known: Client, event: Event, subscription: Subscription) -> None:
    with gapless.sync.connect("gapless://127.0.0.1:7400") as client:
        reveal_type(client)  # gapless.client.sync_client.Client
        reveal_type(client.subscribe("TRUE").take(timeout_s=1))  # list[gapless.events.Event]
        reveal_type(next(client.subscribe("TRUE", type=Trade)))  # program.Trade
        reveal_type(client.request({"n": 1}, type=Trade))  # program.Trade
        for request in client.answer("n = 1"):
            reveal_type(request.reply(Trade(5)))  # gapless.events.Event
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
    found: dict[int, str] = {}
    for line in told.stdout.splitlines():
        if line.startswith("program.py:"):
            number = int(line.split(":")[1])
            found[number] = found.get(number, "") + line + "\n"
    expected = {
        number: line.partition("  # ")[2] for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line
    }
    assert found.keys() == expected.keys(), told.stdout + told.stderr
    for number, text in expected.items():
        assert text in re.sub(r"builtins\.", "", found[number]).replace("Revealed type is ", ""), found[number]

"""What a program may use of `gapless`, by name and by type: a name that goes, comes or loses its type is noticed."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import gapless
import gapless.client
import gapless.errors
import gapless.sync
from tests.pages.page import blocks

ROOT = Path(__file__).parents[1]

ERRORS = {
    "ArchiveError", "CallError", "ClosedError", "ConfigError", "ConnectError", "DeniedError", "EventError",
    "ExperimentError", "FilterError", "GaplessError", "GivenAwayError", "MisfitError", "NoEventError", "NoReplyError",
    "OverlayError", "ProtocolError", "ScenarioError", "SkippedError", "SlowConsumerError", "SparkError", "StorageError",
    "SubscriptionEndedError", "TraceError", "WireError",
}  # fmt: skip
CLIENT = {
    "Advertisement", "Change", "Changes", "Client", "ConfirmableEvent", "ConfirmableSubscription", "Connecting",
    "Credentials", "Milestones", "DurableInfo", "Request", "Requests", "Since", "Standing", "Subscription",
    "TypedSubscription", "connect",
}  # fmt: skip
MORE = {"Event", "Position", "PublishedEvent", "__version__", "caused_by", "sync"}
ALIKE = {"Change", "Credentials", "Milestones", "DurableInfo", "Since", "Standing"}
"""What is the same with an event loop and without."""


def test_the_public_names_are_these() -> None:
    assert set(gapless.__all__) == ERRORS | CLIENT | MORE
    assert set(gapless.errors.__all__) == ERRORS
    assert set(gapless.client.__all__) == CLIENT
    assert set(gapless.sync.__all__) == CLIENT - {"Connecting"}
    for name in ALIKE:
        assert getattr(gapless.sync, name) is getattr(gapless, name)


def test_every_error_is_public() -> None:
    defined = {
        name
        for name, found in vars(gapless.errors).items()
        if isinstance(found, type) and issubclass(found, gapless.GaplessError)
    }
    assert defined == set(gapless.errors.__all__)
    assert {name for name in gapless.__all__ if name.endswith("Error")} == defined


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
        published = await client.publish({"n": 1})
        reveal_type(published)  # gapless.events.PublishedEvent
        published.position  # error: "PublishedEvent" has no attribute "position"
        async for event in subscription:
            reveal_type(event)  # gapless.events.Event
            reveal_type(event.position)  # gapless.positions.Position
        await client.publsh({"n": 1})  # error: "Client" has no attribute "publsh"
        await client.subscribe(5)  # error: No overload variant of "subscribe" of "Client" matches argument type "int"
        reveal_type(await client.subscribe("TRUE", type=Trade))  # gapless.client.subscription.TypedSubscription[
        async for trade in await client.subscribe("TRUE", type=Trade):
            reveal_type(trade)  # program.Trade
            print(trade.amont)  # error: "Trade" has no attribute "amont"
        await client.publish(Trade(5))
        named = await client.subscribe("TRUE", name="n", confirm="manual", share=True)
        reveal_type(named)  # gapless.client.subscription.ConfirmableSubscription
        async for taken in named:
            reveal_type(taken)  # gapless.client.confirmations.ConfirmableEvent
            reveal_type(taken.redelivered)  # bool
            await taken.confirm()
        reveal_type(await anext(await client.subscribe("TRUE", name="n", type=Trade)))  # program.Trade
        await client.subscribe("TRUE", confirm="manual")  # error: No overload variant of "subscribe"
        await (await anext(subscription)).confirm()  # error: "Event" has no attribute "confirm"
        for each in await client.named_subscriptions():
            reveal_type(each)  # gapless.names.DurableInfo
        reveal_type(await client.milestones())  # gapless.client.milestones.Milestones
        reveal_type(client.standing)  # gapless.client.standing.Standing
        reveal_type(await client.request({"n": 1}, reply="n = 2"))  # gapless.events.Event
        reveal_type(await client.request({"n": 1}, type=Trade))  # program.Trade
        async for request in await client.answer("n = 1"):
            reveal_type(await request.reply({"n": 2}))  # gapless.events.PublishedEvent
        async for change in client.changes():
            reveal_type(change.broker)  # str
    gapless.conect("gapless://127.0.0.1:7400")  # error: Module has no attribute "conect"


def listed(since: gapless.Since, client: Client, name: str | None) -> tuple[gapless.Milestones, gapless.Standing]:
    raise gapless.SkippedError("no", {})


def sync_main(known: Client, event: Event, subscription: Subscription) -> None:
    with gapless.sync.connect("gapless://127.0.0.1:7400") as client:
        reveal_type(client)  # gapless.client.sync_client.Client
        reveal_type(client.subscribe("TRUE").take(timeout_s=1))  # list[gapless.events.Event]
        for taken in client.subscribe("TRUE", name="n"):
            reveal_type(taken)  # gapless.client.sync_subscription.ConfirmableEvent
            taken.confirm()
        client.on_publications_lost = print
        reveal_type(client.lost_publications)  # list[tuple[int, int]]
        reveal_type(next(client.subscribe("TRUE", type=Trade)))  # program.Trade
        reveal_type(client.request({"n": 1}, type=Trade))  # program.Trade
        for request in client.answer("n = 1"):
            reveal_type(request.reply(Trade(5)))  # gapless.events.PublishedEvent
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


DOCUMENTS = {"client_page.py": "docs/CLIENT.md", "first_page.py": "README.md"}
"""Those whose programs are whole, and go on from each other: each is one file to the type checker."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `mypy --strict` says of all programs; it is started once, because it takes its time."""
    place = tmp_path_factory.mktemp("types")
    (place / "program.py").write_text(PROGRAM, encoding="utf-8")
    for file, page in DOCUMENTS.items():
        (place / file).write_text("\n\n".join(blocks(page, "python")), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "program.py", *DOCUMENTS]
    source = str(Path(gapless.__file__).parents[1])
    ran = subprocess.run(command, cwd=place, env={"MYPYPATH": source}, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("file", DOCUMENTS)
def test_the_programs_of_the_documents_have_types(told: str, file: str) -> None:
    assert "program.py:" in told
    assert not [line for line in told.splitlines() if line.startswith(f"{file}:")]


def test_a_type_checker_knows_every_name_and_no_other(told: str) -> None:
    found: dict[int, str] = {}
    for line in told.splitlines():
        if line.startswith("program.py:"):
            number = int(line.split(":")[1])
            found[number] = found.get(number, "") + line + "\n"
    expected = {
        number: line.partition("  # ")[2] for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line
    }
    assert found.keys() == expected.keys(), told
    for number, text in expected.items():
        assert text in re.sub(r"builtins\.", "", found[number]).replace("Revealed type is ", ""), found[number]


@pytest.mark.parametrize("client", [gapless.Client, gapless.sync.Client])
def test_no_call_hides_what_it_returns(client: type) -> None:
    """`help()` and editors show the signature: "Any" would tell nobody what comes back."""
    calls = {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(calls) > 12
    assert [name for name, found in calls.items() if found.return_annotation in (Any, inspect.Signature.empty)] == []

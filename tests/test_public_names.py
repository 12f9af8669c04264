"""The public names of `gapless` and their types: a name that is removed, added or loses its type fails a test."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scripts import generate_sync_client

import gapless
import gapless.client
import gapless.errors
import gapless.sync
from tests.pages.page import blocks

ROOT = Path(__file__).parents[1]

ERRORS = {
    "CallError", "ClosedError", "ConnectError", "DeniedError", "EventError", "FilterError", "GaplessError",
    "NoReplyError", "RequestFailedError", "SkippedError", "SubscriptionEndedError",
}  # fmt: skip
OTHER_ERRORS = {
    "AckTooLateError", "ArchiveError", "ConfigError", "ConversionError", "ExperimentError", "NoEventError",
    "OverlayError", "ProtocolError", "ScenarioError", "SlowConsumerError", "SparkError", "StorageError", "TraceError",
    "WindowFullError", "WireError",
}  # fmt: skip
CLIENT = {
    "Advertisement", "Answer", "Client", "Credentials", "DurableEvent", "DurableInfo", "DurableSubscription",
    "Middleware", "Since", "Subscription", "connect",
}  # fmt: skip
OTHER_TYPES = {
    "Admin", "Answering", "ArchiveReader", "Codec", "ConnectionChange", "ConnectionChanges", "Identity", "Milestones",
    "Opening", "Outgoing",
}  # fmt: skip
ALIKE = {
    "Answer", "Codec", "ConnectionChange", "Credentials", "DurableInfo", "Identity", "Middleware", "Milestones",
    "Outgoing", "Since",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    others = {"Event", "Position", "PublishedEvent", "__version__", "caused_by", "errors", "sync"}
    assert set(gapless.__all__) == ERRORS | CLIENT | others
    assert set(gapless.errors.__all__) == ERRORS | OTHER_ERRORS
    assert set(gapless.client.__all__) == CLIENT | OTHER_TYPES
    assert set(gapless.sync.__all__) == CLIENT | OTHER_TYPES - {"Opening"}
    for name in ALIKE:
        assert getattr(gapless.sync, name) is getattr(gapless.client, name)


def test_every_error_is_public() -> None:
    defined = {
        name
        for name, found in vars(gapless.errors).items()
        if isinstance(found, type) and issubclass(found, gapless.GaplessError)
    }
    assert defined == set(gapless.errors.__all__)


def test_a_name_of_a_neighbouring_module_is_reported_with_its_place() -> None:
    for name, place in (("SlowConsumerError", "errors"), ("Admin", "client")):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; it is gapless.{place}.{name}"):
            getattr(gapless, name)


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
from gapless import Client, DurableSubscription, Event, Subscription, sync
from gapless.client import Identity, Milestones


@dataclass
class Trade:
    amount: int


async def main() -> None:
    async with gapless.connect("gapless://127.0.0.1:7400") as client:
        reveal_type(client)  # gapless.client.client.Client
        subscription = await client.subscribe("TRUE")
        reveal_type(subscription)  # gapless.client.subscription.Subscription[gapless.events.Event]
        published = await client.publish({"n": 1})
        reveal_type(published)  # gapless.events.PublishedEvent
        published.position  # error: "PublishedEvent" has no attribute "position"
        async for event in subscription:
            reveal_type(event)  # gapless.events.Event
            reveal_type(event.position)  # gapless.positions.Position
        await client.publsh({"n": 1})  # error: "Client" has no attribute "publsh"
        await client.subscribe(5)  # error: No overload variant of "subscribe" of "SubscribingCalls"
        reveal_type(await client.subscribe("TRUE", type=Trade))  # gapless.client.subscription.Subscription[
        async with client.subscribe("TRUE", type=Trade) as trades:
            async for trade in trades:
                reveal_type(trade)  # program.Trade
                print(trade.amont)  # error: "Trade" has no attribute "amont"
        await client.publish(Trade(5))
        async with client.durable("n", "TRUE", ack="manual", group=True) as named:
            reveal_type(named.name)  # str
            async for delivery in named:
                reveal_type(delivery)  # gapless.client.durable_event.DurableEvent
                reveal_type(delivery.redelivered)  # bool
                async with delivery:
                    await delivery.ack()
        reveal_type(await anext(await client.durable("n", "TRUE", type=Trade)))  # program.Trade
        await client.subscribe("TRUE", ack="manual")  # error: No overload variant of "subscribe"
        await (await anext(subscription)).ack()  # error: "Event" has no attribute "ack"
        await subscription.ack()  # error: "Subscription[Event]" has no attribute "ack"
        for each in await client.admin.list():
            reveal_type(each)  # gapless.names.DurableInfo
        reveal_type(await client.milestones())  # gapless.client.milestones.Milestones
        reveal_type(client.identity)  # gapless.client.identity.Identity
        reveal_type(await client.request({"n": 1}, reply="n = 2"))  # gapless.events.Event
        reveal_type(await client.request({"n": 1}, type=Trade))  # program.Trade
        await client.answer("n = 1", answer)
        await client.answer("n = 1", wrong)  # error: Argument 2 to "answer" of "SubscribingCalls" has incompatible type
        async with client.archive("here").read("TRUE", "10m", type=Trade) as old:
            reveal_type(await old.take())  # list[program.Trade]
        async for change in client.connection_changes():
            reveal_type(change.broker)  # str
    gapless.conect("gapless://127.0.0.1:7400")  # error: Module has no attribute "conect"


async def answer(request: Event) -> gapless.Answer:
    return Trade(request.integer("n"))


async def wrong(request: Trade) -> None: ...


def listed(since: gapless.Since, client: Client, some: DurableSubscription) -> tuple[Milestones, Identity]:
    raise gapless.SkippedError("no", {})


def sync_main(known: Client, event: Event, subscription: Subscription) -> None:
    with gapless.sync.connect() as client:
        reveal_type(client)  # gapless.client.sync_client.Client
        reveal_type(client.subscribe("TRUE").take(timeout_s=1))  # list[gapless.events.Event]
        with client.durable("n", "TRUE") as named:
            for delivery in named:
                reveal_type(delivery)  # gapless.client.sync_durable_event.DurableEvent
                delivery.ack()
        client.on_publications_lost = print
        reveal_type(client.lost_publications)  # list[tuple[int, int]]
        reveal_type(next(client.subscribe("TRUE", type=Trade)))  # program.Trade
        reveal_type(client.request({"n": 1}, type=Trade))  # program.Trade
        reveal_type(client.admin.list())  # list[gapless.names.DurableInfo]
        client.answer("n = 1", lambda request: {"n": request.integer("n")}).wait()
    gapless.sync.conect("gapless://127.0.0.1:7400")  # error: Module has no attribute "conect"
    sync.connect(5)  # error: Argument 1 to "connect" has incompatible type "int"
    try:
        reveal_type(known.name)  # str
    except gapless.SubscriptionEndedError as error:
        reveal_type(error.ending_cut)  # dict[str, int]
    reveal_type(gapless.__version__)  # str
    raise gapless.CalError("no")  # error: Module has no attribute "CalError"
"""


DOCUMENTS = {"client_page.py": "docs/CLIENT.md", "first_page.py": "README.md"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of `mypy --strict` on all programs; it runs once, and finds what `make check` has cached."""
    place = tmp_path_factory.mktemp("types")
    (place / "program.py").write_text(PROGRAM, encoding="utf-8")
    for file, page in DOCUMENTS.items():
        (place / file).write_text("\n\n".join(blocks(page, "python")), encoding="utf-8")
    files = [str(place / file) for file in ("program.py", *DOCUMENTS)]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *files]
    ran = subprocess.run(command, cwd=ROOT, env={"MYPYPATH": "src"}, capture_output=True, text=True, check=False)
    return re.sub(
        r"^/\S*/(?=\w+\.py:)", "", ran.stdout + ran.stderr, flags=re.MULTILINE
    )  # of this run, or of a cached one


@pytest.mark.parametrize("file", DOCUMENTS)
def test_the_programs_of_the_documents_have_types(report: str, file: str) -> None:
    assert "program.py:" in report
    assert not [line for line in report.splitlines() if line.startswith(f"{file}:")]


def test_a_type_checker_knows_every_name_and_no_other(report: str) -> None:
    found: dict[int, str] = {}
    for line in report.splitlines():
        if line.startswith("program.py:"):
            number = int(line.split(":")[1])
            found[number] = found.get(number, "") + line + "\n"
    expected = {
        number: line.partition("  # ")[2] for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line
    }
    assert found.keys() == expected.keys(), report
    for number, text in expected.items():
        assert text in re.sub(r"builtins\.", "", found[number]).replace("Revealed type is ", ""), found[number]


@pytest.mark.parametrize("client", [gapless.Client, gapless.sync.Client])
def test_no_call_hides_what_it_returns(client: type) -> None:
    """`help()` and editors show the signature, in which "Any" would not name the result."""
    calls = {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(calls) > 12
    assert [name for name, found in calls.items() if found.return_annotation in (Any, inspect.Signature.empty)] == []


@pytest.mark.parametrize("module", generate_sync_client.MODULES)
def test_the_calls_without_an_event_loop_are_generated_from_those_with_one(module: str) -> None:
    written = generate_sync_client.target(module).read_text(encoding="utf-8")
    assert written == generate_sync_client.generated(module), "run python scripts/generate_sync_client.py"


COROUTINE = {"Opening.close", "Opening.send", "Opening.throw"}


def _calls() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in (gapless, gapless.client, gapless.sync):
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isfunction(public):
                found[f"{module.__name__}.{name}"] = public
            if not inspect.isclass(public) or issubclass(public, BaseException):
                continue
            for each, call in inspect.getmembers(public):
                is_call = inspect.isfunction(call) or inspect.ismethod(call)
                is_ours = is_call and call.__module__.startswith("gapless.") and not each.startswith("_")
                if is_ours and f"{name}.{each}" not in COROUTINE:
                    found[f"{module.__name__}.{name}.{each}"] = call
    return found


CALLS = _calls()


@pytest.mark.parametrize("name", CALLS)
def test_every_call_documents_its_parameters_with_an_example(name: str) -> None:
    report = inspect.getdoc(CALLS[name]) or ""
    assert "Example: `" in report
    assert not re.search(r"\b(await|async)\b", report) or not name.startswith("gapless.sync.")
    for parameter in inspect.signature(CALLS[name]).parameters:
        assert parameter == "self" or f"    {parameter}: " in report, parameter


def test_the_calls_include_those_of_subscriptions_and_events() -> None:
    assert {
        "gapless.connect",
        "gapless.caused_by",
        "gapless.DurableSubscription.ack",
        "gapless.Event.text",
    } <= CALLS.keys()
    assert {"gapless.sync.connect", "gapless.sync.DurableEvent.nack", "gapless.sync.Subscription.take"} <= CALLS.keys()
    assert len(CALLS) > 100


def _properties() -> list[property]:
    classes = [getattr(module, name) for module in (gapless, gapless.client, gapless.sync) for name in module.__all__]
    members = [each for found in classes if inspect.isclass(found) for each in inspect.getmembers(found)]
    return [each for name, each in members if isinstance(each, property) and not name.startswith("_")]


def test_every_property_is_described() -> None:
    assert len(_properties()) > 50
    assert [each.fget for each in _properties() if not (each.__doc__ or "").strip().endswith((".", ".)"))] == []


SHAPE = {
    "subscribe": ["filter", "since", "type", "max_pending"],
    "durable": [
        "name", "filter", "type", "group", "ack", "replace", "redeliver_s", "max_deliveries", "max_pending",
    ],
    "read": ["filter", "since", "until", "type"],
    "answer": ["filter", "handler", "group", "concurrency", "redeliver_s", "max_pending"],
}  # fmt: skip


@pytest.mark.parametrize("call", SHAPE)
@pytest.mark.parametrize("client", [gapless.Client, gapless.sync.Client])
def test_one_call_is_for_one_thing(client: type, call: str) -> None:
    assert list(inspect.signature(getattr(client, call)).parameters)[1:] == SHAPE[call]

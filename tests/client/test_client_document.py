"""The programs of docs/CLIENT.md run, and its bounds are those of the code."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.client import connect
from gapless.client.requests import MAILBOXES_MAX
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.settings import RuntimeSettings
from tests.runtime.local import local
from tests.runtime.secure import secure

TEXT = (Path(__file__).parents[2] / "docs" / "CLIENT.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for block in TEXT.split("```python\n")[1:]:
        exec(compile(block.split("```")[0], "docs/CLIENT.md", "exec"), found)
    return found


def test_credentials(programs: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={}) as network, asyncio.timeout(60):
            await programs["connect_with_file"](network.url, network.admin)
            await programs["connect_with_token"](network.url, tmp_path / "authority.pem", network.token("admin"))

    run(main())
    assert [line.partition("-")[0] for line in capsys.readouterr().out.splitlines()] == ["admin:client"] * 2


def test_history(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(2) as network, asyncio.timeout(60):
            await programs["orders"](network.url)

    run(main())
    assert capsys.readouterr().out == "so far 4\nso far 7\nsince then 7\n"


def test_the_last_additions(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0, protocol="gapless") as network, connect(network.url) as client, asyncio.timeout(60):
            await programs["handle"](network.url)
            await programs["parcels"](network.url)
            await programs["many"](network.url)
            await programs["count"](network.url)
            await client.advertise("topic = 'order'")
            await client.publish_many({"topic": "order", "amount": amount} for amount in (4, 7))
            await programs["table"](network.url)

    run(main())
    assert capsys.readouterr().out.splitlines() == [
        "try 1 False", "try 2 True", "nack 1 b'data'", "{'articles': ['nut', 'bolt']}", "True", "1 1", "11",
    ]  # fmt: skip


def test_caught_up(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client, asyncio.timeout(60):
            await client.advertise("topic = 'order'")
            await client.publish_many({"topic": "order", "amount": amount} for amount in (4, 7))
            await programs["follow_orders"](network.url)

    run(main())
    assert capsys.readouterr().out == "order 4\norder 7\nall of history is done\n"


def test_workers(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(60):
            working = [asyncio.create_task(programs["work"](network.url)) for _ in range(2)]
            ready = ""
            while ready != "at work\n" * 2:
                await asyncio.sleep(0.05)
                ready += capsys.readouterr().out
            await asyncio.gather(*(programs["ask"](network.url) for _ in range(4)))
            for task in working:
                task.cancel()

    run(main())
    assert capsys.readouterr().out == "7.5\n" * 4


def test_durable_subscriptions(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(60):
            for program in ("bill", "bill_in_batches", "bill_with_others"):
                await programs[program](network.url)

    run(main())
    assert capsys.readouterr().out == "bill 4\nbill 7\n['billing']\nprint 4\n"


def test_typed_acknowledgements(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(60):
            await programs["ship"](network.url)

    run(main())
    assert capsys.readouterr().out == "ship 2.5\n"


def test_the_table_of_conversions_is_that_of_the_code() -> None:
    from gapless.client import attribute_values

    def rows(text: str) -> set[str]:
        return {line.partition("|")[2].partition("|")[0].strip() for line in text.splitlines() if line.startswith("| ")}

    assert attribute_values.__doc__ is not None
    said = rows(attribute_values.__doc__)
    assert len(said) > 7
    assert said <= rows(TEXT)


def test_types(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(60):
            await programs["trades"](network.url)

    run(main())
    assert capsys.readouterr().out == "ACME 7\n"


def test_request_and_reply(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(chain(2)) as network, asyncio.timeout(60):
            answering = asyncio.create_task(programs["answer"](network.at("b1")))
            while capsys.readouterr().out != "ready\n":
                await asyncio.sleep(0.01)
            await programs["ask"](network.at("b0"))
            answering.cancel()
            await asyncio.wait([answering])

    run(main())
    assert capsys.readouterr().out == "7.5\n"


def test_changes_and_ends(programs: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url, name="ann") as client, asyncio.timeout(60):
            await client.advertise("TRUE")
            watching = asyncio.create_task(programs["watch"](client))
            following = asyncio.create_task(programs["follow"](client))
            while not client._connection_manager.registrations.subscriptions:
                await asyncio.sleep(0.01)
            await network.stop()
            await network.start("b0")
            await client.publish_many({"topic": "trade"} for _ in range(1_000))
            while "nothing is known" not in "".join(printed):
                await asyncio.sleep(0.01)
                printed.append(capsys.readouterr().out)
            watching.cancel()
            following.cancel()

    printed: list[str] = []
    run(main())
    lines = "".join(printed).splitlines()
    assert [line for line in lines if " b0" in line] == ["connected b0", "disconnected b0", "connected b0"]
    assert any(line.startswith("nothing is known between {'ann-") for line in lines)


def test_the_figures_are_those_of_the_code() -> None:
    assert f"up to {MAILBOXES_MAX} such subscriptions" in TEXT
    assert "at most 64 KiB" in TEXT
    assert RuntimeSettings().event_max == 64 * 1024
    RuntimeSettings(event_max=1_048_576, frame_max=2_147_483_648)
    assert set(gapless.__all__) >= {"NoReplyError", "RequestFailedError", "SubscriptionEndedError"}

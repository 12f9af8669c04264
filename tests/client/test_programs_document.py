"""The programs of docs/PROGRAMS.md run, survive kills, and pass a type checker."""

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import gapless
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.local import Local, local

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "PROGRAMS.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.DOTALL))
LINES_MAX = 25


def write(place: Path) -> list[Path]:
    for name, text in PROGRAMS.items():
        (place / name).write_text(text, encoding="utf-8")
    return [place / name for name in PROGRAMS]


@asynccontextmanager
async def started(place: Path, url: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=place, env={**os.environ, "GAPLESS_URL": url}, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


def with_network(story: Callable[[Local, gapless.Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(100),
            local(chain(3), protocol="gapless") as network,
            gapless.connect(network.url, name="shop") as shop,
        ):
            await story(network, shop)

    run(main())


def test_they_are_short_and_a_type_checker_accepts_them_without_a_cast(tmp_path: Path) -> None:
    files = write(tmp_path)
    assert len(files) == 3
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "cast" not in text
        assert "Any" not in text
        assert "ignore[" not in text
        assert sum(bool(each.strip()) for each in text.splitlines()) <= LINES_MAX
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *map(str, files)]
    completed = subprocess.run(command, cwd=ROOT, env={**os.environ, "MYPYPATH": "src"}, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_three_workers_share_a_queue(tmp_path: Path) -> None:
    write(tmp_path)

    async def story(network: Local, _: gapless.Client) -> None:
        async with (
            started(tmp_path, network.url, "squares.py", "work"),
            started(tmp_path, network.url, "squares.py", "work"),
            started(tmp_path, network.url, "squares.py", "work"),
            started(tmp_path, network.url, "squares.py", "ask") as asking,
        ):
            assert await line(asking) == str([n**2 for n in range(9)])

    with_network(story)


def test_orders_are_booked_once_whenever_the_program_is_killed(tmp_path: Path) -> None:
    write(tmp_path)

    async def story(network: Local, shop: gapless.Client) -> None:
        await shop.advertise("topic = 'order'")
        number = 0
        for _ in range(2):
            async with started(tmp_path, network.url, "booking.py") as booking:
                assert await line(booking) == "ready"
                for _ in range(12):
                    number += 1
                    await shop.publish({"topic": "order", "amount": number})
        async with started(tmp_path, network.url, "booking.py"):
            database = sqlite3.connect(tmp_path / "booked.db")
            while database.execute("SELECT count(*) FROM booked").fetchone()[0] < number:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.2)
            booked = sorted(amount for (amount,) in database.execute("SELECT amount FROM booked"))
            database.close()
            assert booked == list(range(1, number + 1))

    with_network(story)


def test_a_replay_continues_live(tmp_path: Path) -> None:
    write(tmp_path)

    async def story(network: Local, shop: gapless.Client) -> None:
        await shop.advertise("topic = 'trade'")
        await shop.publish_many({"topic": "trade", "n": n} for n in range(5))
        async with started(tmp_path, network.url, "trades.py") as trades:
            assert [await line(trades) for _ in range(5)] == [f"history {n}" for n in range(5)]
            await asyncio.sleep(0.1)
            await shop.publish_many({"topic": "trade", "n": n} for n in range(5, 8))
            assert [await line(trades) for _ in range(3)] == [f"live {n}" for n in range(5, 8)]

    with_network(story)

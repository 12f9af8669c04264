"""Runs the tutorial's programs as processes, on a network in which a broker dies."""

import asyncio
import re
import sys
from pathlib import Path

from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.pages.page import blocks
from tests.runtime.local import local

WATCH, SHOP = blocks("docs/TUTORIAL.md", "python")


def test_every_order_arrives_while_a_broker_dies(tmp_path: Path) -> None:
    (tmp_path / "watch.py").write_text(WATCH, encoding="utf-8")
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")

    async def start(name: str, url: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, str(tmp_path / name), url, stdout=asyncio.subprocess.PIPE
        )

    async def main() -> str:
        async with local(chain(3)) as network, asyncio.timeout(120):
            watch = await start("watch.py", network.at("b2"))
            assert watch.stdout is not None
            first = await watch.stdout.readline()
            shop = await start("shop.py", network.at("b0"))
            assert shop.stdout is not None
            assert await shop.stdout.readline() == b"confirmed: tea\n"
            await network.crash("b1")
            output, _ = await watch.communicate()
            confirmed, _ = await shop.communicate()
            assert confirmed == b"confirmed: milk\nconfirmed: sugar\nconfirmed: last\n"
            assert (watch.returncode, shop.returncode) == (0, 0)
            return (first + output).decode()

    lines = re.sub(r"shop-\w+", "shop", run(main()))
    assert lines == "starts at {}\nshop:1 tea\nshop:2 milk\nshop:3 sugar\nshop:4 last\n"

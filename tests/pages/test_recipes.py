"""The programs of the recipes, on a real broker."""

import asyncio
import sqlite3
from typing import Any

from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.pages.page import blocks
from tests.runtime.local import local

PAGE = "docs/RECIPES.md"


def _programs() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for shown in blocks(PAGE, "python"):
        exec(shown, found)
    return found


async def _until(done: asyncio.Future[Any], condition: Any) -> None:
    while not condition():
        assert not done.done(), done
        await asyncio.sleep(0.01)


def test_the_recipes_do_what_they_say() -> None:
    programs = _programs()
    database = sqlite3.connect(":memory:")
    handled: list[str] = []
    state: dict[str, int] = {}

    async def handle(job: Any) -> None:
        if job.payload == b"bad":
            raise ValueError("cannot be read")
        handled.append(job.id)

    async def main() -> None:
        async with (
            local(chain(1), f=0) as network,
            asyncio.timeout(60),
            connect(network.at("b0"), name="publisher") as publisher,
            connect(network.at("b0"), name="worker") as worker,
        ):
            await publisher.advertise("topic IN ('order', 'job', 'stock', 'price', 'quote')")
            letters = await publisher.subscribe("topic = 'dead-letter'")
            running = [
                asyncio.ensure_future(work)
                for work in (
                    programs["consume"](worker, database),
                    programs["work"](worker, handle),
                    programs["serve"](worker),
                )
            ]
            durable = {"billing", "jobs", "quotes"}
            while {each.name for each in await publisher.admin.list() if each.client} != durable:
                await asyncio.sleep(0.02)
            await publisher.publish({"topic": "stock", "item": "pen", "count": 3})
            running.append(asyncio.ensure_future(programs["rebuild"](worker, state)))
            await publisher.publish({"topic": "order", "amount": 4})
            await publisher.publish({"topic": "job"}, b"good")
            await publisher.publish({"topic": "job"}, b"bad")
            [letter] = await letters.take(1)
            assert letter.text("reason") == "cannot be read"
            found = await publisher.request({"topic": "quote", "amount": 3}, reply="topic = 'price'", timeout_s=20)
            assert found.integer("euro") == 6
            await _until(running[-1], lambda: state == {"pen": 3})
            await _until(running[0], lambda: database.execute("SELECT sum(amount) FROM total").fetchone() == (4,))
            assert len(handled) == 1
            latest = await asyncio.to_thread(programs["latest"], network.at("b0"), 1)
            assert latest[0]["topic"] == "price"
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    run(main())

"""Clients that come and go leave no reference cycles in a broker, so old objects need no garbage collection."""

import asyncio
import gc
import sys

from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .local import local

VISITS = """
import asyncio, sys, gapless

async def main():
    for number in range(int(sys.argv[2])):
        async with gapless.connect(sys.argv[1]) as client:
            await client.advertise("x > 0")
            subscription = await client.subscribe("x > 1")
            await client.publish({"x": 2})
            async for event in subscription:
                break

asyncio.run(main())
"""


def test_clients_that_come_and_go_leave_no_cycles() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:

            async def visit(times: int) -> None:
                command = (sys.executable, "-c", VISITS, network.at("b0"), str(times))
                process = await asyncio.create_subprocess_exec(*command)
                assert await process.wait() == 0

            await visit(2)
            gc.collect()
            gc.disable()
            try:
                await visit(20)
                assert gc.collect() < 20, "less than one for each of them"
            finally:
                gc.enable()

    run(main())

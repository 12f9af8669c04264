"""A network of real brokers for the tests of the JavaScript client. It prints their HTTP addresses, then follows
commands.

Each line of standard input is a command, answered by one line: `crash NAME` stops a broker without a goodbye, and `cut
NAME` ends its HTTP connections. The network stops at the end of the input.
"""

import asyncio
import json
import sys

from gapless.runtime.event_loop import run

from .serving import SLOW_SUSPICION, Serving, serving


async def main() -> None:
    protocol = sys.argv[1] if len(sys.argv) > 1 else "gapless"
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with serving(3, f=1, protocol=protocol, runtime=SLOW_SUSPICION) as http:
        print(json.dumps({name: http.url(name) for name in http.servers}), flush=True)
        while line := (await reader.readline()).decode().split():
            await _obey(http, *line)
            print("{}", flush=True)


async def _obey(http: Serving, command: str, name: str) -> None:
    server = http.servers[name]
    for connection in list(server._state.connections):
        if connection.transport is not None:
            connection.transport.abort()
    if command == "crash":
        del http.servers[name]
        await server.close()
        await http.network.crash(name)


run(main())

"""Measures how a client that always exceeds its limits affects other clients.

    python benchmarks/neighbour_at_limit.py            # two minutes
    python benchmarks/neighbour_at_limit.py --quick    # a short run

One broker with TLS and users runs in a separate process. Two *quiet* clients send each other events at a constant rate.
A *loud* client, in a separate process, belongs to a user with limits. It publishes as fast as it can, requests
subscriptions that it is not permitted to have, reads history repeatedly, and connects continuously. It is active and
inactive in turns of some seconds within the same run, so both are measured under the same conditions. For both, the
benchmark prints the latencies of the quiet clients, and the processor time of the broker and the loud client. It fails
if the 99th percentile of the latencies rises by more than a tenth, in the median of the turns.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.network import said  # noqa: E402
from benchmarks.peers.secure_system import SecureGapless  # noqa: E402

import gapless  # noqa: E402
from gapless.errors import GaplessError  # noqa: E402
from gapless.security.tokens import hash_token, make_token  # noqa: E402

MOST = 1.10
PACE_S = 0.005
ATTEMPT_S = 0.005
"""The pause of the loud client between two calls, so that the speed of the client itself does not matter."""
CLIENTS = 3
"""The number of connections of the loud client: while it publishes at full speed, other requests on the same
connection would wait.
"""
SETTLE_S = 0.5
"""The pause after each change of turns."""
LIMITS = """
[broker_limits]
connections_per_s = 20

[[users]]
name = "loud"
tokens = ["{hash}"]
publish = ["topic = 'loud'"]
subscribe = ["topic = 'loud'"]
history = true

[users.limits]
connections = 4
connections_per_s = 6
subscriptions = 2
advertisements = 1
publications_per_s = 200
bytes_per_s = 100000
history_bytes_per_s = 100000
"""


class Limited(SecureGapless):
    """A network with a user who has limits."""

    def more(self, folder: Path) -> str:
        text = super().more(folder)
        token = make_token("loud")
        with (folder / "users.toml").open("a", encoding="utf-8") as file:
            file.write(LIMITS.format(hash=hash_token(token)))
        credentials = folder / "loud.toml"
        credentials.touch(mode=0o600)
        credentials.write_text(f'authority = "authority.pem"\ntoken = "{token}"\n', encoding="utf-8")
        return text


# ---- the loud client ------------------------------------------------------------------------------------------------


class NoisyNeighbour:
    """A client that exceeds its limits during its turns."""

    def __init__(self, url: str, credentials: Path) -> None:
        self._url = url
        self._credentials = credentials
        self._turn = asyncio.Event()
        self.attempts = 0

    async def run(self) -> None:
        """Run until the pipe is closed: a line begins a turn, and the next line ends it."""
        async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            client, asking, reading = [
                await stack.enter_async_context(await gapless.connect(self._url, credentials=self._credentials))
                for _ in range(CLIENTS)
            ]
            await client.advertise("topic = 'loud'")
            print(json.dumps({"ready": True}), flush=True)
            doing = [
                tasks.create_task(work)
                for work in (
                    client.publish_many(self._events()), self._subscribe(asking), self._read(reading), self._dial()
                )
            ]  # fmt: skip
            while await asyncio.to_thread(sys.stdin.readline):
                self._turn.clear() if self._turn.is_set() else self._turn.set()
            print(json.dumps({"attempts": self.attempts}), flush=True)
            for task in doing:
                task.cancel()

    async def _attempt(self) -> None:
        await asyncio.sleep(ATTEMPT_S)
        await self._turn.wait()
        self.attempts += 1

    async def _events(self) -> AsyncIterator[tuple[dict[str, str], bytes]]:
        while True:
            await self._turn.wait()
            yield {"topic": "loud"}, bytes(1_000)

    async def _subscribe(self, client: gapless.Client) -> None:
        while True:
            await self._attempt()
            with contextlib.suppress(GaplessError):
                await client.subscribe(f"topic = 'loud' AND n = {self.attempts}")

    async def _read(self, client: gapless.Client) -> None:
        while True:
            await self._attempt()
            with contextlib.suppress(GaplessError):
                async for _ in await client.read("topic = 'loud'"):
                    pass

    async def _dial(self) -> None:
        while True:
            await self._attempt()
            with contextlib.suppress(GaplessError, OSError):
                await (await gapless.connect(self._url, credentials=self._credentials, timeout_s=1)).close()


# ---- the quiet clients ----------------------------------------------------------------------------------------------


class MeasuredPair:
    """Two clients, and the latency of each event between them."""

    def __init__(self, broker: int) -> None:
        self.taken: list[float] = []
        self.work_s = {"silent": [0.0, 0.0], "loud": [0.0, 0.0]}
        """The processor time of the broker and of the loud client, which depends less on other load than latencies
        do.
        """
        self._broker = broker

    async def measure(self, url: str, credentials: Path, loud: "subprocess.Popen[str]", turns: int, turn_s: float) -> (
        list[tuple[list[float], list[float]]]
    ):  # fmt: skip
        """Return the latencies of each pair of turns, quiet and loud."""
        connect = gapless.connect
        async with connect(url, credentials=credentials) as one, connect(url, credentials=credentials) as two:
            await one.advertise("topic = 'quiet'")
            subscription = await two.subscribe("topic = 'quiet'")
            talking = [asyncio.create_task(work) for work in (self._publish(one), self._take(subscription))]
            found = []
            for _ in range(turns):
                pair = []
                for name in ("silent", "loud"):
                    await asyncio.sleep(SETTLE_S)
                    taken: list[float] = []
                    self.taken, pids = taken, (self._broker, loud.pid)
                    begun = [work_of(pid) for pid in pids]
                    await asyncio.sleep(turn_s)
                    for place, pid in enumerate(pids):
                        self.work_s[name][place] += work_of(pid) - begun[place]
                    pair.append(taken)
                    self.taken = []
                    assert loud.stdin is not None
                    loud.stdin.write("\n")
                    loud.stdin.flush()
                found.append((pair[0], pair[1]))
            for task in talking:
                task.cancel()
            return found

    async def _publish(self, client: gapless.Client) -> None:
        due = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            while True:
                due = max(due + PACE_S, time.perf_counter() - 1)
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                now = str(time.perf_counter()).encode()
                tasks.create_task(client.publish({"topic": "quiet"}, now))

    async def _take(self, subscription: gapless.Subscription) -> None:
        async for event in subscription:
            self.taken.append(time.perf_counter() - float(event.payload))


def work_of(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def started(port: int, folder: str) -> "Iterator[subprocess.Popen[str]]":
    """Start the loud client in a separate process."""
    command = [sys.executable, str(Path(__file__)), "--loud", str(port), "--folder", folder]
    process = subprocess.Popen(command, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said(process)
        yield process
    finally:
        process.kill()
        process.wait()


def p(share: float, values: list[float]) -> float:
    """Return a percentile in milliseconds."""
    return sorted(values)[int(share * len(values))] * 1000


def main() -> int:
    """Print the table; return 1 if the loud client affects the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--loud", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loud:
        os.nice(19)  # on a machine of its own, the client would take no processor time from the others
        uvloop.run(NoisyNeighbour(f"gapless+tls://127.0.0.1:{given.loud}", given.folder / "loud.toml").run())
        return 0
    turns, turn_s = (4, 2.0) if given.quick else (10, 5.0)
    system = Limited()
    with tempfile.TemporaryDirectory() as folder, system.serve(Path(folder)) as port, started(port, folder) as loud:
        assert system.credentials is not None
        url = f"gapless+tls://127.0.0.1:{port}"
        quiet = MeasuredPair(system.servers[0].pid)
        pairs = uvloop.run(quiet.measure(url, system.credentials, loud, turns, turn_s))
        assert loud.stdin is not None
        loud.stdin.close()
        attempts = said(loud)["attempts"]
    halves = {name: [value for pair in pairs for value in pair[place]] for place, name in enumerate(("silent", "loud"))}
    ratios = [p(0.99, loudly) / p(0.99, silently) for silently, loudly in pairs]
    ratio = statistics.median(ratios)
    figures = {
        name: {
            "p50_ms": p(0.5, taken),
            "p99_ms": p(0.99, taken),
            "events": len(taken),
            "broker_busy": quiet.work_s[name][0] / (turns * turn_s),
            "it_is_busy": quiet.work_s[name][1] / (turns * turn_s),
        }
        for name, taken in halves.items()
    }
    table = Table(title=f"two clients at {1 / PACE_S:,.0f} events/s, beside one at its limits")
    for name in ("it is", "events", "p50 ms", "p99 ms", "broker busy", "itself"):
        table.add_column(name, justify="left" if name == "it is" else "right")
    for name, row in figures.items():
        shown = (f"{row['events']:,}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['broker_busy']:.1%}")
        table.add_row(name, *shown, f"{row['it_is_busy']:.1%}")
    console = Console()
    console.print(table)
    each = ", ".join(f"{value:.2f}" for value in sorted(ratios))
    console.print(f"p99 {ratio:.2f} times as long in the median of {turns} pairs ({each}); {MOST} is the most")
    console.print(f"longest turn of the broker: {system.longest_turn[0]:.0f} ms")
    console.print(f"it made {attempts:,} calls that it was denied or had to wait for")
    if given.out:
        given.out.write_text(json.dumps({**figures, "ratio": ratio, "ratios": ratios, "attempts": attempts}))
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())

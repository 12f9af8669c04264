"""Measures how much ten open consoles slow down a subscriber.

    python benchmarks/consoles.py            # four minutes
    python benchmarks/consoles.py --quick    # a short run

One broker delivers 1,000 events per second, while ten consoles are opened and closed every few seconds. Broker,
publisher, subscriber and consoles are separate processes. Each console watches all topics that any view of the page
watches, and has a live stream of rarely published events.

Latencies are compared second by second: the median of the p99 of all seconds with consoles, and of those without. Other
work on the machine changes both. To measure this effect, the seconds without consoles are divided into two groups at
random, many times: 95 % of the differences between the groups are below the *noise*. The processor time that consoles
cost the broker hardly depends on other work. The benchmark fails if the p99 rises by more than the noise, if a console
takes more than 4 ms of the broker's processor in each second, or if a turn of its event loop that served a request took
more than 20 ms.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.network import said, start  # noqa: E402
from benchmarks.peers.__main__ import STAMP  # noqa: E402
from benchmarks.peers.gapless_system import Gapless  # noqa: E402

from gapless.http.step_meter import STEP_MAX_MS  # noqa: E402
from gapless.runtime.event_loop import run  # noqa: E402
from gapless.runtime.fleet import free_ports  # noqa: E402

RATE = 1_000
CONSOLES = 10
PHASES = 40
"""The number of phases; half of them have consoles."""
SETTLE_S, PHASE_S = 1.0, 4
"""The pause after consoles open or close, and the duration of a measurement."""
CONSOLE_MAX_MS = 4.0
"""The maximum processor time per second and console."""
DIVISIONS = 2_000
WATCHED = "/api/watch?topic=network&topic=sessions&topic=durables&topic=log"
"""The topics that a console watches: more than any view of the page."""
TAILED = "/events?filter=topic%20%3D%20%27seldom%27"
STATES = ("without", "with")


class GaplessWithHttp(Gapless):
    """A broker that serves HTTP."""

    def __init__(self) -> None:
        super().__init__()
        self.http = f"127.0.0.1:{free_ports(1)[0]}"

    def of_broker(self, name: str, folder: Path) -> str:
        return f'http = "{self.http}"\n'


# ---- the consoles, and the subscriber ---------------------------------------------------------------------


async def look(address: str) -> None:
    """Open or close ten consoles for each line of standard input.

    Browsers run on other machines, so this process uses only the processor time that the others leave."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    consoles: list[asyncio.Task[None]] = []
    while await asyncio.to_thread(sys.stdin.readline):
        if consoles:
            for task in consoles:
                task.cancel()
            await asyncio.gather(*consoles, return_exceptions=True)
            consoles = []
        else:
            ready = [asyncio.Event() for _ in range(2 * CONSOLES)]
            paths = CONSOLES * (WATCHED, TAILED)
            consoles = [
                asyncio.ensure_future(read(address, path, each)) for path, each in zip(paths, ready, strict=True)
            ]
            await asyncio.gather(*(each.wait() for each in ready))
        print(json.dumps({"open": len(consoles)}), flush=True)


async def read(address: str, path: str, ready: asyncio.Event) -> None:
    """Read the response to one request, with as little work as possible: browsers run on other machines."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        while await reader.read(1 << 16):
            ready.set()
        raise AssertionError(f"{path} ended")
    finally:
        writer.close()


async def take(port: int) -> None:
    """Subscribe; for each input line, print the latencies of the events since the last one."""
    found: list[tuple[int, int]] = []

    def note(payload: bytes) -> bool:
        published = STAMP.unpack_from(payload)[1]
        found.append((published, time.monotonic_ns() - published))
        return True

    def ready() -> None:
        print(json.dumps({"ready": True}), flush=True)

    taking = asyncio.ensure_future(Gapless().subscribe(port, ready, note))
    await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps({"found": found}), flush=True)
    taking.cancel()


# ---- the measurement --------------------------------------------------------------------------------------


@dataclass
class State:
    """The measurements with or without consoles."""

    p50_ms: list[float] = field(default_factory=list)
    """The median latency of each second."""
    p99_ms: list[float] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)
    """The processor time per second of each phase."""


def measure(phases: int) -> tuple[dict[str, State], float]:
    """Run all phases; return the measurements and the longest turn that served a request."""
    system = GaplessWithHttp()
    states = {name: State() for name in STATES}
    begins: list[tuple[str, int]] = []
    command = [sys.executable, str(Path(__file__))]
    with tempfile.TemporaryDirectory() as folder, system.serve(Path(folder)) as port:
        processes: list[subprocess.Popen[str]] = []
        try:
            for more in (["--look", system.http], ["--take", str(port)]):
                processes.append(
                    subprocess.Popen(
                        [*command, *more], cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                    )
                )
            consoles, taker = processes
            assert consoles.stdin is not None
            assert taker.stdin is not None
            said(taker)
            processes.append(start("publish", system, port, RATE * 3_600, RATE))
            time.sleep(SETTLE_S)
            for number in range(phases):
                if number:
                    print(file=consoles.stdin, flush=True)
                    said(consoles)
                time.sleep(SETTLE_S)
                name = STATES[number % 2]
                begun_ns, worked = time.monotonic_ns(), processor_ns(system.servers[0].pid)
                time.sleep(PHASE_S)
                spent = (processor_ns(system.servers[0].pid) - worked) / (time.monotonic_ns() - begun_ns)
                states[name].processor_ms.append(1000 * spent)
                begins += [(name, begun_ns + second * 10**9) for second in range(PHASE_S)]
            time.sleep(SETTLE_S)
            print(file=taker.stdin, flush=True)
            found = said(taker)["found"]
            turns = httpx.get(f"http://{system.http}/status", trust_env=False).json()["turns"]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    for name, begin in begins:
        taken = sorted(latency for published, latency in found if begin <= published < begin + 10**9)
        states[name].p50_ms.append(taken[len(taken) // 2] / 1e6)
        states[name].p99_ms.append(taken[int(len(taken) * 0.99)] / 1e6)
    return states, turns["longest_ms"] if "HTTP request" in turns["what"] else 0.0


def processor_ns(process: int) -> int:
    """Return the processor time of a process."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{process}/task").glob("*/schedstat"))


def noise(figures: Sequence[float]) -> float:
    """Return the difference below which 95 % of the random divisions of the figures into two groups stay."""
    draw = random.Random(0)
    differences = []
    for _ in range(DIVISIONS):
        mixed = draw.sample(figures, len(figures))
        half = len(mixed) // 2
        differences.append(abs(statistics.median(mixed[:half]) - statistics.median(mixed[half:])))
    return sorted(differences)[int(0.95 * DIVISIONS)]


def main() -> int:
    """Print the table; return 1 if the consoles slow down the subscriber."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--look", default="", help=argparse.SUPPRESS)
    parser.add_argument("--take", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.look or arguments.take:
        with suppress(KeyboardInterrupt):
            run(look(arguments.look) if arguments.look else take(arguments.take))
        return 0
    states, request_ms = measure(6 if arguments.quick else PHASES)
    table = Table(title=f"{RATE:,} events per second, without and with {CONSOLES} open consoles")
    for heading in ("", "p50 ms", "p99 ms", "processor ms/s"):
        table.add_column(heading, justify="right" if heading else "left")
    middle = {
        name: {key: statistics.median(getattr(state, key)) for key in ("p50_ms", "p99_ms", "processor_ms")}
        for name, state in states.items()
    }
    for name, row in middle.items():
        table.add_row(name, f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['processor_ms']:.0f}")
    Console().print(table)
    rise = {key: middle["with"][key] - middle["without"][key] for key in middle["with"]}
    console_ms, noise_ms = rise["processor_ms"] / CONSOLES, noise(states["without"].p99_ms)
    Console().print(
        f"with consoles the p99 is {rise['p99_ms']:+.2f} ms; the noise is {noise_ms:.2f} ms\n"
        f"each console takes {console_ms:.2f} ms of the broker's processor in each second\n"
        f"the longest turn that served a request took {request_ms:.1f} ms"
    )
    if arguments.out:
        figures = {**middle, "noise_ms": noise_ms, "console_ms": console_ms, "request_ms": request_ms}
        arguments.out.write_text(json.dumps(figures))
    is_noticed = rise["p99_ms"] > noise_ms
    return 1 if is_noticed or console_ms > CONSOLE_MAX_MS or request_ms > STEP_MAX_MS else 0


if __name__ == "__main__":
    sys.exit(main())

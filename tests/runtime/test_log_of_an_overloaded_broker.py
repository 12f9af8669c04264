"""The number of lines that a broker in a separate process logs while all its clients repeatedly stop and continue."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from gapless.runtime.fleet import free_ports
from gapless.runtime.log_limit import LINES_A_MINUTE

CLIENTS, TIMES = 40, 3
OTHERS = 20
"""The number of lines about the broker itself."""
PROGRAM = """
import asyncio, sys, gapless

async def main():
    clients = [gapless.connect(sys.argv[1], name=f"c{number}", timeout_s=60) for number in range(int(sys.argv[2]))]
    await asyncio.gather(*(each.__aenter__() for each in clients))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
NETWORK = """
[network]
f = 0
[protocol]
name = "gapless"
[runtime]
heartbeat_ms = 50
suspect_ms = 200
[[brokers]]
name = "b0"
address = "127.0.0.1:{port}"
"""


def test_suspicions_of_all_clients_are_a_bounded_number_of_lines(tmp_path: Path) -> None:
    [port] = free_ports(1)
    (tmp_path / "network.toml").write_text(NETWORK.format(port=port), encoding="utf-8")
    log = tmp_path / "log"
    with log.open("wb") as out:
        command = [
            sys.executable,
            "-m",
            "gapless",
            "broker",
            "--config",
            str(tmp_path / "network.toml"),
            "--name",
            "b0",
        ]
        broker = subprocess.Popen(command, stdout=out, stderr=out)
        clients = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, f"gapless://127.0.0.1:{port}", str(CLIENTS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert clients.stdout is not None
            assert clients.stdout.readline() == "ready\n"
            for _ in range(TIMES):
                os.kill(clients.pid, signal.SIGSTOP)
                time.sleep(2.0)  # a client whose kernel acknowledges is suspected after 6 times suspect_ms
                os.kill(clients.pid, signal.SIGCONT)
                time.sleep(0.5)
        finally:
            clients.kill()
            clients.wait()
            broker.send_signal(signal.SIGTERM)
            broker.wait(30)
    lines = log.read_text(encoding="utf-8").splitlines()
    found = re.findall(r"omitted ([\d,]+) more lines", "\n".join(lines))
    left_out = sum(int(count.replace(",", "")) for count in found)
    most = 2 * (LINES_A_MINUTE + 1) + OTHERS
    assert len(lines) <= most
    assert len(lines) + left_out > 2 * most, "far more happened than was written; each suspicion was written or counted"

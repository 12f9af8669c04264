"""Runs a whole network on one machine: starts, monitors, pauses, kills and stops a process for each broker.

For development and tests. The brokers stop when this process ends, for whatever reason.
"""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gapless.errors import ConfigError, ConnectError, GaplessError
from gapless.overlay import Overlay, random_tree
from gapless.protocol import largest_f
from gapless.runtime.access import CLEAR
from gapless.runtime.network_file import BrokerEntry, NetworkConfig, ProtocolEntry, TreeEntry, check_network
from gapless.runtime.probe import ask_for_report
from gapless.runtime.settings import RuntimeSettings

__all__ = ["Fleet", "free_ports", "local_network"]

PORTS = (10_000, 32_000, 50)
"""The first port, the last port, and how many ports a process reserves at a time."""
REPORT_S = 1.0
"""The timeout of a status query, in seconds."""
KILL_S = 5.0
"""How long a stopping broker may take before it is killed."""


def free_ports(count: int) -> list[int]:
    """Return ports that no other caller gets while this process runs, even if nothing listens on them yet."""
    found: list[int] = []
    for port in _ports_of_this_process:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise ConfigError("this machine has no free port; set ports in a network file")


def _own_ports() -> Iterator[int]:
    """Yield ports below the ephemeral range. A process reserves a block of ports by listening on the first."""
    guards = []
    blocks = [*range(*PORTS)]
    random.shuffle(blocks)
    for first in blocks:
        with suppress(OSError):
            guards.append(socket.create_server(("127.0.0.1", first)))
            yield from range(first + 1, first + PORTS[2])


_ports_of_this_process = _own_ports()


def local_network(
    overlay: Overlay | int,
    *,
    f: int | None = None,
    ports: list[int] | None = None,
    http_ports: list[int] | None = None,
    name: str = "local",
    protocol: ProtocolEntry | None = None,
    runtime: RuntimeSettings | None = None,
    data: Path | None = None,
) -> NetworkConfig:
    """Return the validated configuration of a network on this machine. `overlay` is its tree, or the number of brokers,
    of which each gets at most three neighbours.

    If `f` is not given, it is 1 where the protocol accepts that, and 0 in a smaller network.
    """
    tree = random_tree(overlay, seed=1, max_degree=3) if isinstance(overlay, int) else overlay
    chosen = ports or free_ports(len(tree.brokers))
    https = [f"127.0.0.1:{port}" for port in http_ports] if http_ports else [""] * len(chosen)
    config = NetworkConfig(
        brokers=tuple(
            BrokerEntry(broker, f"127.0.0.1:{port}", http=http, data="" if data is None else str(data / broker))
            for broker, port, http in zip(tree.brokers, chosen, https, strict=True)
        ),
        network=TreeEntry(name, f or 0, tree.edges),
        protocol=protocol or ProtocolEntry(),
        runtime=runtime or RuntimeSettings(),
    )
    if f is None:
        most = min(1, len(tree.brokers) - 1)
        chosen_f = largest_f(config.spec, config.overlay, config.options, most)
        config = msgspec.structs.replace(config, network=TreeEntry(name, chosen_f, tree.edges))
    check_network(config)
    return config


class Fleet:
    """The processes of a network's brokers. `directory` contains the network file and a log for each broker."""

    def __init__(self, config: NetworkConfig, directory: Path, *, trace: str = "", as_json: bool = False) -> None:
        self.config = config
        self.access = CLEAR if config.security is None else config.security.access(config.brokers[0].name)
        """The access for status queries, with the certificate of a broker, whose key is on this machine."""
        self.directory = directory
        self._trace = trace
        self._as_json = as_json
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "network.toml"
        self.file.write_text(config.to_toml(), encoding="utf-8")

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *error: object) -> None:
        self.take_down()

    # ---- one broker ---------------------------------------------------------------------------------------

    def start(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        """Start or restart the broker, with additional environment variables."""
        assert not self.is_alive(name), f"{name} runs already"
        command = [sys.executable, "-m", "gapless", "broker", "--config", str(self.file), "--name", name]
        command += ["--parent", str(os.getpid())]
        command += ["--trace", self._trace] if self._trace else []
        command += ["--json"] if self._as_json else []
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def is_alive(self, name: str) -> bool:
        """Return whether the process exists, even if it is paused."""
        return name in self._processes and self._processes[name].poll() is None

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def exit_code(self, name: str) -> int | None:
        """Return the exit code of the broker, or None while it runs."""
        return self._processes[name].poll() if name in self._processes else None

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()

    def dismiss(self, name: str) -> None:
        """Stop the broker gracefully (SIGTERM)."""
        self._processes[name].terminate()
        self._processes[name].wait(KILL_S)

    def freeze(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGCONT)

    def memory_kib(self, name: str) -> tuple[int, int]:
        """Return the current and the peak memory in KiB, or zeros if the system does not report them."""
        try:
            text = Path(f"/proc/{self.pid(name)}/status").read_text(encoding="ascii")
        except (OSError, KeyError):
            return 0, 0
        facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        return tuple(int(facts.get(key, "0").split()[0]) for key in ("VmRSS", "VmHWM"))  # type: ignore[return-value]

    # ---- all brokers --------------------------------------------------------------------------------------

    async def report(self, name: str) -> dict[str, Any]:
        """Return the broker's status report, or an empty one if it does not answer."""
        with suppress(OSError, TimeoutError, GaplessError):
            return await ask_for_report(self.config.addresses[name], timeout_s=REPORT_S, access=self.access)
        return {}

    async def until_whole(self, patience_s: float) -> None:
        """Wait until every broker has joined and is not excluded by any other."""
        deadline = time.monotonic() + patience_s
        for name in self.names:
            while True:
                report = await self.report(name)
                overview = report.get("overview", {})
                if report.get("ready") and overview.get("joined", True) and not overview.get("replaced_by"):
                    break
                if not self.is_alive(name):
                    raise self.complain(name)
                if time.monotonic() > deadline:
                    raise ConnectError(f"broker {name!r} does not rejoin: {report}")
                await asyncio.sleep(0.05)

    @property
    def names(self) -> tuple[str, ...]:
        return self.config.overlay.brokers

    def start_all(self) -> None:
        for name in self.names:
            self.start(name)

    def take_down(self) -> None:
        """Stop all brokers gracefully; kill those that do not stop in time."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        deadline = time.monotonic() + KILL_S
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def complain(self, name: str) -> ConfigError:
        """Return an error with the exit code of a broker and the last line of its log."""
        lines = self.log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1] if lines else "it logged nothing"
        return ConfigError(f"broker {name!r} ended with code {self.exit_code(name)}: {last.removeprefix('gapless: ')}")

"""`gapless up`: runs a whole network on this machine, for development, with a live view.

Each broker is a process. One that exits is restarted after a moment and rejoins. If it keeps failing, for example
because its disk is damaged, the pauses grow, and the reason is printed once.
"""

import asyncio
import contextlib
import errno
import math
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gapless.cli.status import remarks, reports_of, state_text
from gapless.cli.terminal import output_console
from gapless.errors import ConfigError
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import NetworkConfig, ProtocolEntry, SecurityEntry, check_network, load_network

__all__ = ["run_network"]

REFRESH_S = 0.5
RESTART_S, RESTART_MAX_S = 2.0, 60.0
"""The pause before a broker that died is restarted, and its maximum. The pause doubles if the broker dies again within
`RESTART_MAX_S`."""
START_S = 20.0
HTTP_OFFSET = 1000
"""The difference between the ports of a broker for HTTP and for the protocol."""
PORT_MAX = 65_535


def run_network(
    file: Path | None, brokers: int, *, f: int | None, port: int, protocol: str, trace: Path | None, logs: Path | None,
    seconds: float | None, restart: bool, security: Path | None = None, data: Path | None = None,
) -> int:  # fmt: skip
    """Start the network, show it, and stop it at the end."""
    if file is None and brokers > 0:
        _require_free_ports(brokers, port)
    config = load_network(file) if file else _new_network(brokers, f, port, protocol)
    if data is not None:
        config = _with_data(config, data.absolute())
    credentials = None
    if security is not None:
        config, user = _secured(config, security)
        credentials = (security / "users" / f"{user}.toml").absolute() if user else None
    if trace is not None:
        trace.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        directory = logs or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gapless-")))
        trace_path = "" if trace is None else str(trace.absolute())
        fleet = stack.enter_context(Fleet(config, directory, trace=trace_path))
        return run(_Up(fleet, restart=restart, seconds=seconds, trace=trace, credentials=credentials).run())


def _require_free_ports(brokers: int, port: int) -> None:
    """Raise an error before any broker starts if a port is in use. The error names the option that chooses
    other ports."""
    highest = PORT_MAX + 1 - HTTP_OFFSET - brokers
    if port > highest:
        raise ConfigError(
            f"--port {port} is too high: the HTTP ports of {brokers} brokers are {HTTP_OFFSET:,} above "
            f"their own; {highest} is the maximum"
        )
    taken = [
        each for first in (port, port + HTTP_OFFSET) for each in range(first, first + brokers) if not _is_free(each)
    ]
    if taken:
        shown = ", ".join(map(str, taken[:5])) + (", …" if len(taken) > 5 else "")
        ports, more = ("port", "is") if len(taken) == 1 else ("ports", "are")
        raise ConfigError(
            f"{ports} {shown} of 127.0.0.1 {more} in use; choose others with --port N (brokers listen "
            f"on N to N+{brokers - 1}, and serve HTTP on N+{HTTP_OFFSET} to "
            f"N+{HTTP_OFFSET + brokers - 1}), or stop the programs that use them"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def _secured(config: NetworkConfig, directory: Path) -> tuple[NetworkConfig, str]:
    """Return the network with the certificates and users of this directory, and the name of one of these users.

    Missing or expired certificates are created.
    """
    from gapless.cli.security import make_for
    from gapless.security.development import security_section

    user = make_for(config, directory).user
    section = SecurityEntry(**security_section(directory.absolute()))
    return msgspec.structs.replace(config, security=section), user


def _with_data(config: NetworkConfig, directory: Path) -> NetworkConfig:
    """Return the network with a data directory for each broker below this directory."""
    entries = [msgspec.structs.replace(entry, data=str(directory / entry.name)) for entry in config.brokers]
    config = msgspec.structs.replace(config, brokers=tuple(entries))
    check_network(config)
    return config


def _new_network(brokers: int, f: int | None, port: int, protocol: str) -> NetworkConfig:
    if brokers < 1:
        raise ConfigError(f"--brokers {brokers}: a network has at least one broker")
    if f is not None and f > brokers - 1:
        raise ConfigError(f"--f {f}: of {brokers} brokers at most {brokers - 1} may fail, because one has to remain")
    return local_network(
        brokers, f=f, ports=list(range(port, port + brokers)), protocol=ProtocolEntry(protocol),
        http_ports=list(range(port + HTTP_OFFSET, port + HTTP_OFFSET + brokers)),
    )  # fmt: skip


class _Up:
    """A running network."""

    def __init__(
        self, fleet: Fleet, *, restart: bool, seconds: float | None, trace: Path | None, credentials: Path | None
    ) -> None:  # fmt: skip
        self._fleet = fleet
        self._credentials = credentials
        self._restart = restart
        self._seconds = seconds
        self._trace = trace
        self._console = output_console()
        self._console.width = max(self._console.width, 80)
        self._stop_requested = asyncio.Event()
        self._died: dict[str, float] = {}
        self._restarted: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        """The pause before the next restart of each broker that died."""
        self._before: dict[str, tuple[float, int]] = {}

    async def run(self) -> int:
        """Run until interrupted, or until the time limit."""
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stop_requested.set)
        self._fleet.start_all()
        await self._wait_until_ready()
        url = self._fleet.config.scheme + next(iter(self._fleet.config.addresses.values()))
        heading = Text.assemble("up: ", (url, "bold"), f"   logs in {self._fleet.directory}")
        self._console.print(heading, soft_wrap=True)
        if self._fleet.config.network.f == 0 and len(self._fleet.names) == 2:
            self._console.print(
                "f = 0: if a broker fails, the others wait for it; --brokers 3 is enough for f = 1", soft_wrap=True
            )
        if self._credentials is not None:
            self._console.print(f"connect with:  export GAPLESS_CREDENTIALS={self._credentials}", soft_wrap=True)
        end = None if self._seconds is None else time.monotonic() + self._seconds
        if self._console.is_terminal:
            with Live(console=self._console, auto_refresh=False) as live:
                await self._watch(end, live)
        else:
            await self._watch(end, None)
        self._console.print("stopping the network")
        return 0

    async def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while not self._stop_requested.is_set():
            self._must_be_alive()
            reports = await reports_of(self._fleet.config.addresses, self._fleet.access)
            if all(self._is_ready(name, report) for name, report in reports.items()):
                return
            if time.monotonic() > deadline:
                late = [name for name, report in reports.items() if not self._is_ready(name, report)]
                raise ConfigError(f"{', '.join(late)} did not start in {START_S:g} s; see {self._fleet.log(late[0])}")
            await asyncio.sleep(0.1)

    def _is_ready(self, name: str, report: dict[str, Any] | None) -> bool:
        """Return whether the broker has joined. The report of another process on its port does not count."""
        return report is not None and report["ready"] and report["pid"] == self._fleet.pid(name)

    def _must_be_alive(self) -> None:
        for name in self._fleet.names:
            if not self._fleet.is_alive(name):
                raise self._fleet.complain(name)

    async def _watch(self, end: float | None, live: Live | None) -> None:
        while not self._stop_requested.is_set() and (end is None or time.monotonic() < end):
            self._restart_crashed()
            if live is not None:
                reports = await reports_of(self._fleet.config.addresses, self._fleet.access)
                live.update(self._view(reports), refresh=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop_requested.wait(), REFRESH_S)

    def _restart_crashed(self) -> None:
        now = time.monotonic()
        for name in self._fleet.names:
            if self._fleet.is_alive(name):
                continue
            if name not in self._died:
                self._died[name] = now
                is_again = now - self._restarted.get(name, -math.inf) < RESTART_MAX_S
                self._pauses[name] = min(2 * self._pauses[name], RESTART_MAX_S) if is_again else RESTART_S
                self._report_crash(name)
            elif self._restart and now - self._died[name] >= self._pauses[name]:
                del self._died[name]
                self._restarted[name] = now
                self._fleet.start(name)
                if self._pauses[name] == RESTART_S:
                    self._console.print(Text(f"restarting {name}", "yellow"))

    def _report_crash(self, name: str) -> None:
        """Print that a broker died: the first time, and again if it dies just after a restart."""
        if self._pauses[name] == RESTART_S:
            self._console.print(Text(f"{name} exited with code {self._fleet.exit_code(name)}", "red"))
        elif self._pauses[name] == 2 * RESTART_S:
            more = f"; pauses before restarts grow to {RESTART_MAX_S:g} s" if self._restart else ""
            self._console.print(Text(f"{self._fleet.complain(name)}{more}", "red"))

    def _view(self, reports: dict[str, dict[str, Any] | None]) -> RenderableType:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
        table.add_column("broker", no_wrap=True, style="bold")
        table.add_column("", no_wrap=True)
        for heading in ("pid", "port", "links", "clients", "subs", "kept", "queued", "in/s", "MiB"):
            table.add_column(heading, justify="right", no_wrap=True)
        for name, report in reports.items():
            table.add_row(*self._row(name, report))
        config = self._fleet.config
        heading = f"{config.spec.name}, f = {config.network.f}; Ctrl-C stops the network"
        lines = [Text(line, "yellow") for line in remarks(reports)]
        return Group(Text(heading, "dim"), table, *lines)

    def _row(self, name: str, report: dict[str, Any] | None) -> list[RenderableType]:
        port = self._fleet.config.addresses[name].rpartition(":")[2]
        if report is None:
            return [name, Text("down", "bold red"), "", port]
        links = report["links"].values()
        state = report["state"]
        kept = sum(size for kind, size in state.items() if kind not in ("subscriptions", "advertisements"))
        return [
            name,
            state_text(report),
            str(self._fleet.pid(name)),
            port,
            f"{sum(link['up'] for link in links)}/{len(links)}",
            f"{report['clients']}",
            f"{state.get('subscriptions', 0)}",
            f"{kept:,}",
            f"{max([report['client_queue'], *(link['queue'] for link in links)]):,}",
            f"{self._rate(name, report['messages_in']):,.0f}",
            f"{self._fleet.memory_kib(name)[0] / 1024:.0f}",
        ]

    def _rate(self, name: str, messages: int) -> float:
        now = time.monotonic()
        then, before = self._before.get(name, (now - REFRESH_S, messages))
        self._before[name] = (now, messages)
        return max(0.0, (messages - before) / max(now - then, 1e-3))

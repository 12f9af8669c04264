"""`gapless status`: shows the state of all brokers."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.subscriptions import lag_text
from gapless.cli.terminal import output_console, print_json
from gapless.client.bootstrap import find_network
from gapless.errors import ConfigError, ConnectError, WireError
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.event_loop import run
from gapless.runtime.network_file import NetworkConfig, load_network
from gapless.runtime.probe import ask_for_report

__all__ = ["network_addresses", "remarks", "reports_of", "show_status", "state_text", "status_table"]

PATIENCE_S = 2.0
SHOWN = 5


def show_status(url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Query every broker; return 0 if all are up and none is blocked."""
    addresses, access = network_addresses(url, file, credentials)
    reports = run(reports_of(addresses, access))
    if not any(reports.values()):
        raise ConnectError(f"no broker could be reached at {', '.join(addresses.values())}; is the network up?")
    if as_json:
        print_json(
            {
                "brokers": {
                    name: report or {"broker": name, "ready": False, "up": False} for name, report in reports.items()
                }
            }
        )
    else:
        console = output_console()
        known = next(report for report in reports.values() if report)
        up = sum(bool(report and report["up"]) for report in reports.values())
        heading = (
            f"network {known['network']}: protocol {known['protocol']}, f = {known['f']}, {up} of {len(reports)} up"
        )
        console.print(Text(heading))
        console.print(status_table(reports))
        for line in remarks(reports):
            console.print(Text(line, "yellow"))
    return VALID if all(report and report["up"] for report in reports.values()) else INVALID


def network_addresses(url: str, file: Path | None, credentials: Path | None) -> tuple[dict[str, str], Access]:
    """Return the address of each broker, from the network file or from one of the brokers, and the access to them."""
    if file is None:
        access = Access.to(url, credentials)
        return run(_addresses(url, access)), access
    config = load_network(file)
    if credentials is not None:
        return config.addresses, Access.to(config.url, credentials)
    return config.addresses, _as_broker(config)


def _as_broker(config: NetworkConfig) -> Access:
    """Return the access of a broker on this host, for an operator with read permission for the broker's certificate."""
    if config.security is None:
        return CLEAR
    for entry in config.brokers:
        with suppress(ConfigError):
            return config.security.access(entry.name)
    return Access.to(config.url, None)


async def _addresses(url: str, access: Access) -> dict[str, str]:
    _, welcome = await find_network(url, PATIENCE_S, access)
    return welcome.addresses


async def reports_of(addresses: Mapping[str, str], access: Access = CLEAR) -> dict[str, dict[str, Any] | None]:
    """Return the report of each broker; None for brokers that do not answer."""
    found = await asyncio.gather(*(_report(address, access) for address in addresses.values()))
    return dict(zip(addresses, found, strict=True))


async def _report(address: str, access: Access) -> dict[str, Any] | None:
    try:
        return await ask_for_report(address, timeout_s=PATIENCE_S, access=access)
    except (OSError, TimeoutError, WireError):
        return None


def status_table(reports: Mapping[str, dict[str, Any] | None]) -> Table:
    """Return a table with one row per broker."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("broker", no_wrap=True, style="bold")
    table.add_column("", no_wrap=True)
    for heading in ("pid", "links", "clients", "subs", "kept", "queued", "in", "out"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, report in reports.items():
        if report is None:
            table.add_row(name, Text("down", "bold red"))
            continue
        links = report["links"].values()
        state = report["state"]
        table.add_row(
            name,
            state_text(report),
            str(report["pid"]),
            f"{sum(link['up'] for link in links)}/{len(links)}",
            f"{report['clients']}",
            f"{state.get('subscriptions', 0)}",
            f"{sum(size for kind, size in state.items() if kind not in ('subscriptions', 'advertisements')):,}",
            f"{max([report['client_queue'], *(link['queue'] for link in links)]):,}",
            f"{report['messages_in']:,}",
            f"{report['messages_out']:,}",
        )
    return table


def state_text(report: Mapping[str, Any]) -> Text:
    """Return the state in a word or two: up, or why not."""
    if report["up"]:
        return Text("up", "green")
    return Text("waits", "bold yellow") if report["ready"] else Text("joining", "yellow")


def remarks(reports: Mapping[str, dict[str, Any] | None]) -> list[str]:
    """Return notable facts: suspicions, excluded brokers, delayed operations, paused clients."""
    found: dict[str, None] = {}
    for name, report in reports.items():
        if report is None:
            continue
        for peer, link in report["links"].items():
            if link["suspected"]:
                found[f"{name} suspects {peer}"] = None
            elif link["left"]:
                found[f"{peer} has shut down gracefully"] = None
        for excluded, successor in report["overview"].get("replaced_by", {}).items():
            found[f"{excluded} is excluded; {successor} has taken over"] = None
        for wait in report["waits"]:
            if wait["is_long"]:
                found[f"{name} {wait['text']}"] = None
        found.update(dict.fromkeys(_history_remarks(name, report)))
        if report["paused"]:
            found[f"{name} blocks its clients, because its send queues are full"] = None
    return list(found)


def _history_remarks(name: str, report: Mapping[str, Any]) -> Iterator[str]:
    history = report["overview"].get("history", {})
    few = history.get("under_replicated", [])
    if few:
        shown = ", ".join(few[:SHOWN]) + (", …" if len(few) > SHOWN else "")
        count = report["f"] + 1
        yield (
            f"the history of {shown} is held by fewer than f + 1 = {count} brokers: {name} is reading "
            "it again, or too few brokers are running"
        )
    yield from _reading_remarks(name, history)


def _reading_remarks(name: str, history: Mapping[str, Any]) -> Iterator[str]:
    """Yield a remark for each client that reads history at a broker: its lag, and the brokers it is waiting for."""
    waiting = history.get("waiting", [])
    for reading in waiting[:SHOWN]:
        client, whom = reading["client"], reading["waits_for"]
        lag = lag_text(max(0, history["final"] - reading["position"]) / 1e6)
        if not whom:
            why = "and makes progress"
        elif client in whom:
            why = "and waits for the client to take events"
        else:
            why = f"and waits for {' or '.join(whom)}"
        yield f"client {client} reads history at {name}, {lag} behind ({reading['subscription']}), {why}"
    more = history.get("reads", 0) - len(waiting[:SHOWN])
    if more > 0:
        yield f"{more} more read history at {name}"

"""`gapless doctor`: what is wrong with a network and what to do about it, in sentences.

It reads what every broker says of itself and puts it together: a broker that does not answer explains why others wait
for it; a connection that only one end misses carries in one direction. Each finding is named once, the cause before
what follows from it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.status import network_addresses, reports_of
from gapless.cli.terminal import output_console, print_json
from gapless.errors import ConnectError
from gapless.runtime.event_loop import run

__all__ = ["Finding", "diagnose", "examine"]

Reports = Mapping[str, dict[str, Any] | None]
ADVICE = {
    "start": "start the brokers that it names, or correct their addresses in the network's file",
    "hand-over": "look at the brokers that it names: they have not said what they have",
    "return": "start or reconnect one of those it names; nothing is lost if one of them comes back with its data; "
    "if none ever will: gapless network forget NAME",
    "cut-off": "mend its network, or start the brokers that it misses; its clients are sent to others",
    "unheard": "mend the connection between the two, or start the one that is not heard; if it will never return: "
    "gapless network forget NAME",
    "away": "look for a connection of this broker that carries in one direction only",
    "arrival": "start or reconnect the brokers that it misses; if one of them will never return: "
    "gapless network forget NAME",
    "client": "let that client take what it was delivered, or end it: gapless client end NAME",
    "name": "start or reconnect those it names: a named subscription needs a majority of its 2f + 1 keepers",
    "history": "start or reconnect one of those it names: they hold what the client reads",
}
"""By kind of wait: what to do."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    what: str
    todo: str


def examine(url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Ask every broker, and say what is wrong; the exit code says whether anything is."""
    addresses, access = network_addresses(url, file, credentials)
    reports = run(reports_of(addresses, access))
    if not any(reports.values()):
        raise ConnectError(f"no broker could be reached at {', '.join(addresses.values())}; is the network up?")
    found = diagnose(reports, addresses)
    if as_json:
        print_json({"findings": [{"what": item.what, "todo": item.todo} for item in found]})
    else:
        console = output_console()
        if not found:
            console.print(Text(f"all {len(reports)} brokers are up, hear each other, and wait for nobody", "green"))
        for item in found:
            console.print(Text(f"{item.what}.", "yellow"))
            console.print(Text(f"  To do: {item.todo}."))
    return INVALID if found else VALID


def diagnose(reports: Reports, addresses: Mapping[str, str]) -> list[Finding]:
    """What is wrong, causes first."""
    found = [*_silent(reports, addresses), *_too_many(reports), *_one_sided(reports), *_waits(reports), *_held(reports)]
    return list({item.what: item for item in found}.values())


def _silent(reports: Reports, addresses: Mapping[str, str]) -> Iterator[Finding]:
    for name, report in reports.items():
        if report is not None:
            continue
        links = [other["links"][name] for other in reports.values() if other and name in other["links"]]
        heard = any(link["up"] for link in links)
        if any(link["left"] for link in links):
            yield Finding(f"{name} has left in good order", f"start it again when it is to take part: it is {name}")
        elif heard:
            yield Finding(
                f"{name} does not answer from here, but other brokers hear it",
                f"look at the way from here to {addresses[name]}",
            )
        else:
            yield Finding(f"{name} does not answer, and nobody hears it", f"start it, or see to {addresses[name]}")


def _too_many(reports: Reports) -> Iterator[Finding]:
    f = next(report["f"] for report in reports.values() if report)
    silent = [name for name, report in reports.items() if report is None]
    if len(silent) > f:
        yield Finding(
            f"{len(silent)} brokers do not answer, and the network is made for {f} failures in a neighbourhood",
            "bring back as many as you can with their data, before any of them starts with an empty disk",
        )


def _one_sided(reports: Reports) -> Iterator[Finding]:
    for name, report in reports.items():
        for peer, link in report["links"].items() if report else ():
            other = reports.get(peer)
            if other is None or not link["suspected"] or name not in other["links"]:
                continue
            if other["links"][name]["suspected"]:
                pair = " and ".join(sorted((name, peer)))
                yield Finding(f"{pair} do not hear each other, and both are up", "mend the connection between them")
            else:
                yield Finding(
                    f"{name} does not hear {peer}, but {peer} hears {name}",
                    f"the connection carries in one direction only: see what lets nothing pass from {peer} to {name}",
                )


def _waits(reports: Reports) -> Iterator[Finding]:
    for name, report in reports.items():
        for wait in report["waits"] if report else ():
            if wait["is_long"]:
                todo = ADVICE.get(wait["kind"], "see docs/OPERATING.md")
                yield Finding(f"{name} {wait['text']}", todo.replace("NAME", ", ".join(wait["names"])))


def _held(reports: Reports) -> Iterator[Finding]:
    for name, report in reports.items():
        if report and report["paused"]:
            slow = max(report["links"], key=lambda peer: report["links"][peer]["queue"], default="its peers")
            yield Finding(
                f"{name} holds its clients back: too much waits to be sent to {slow}",
                f"see whether {slow} is overloaded, or the connection to it slow",
            )

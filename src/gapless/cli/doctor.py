"""`gapless doctor`: reports the problems of a network and how to fix them (see `gapless.runtime.diagnosis`)."""

import shlex
from pathlib import Path

from rich.text import Text

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.shared_options import LOCAL
from gapless.cli.status import network_addresses
from gapless.cli.terminal import output_console, print_json
from gapless.errors import ConnectError
from gapless.runtime.diagnosis import diagnose
from gapless.runtime.event_loop import run
from gapless.runtime.report_query import ask_all

__all__ = ["examine"]


def examine(url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Query every broker and print the problems found. Return 1 if there are any."""
    addresses, access = network_addresses(url, file, credentials)
    answers = run(ask_all(addresses, access))
    if not any(answer.report for answer in answers.values()):
        raise ConnectError(f"no broker could be reached at {', '.join(addresses.values())}; is the network up?")
    found = diagnose(answers, addresses, _same_network(url, file, credentials))
    if as_json:
        print_json({"findings": [{"what": item.what, "todo": item.todo} for item in found]})
    else:
        console = output_console()
        if not found:
            console.print(
                Text(f"all {len(answers)} brokers are up, hear each other, and are not waiting for anything", "green")
            )
        for item in found:
            console.print(Text(f"{item.what}.", "yellow"))
            console.print(Text(f"  To do: {item.todo}."))
    return INVALID if found else VALID


def _same_network(url: str, file: Path | None, credentials: Path | None) -> str:
    """Return the command-line options with which another command reaches the same network."""
    words = [] if url == LOCAL or file is not None else ["--url", url]
    words += [] if file is None else ["--config", str(file)]
    words += [] if credentials is None else ["--credentials", str(credentials)]
    return "".join(f" {shlex.quote(word)}" for word in words)

"""`gapless protocols`: lists the registered protocols."""

from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from gapless.cli.terminal import output_console, print_json
from gapless.protocol import GUARANTEE_NAMES, ProtocolSpec
from gapless.registry import find_protocol, protocols

__all__ = ["show_protocol", "show_protocols"]


def show_protocols(*, as_json: bool) -> int:
    """Print all protocols."""
    specs = list(protocols().values())
    if as_json:
        print_json([_document(spec) for spec in specs])
        return 0
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("protocol", no_wrap=True, style="bold")
    table.add_column("promises", no_wrap=True)
    table.add_column("tolerates", max_width=18)
    table.add_column("")
    for spec in specs:
        table.add_row(spec.name, GUARANTEE_NAMES[spec.guarantee], Text(_faults(spec)), Text(spec.summary))
    console = output_console()
    console.print(table)
    console.print(Text("\ngapless protocols NAME shows the options of one", "dim"))
    return 0


def show_protocol(name: str, *, as_json: bool) -> int:
    """Print one protocol with its options."""
    spec = find_protocol(name)
    if as_json:
        print_json(_document(spec))
        return 0
    console = output_console()
    console.print(Text.assemble((spec.name, "bold"), f": {spec.summary}"))
    console.print(Text(f"promises {GUARANTEE_NAMES[spec.guarantee]}; tolerates {_faults(spec)}"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("option", no_wrap=True)
    table.add_column("default")
    for key, default in _defaults(spec).items():
        table.add_row(key, Text(msgspec.json.encode(default).decode()))
    console.print()
    console.print(table)
    return 0


def _document(spec: ProtocolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "guarantee": spec.guarantee,
        "copes_with": sorted(spec.copes_with),
        "summary": spec.summary,
        "options": _defaults(spec),
    }


def _faults(spec: ProtocolSpec) -> str:
    return ", ".join(sorted(spec.copes_with)) or "no faults"


def _defaults(spec: ProtocolSpec) -> dict[str, Any]:
    defaults: dict[str, Any] = msgspec.to_builtins(spec.options())
    return defaults

"""Arrows point down: what each part may import, read from the source.

The lower a part, the fewer it knows. Protocols know no runtime, so that the simulator and the brokers can drive the
same object; what judges knows nothing of what it judges; and nobody here knows Spark.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

MAY_IMPORT = {
    "events": set[str](),
    "errors": {"events"},
    "overlay": {"errors"},
    "filters": {"errors", "events"},
    "protocol": {"errors", "events", "overlay"},
    "protocols": {"errors", "events", "overlay", "filters", "protocol"},
    "trace": {"errors", "events", "protocol"},
    "checkers": {"errors", "events", "filters", "protocol", "trace"},
    "simulator": {"errors", "events", "overlay", "filters", "protocol", "trace", "checkers"},
    "security": {"errors", "filters"},
    "storage": {"errors"},
    "runtime": {"errors", "events", "overlay", "filters", "protocol", "security"},
    "client": {"errors", "events", "overlay", "filters", "protocol", "trace", "runtime", "security"},
    "sync": {"client", "security"},
    "cli": {
        "errors", "events", "overlay", "filters", "protocol", "protocols", "trace", "checkers", "simulator", "runtime",
        "client", "security", "storage",
    },
}  # fmt: skip
"""Each part of `gapless`, with the parts below it. A part that is missing here fails the test: give it its place."""

ROOMS = {
    "messages": set[str](),
    "options": set[str](),
    "bounds": set[str](),
    "clock": set[str](),
    "ranges": {"messages"},
    "channel": {"clock", "messages"},
    "members": {"messages"},
    "retention": {"clock", "messages", "ranges"},
    "routing": {"messages"},
    "history": {"messages", "ranges"},
    "clients": {"messages", "options", "bounds", "clock", "retention", "routing", "history"},
    "recovery": {"messages", "options", "members", "retention", "routing", "history", "clients"},
    "client": {"messages", "options", "bounds"},
    "demands": {"messages"},
    "overview": {"recovery"},
    "turns": {"options", "clients", "recovery"},
    "wave_course": {"messages", "recovery", "routing"},
    "broker": {
        "messages",
        "options",
        "clock",
        "history",
        "channel",
        "members",
        "retention",
        "routing",
        "clients",
        "recovery",
        "overview",
        "turns",
        "wave_course",
    },
}
"""The rooms of the default protocol, each with those below it."""

PUBLIC = {"client", "errors", "events", "sync"}
"""What `gapless` itself gives out by name, loaded when it is asked for."""

REGISTRY = ("gapless/protocol.py", "gapless.protocols")
"""The one arrow up: the registry finds protocols by looking into their package."""

DOORS = ("gapless/cli/audit.py", "gapless/cli/lab.py")
"""Commands that run on Spark: they open it inside a function, when they are called."""

STARTER = "gapless/runtime/fleet.py"
"""Who starts the command line as a process: a broker is one of its commands, and a fleet is made of brokers."""

PURE_PARTS = ("filters", "protocols")
IMPURE = {"asyncio", "os", "random", "secrets", "socket", "threading", "time", "uuid"}
"""A state machine reads no clock, draws no lot and opens no socket."""


def _files() -> list[Path]:
    return sorted((SOURCE / "gapless").rglob("*.py"))


def _part(module: str) -> str:
    """`gapless.filters.like` belongs to `filters`, `gapless` itself to nothing."""
    return [*module.split("."), ""][1]


def _module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts)


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and module of every import, wherever it stands; `from gapless import overlay` counts as gapless.overlay."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write imports in full"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}" if node.module == "gapless" else str(node.module)


def _show(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def test_every_part_has_its_place() -> None:
    parts = {file.relative_to(SOURCE / "gapless").parts[0].removesuffix(".py") for file in _files()}
    assert parts - {"__init__", "__main__"} == set(MAY_IMPORT)


def test_arrows_point_down() -> None:
    complaints = []
    for file in _files():
        own = _part(_module(file))
        for line, module in _imports(file):
            if not module.startswith("gapless.") or (file.relative_to(SOURCE).as_posix(), module) == REGISTRY:
                continue
            allowed = {"__init__": PUBLIC, "__main__": {"cli"}}.get(own) or MAY_IMPORT.get(own, set())
            if _part(module) not in allowed | {own}:
                complaints.append(f"{file}:{line}: {own or 'gapless'} must not import {module}")
    _show(complaints)


def test_arrows_point_down_between_the_rooms_of_the_default_protocol() -> None:
    house = "gapless.protocols.gapless."
    complaints = []
    for file in (SOURCE / "gapless/protocols/gapless").rglob("*.py"):
        own = _module(file).removeprefix(house).split(".")[0]
        for line, module in _imports(file):
            room = module.removeprefix(house).split(".")[0]
            if own != "__init__" and module.startswith(house) and room not in ROOMS[own] | {own}:
                complaints.append(f"{file}:{line}: {own} must not import {module}")
    _show(complaints)


def test_no_part_knows_spark() -> None:
    _show([
        f"{file}:{line}: {module}"
        for file in _files()
        if file.relative_to(SOURCE).as_posix() not in DOORS
        for line, module in _imports(file)
        if module.split(".")[0] in ("pyspark", "gapless_spark")
    ])  # fmt: skip


def _programs(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is a program of its own: what it imports, no list of imports shows."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                inside = list(ast.walk(ast.parse(node.value)))
            except (SyntaxError, ValueError):
                continue
            if any(isinstance(each, ast.Import | ast.ImportFrom) for each in inside):
                yield node.lineno, node.value


def _starts(file: Path) -> Iterator[int]:
    """Lines on which `python -m gapless` is put together."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.List | ast.Tuple):
            words = [each.value if isinstance(each, ast.Constant) else None for each in node.elts]
            if ("-m", "gapless") in pairwise(words):
                yield node.lineno


def test_no_import_hides_in_a_string() -> None:
    _show([f"{file}:{line}: give {text!r} a module" for file in _files() for line, text in _programs(file)])


def test_one_place_starts_the_command_line_as_a_process() -> None:
    assert {file.relative_to(SOURCE).as_posix() for file in _files() if list(_starts(file))} == {STARTER}


def test_python_m_gapless_is_the_command_line() -> None:
    ran = subprocess.run([sys.executable, "-m", "gapless", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("gapless ")


@pytest.mark.parametrize("part", PURE_PARTS)
def test_state_machines_are_pure(part: str) -> None:
    _show([
        f"{file}:{line}: {module}"
        for file in _files()
        if _part(_module(file)) == part
        for line, module in _imports(file)
        if module.split(".")[0] in IMPURE
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import gapless", {"pyspark", "pyarrow", "rich", "typer", "msgspec", "asyncio"}),
        ("import gapless.client, gapless.sync", {"pyspark", "pyarrow", "rich", "typer", "prometheus_client"}),
        ("import gapless.filters, gapless.protocol", {"pyspark", "pyarrow", "rich", "typer"}),
        ("import gapless.cli.main", {"pyspark", "pyarrow", "gapless.simulator"}),
        ("import gapless.simulator", {"pyspark", "py4j"}),
    ],
)
def test_imports_stay_light(statement: str, unwanted: set[str]) -> None:
    program = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not unwanted & set(loaded)

"""The layers: the allowed imports of each package, checked in the source. Imports point downwards.

The lower a layer, the fewer others it uses. Protocols do not depend on a runtime, so that the simulator and the brokers
can run the same object; the checkers do not depend on the checked code.

`gapless` is the product: it imports no research, and Spark only in the modules listed as exceptions below.
`gapless_papers` is the research, on top of the product. `gapless_spark` has everything that imports PySpark, and does
not depend on the research: the laboratory passes it the tasks to run.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

MAY_IMPORT = {
    "positions": set[str](),
    "events": {"positions"},
    "message_pack": set[str](),
    "event_runs": {"events", "message_pack"},
    "errors": {"events", "positions"},
    "names": {"positions"},
    "causes": {"errors", "events", "positions"},
    "disk": set[str](),
    "overlay": {"errors"},
    "toml_file": set[str](),
    "printable": set[str](),
    "private_files": set[str](),
    "filters": {"errors", "event_runs", "events"},
    "protocol": {"errors", "event_runs", "events", "positions", "overlay", "disk", "names"},
    "protocols": {"errors", "event_runs", "events", "positions", "overlay", "disk", "filters", "names", "printable",
        "protocol",
    },
    "registry": {"errors", "protocol"},
    "trace": {"errors", "events", "positions", "protocol"},
    "archive": {"errors", "events", "positions", "filters", "trace"},
    "checkers": {"errors", "events", "filters", "protocol", "trace"},
    "simulator": {
        "errors", "event_runs", "events", "positions", "overlay", "disk", "filters", "names", "protocol", "registry",
        "trace", "checkers", "toml_file",
    },
    "security": {"errors", "event_runs", "filters", "private_files", "toml_file"},
    "storage": {"errors", "disk", "private_files"},
    "runtime": {
        "errors", "event_runs", "events", "message_pack", "overlay", "disk", "printable", "private_files", "protocol",
        "registry", "security", "storage", "toml_file",
    },
    "client": {
        "errors", "event_runs", "events", "positions", "filters", "names", "printable", "protocol", "registry",
        "trace", "archive", "runtime", "security",
    },
    "sync": {"client", "security"},
    "http": {
        "causes", "client", "errors", "events", "filters", "overlay", "positions", "printable", "runtime", "security",
    },
    "otel": {"causes", "client", "events"},
    "cli": {
        "http",
        "errors", "events", "positions", "overlay", "filters", "names", "printable", "private_files", "protocol",
        "registry", "trace", "checkers", "simulator", "runtime", "client", "security", "storage",
        "archive",
    },
}  # fmt: skip

PACKAGES = {
    "gapless": set[str](),
    "gapless_papers": {"gapless"},
    "gapless_spark": {"gapless"},
}

PAPERS_MAY_IMPORT = {
    "protocols": {"errors", "events", "filters", "overlay", "protocol", "protocols"},
    "lab": {
        "cli", "errors", "events", "overlay", "protocol", "registry", "simulator", "toml_file", "trace",
    },
    "commands": {"cli"},
}  # fmt: skip

PROTOCOL_ROWS = (
    ("identities", "numbers", "options"),
    ("client_connection", "durable.messages", "journal_messages", "link_messages"),
    ("durable.client_messages", "durable.progress", "membership_messages"),
    ("durable.claims", "messages", "tombstones"),
    ("channel", "client_messages", "disk_state", "dropped", "durable.state", "topology"),
    (
        "client_publications",
        "client_state",
        "demands",
        "durable.rules",
        "journal_state",
        "routing_state",
    ),
    ("durable.letters", "measures", "membership_state"),
    ("durable.attachment", "state"),
    ("durable.exclusive", "durable.membership"),
    ("client_subscription",),
    ("client_deliveries",),
    (
        "advertised",
        "durable.client",
    ),
    ("client",),
    ("claims", "durable.register", "invariants.promises", "membership", "outbox", "routing"),
    ("deleting", "disk", "durable.pages", "events", "invariants.journals", "sealed_journals"),
    ("durable.members", "durable.proposals", "invariants.tables", "journal", "sealing"),
    ("durable.relay", "history", "losses", "recovery"),
    ("positions",),
    ("handover", "reading"),
    ("local", "overview"),
    ("durable.groups", "sessions"),
    ("calls", "durable.service", "fences"),
    ("durable.steps",),
    ("inputs",),
    ("broker",),
    ("invariants",),
)

PUBLIC = {"causes", "client", "errors", "events", "positions", "sync"}

SPARK_IMPORTERS = {
    "gapless/cli/audit.py", "gapless/cli/audit_live.py", "gapless/cli/sim_search_spark.py",
    "gapless_papers/lab/command.py",
}  # fmt: skip

STARTER = "gapless/runtime/fleet.py"
IMPORTS_ELSEWHERE = "gapless_spark/worker_python.py"

LOADERS = {"gapless/__init__.py", "gapless/registry.py", "gapless/runtime/codec.py", "gapless/trace/__init__.py"}

PURE_PARTS = ("gapless/filters", "gapless/protocols", "gapless_papers/protocols")
IMPURE = {"asyncio", "os", "random", "secrets", "socket", "threading", "time", "uuid"}


def _files() -> list[Path]:
    return sorted((SOURCE / "gapless").rglob("*.py"))


def _all_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@cache
def _nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def _part(module: str) -> str:
    return [*module.split("."), ""][1]


def _module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts)


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    for node in _nodes(file):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write imports in full"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}" if node.module == "gapless" else str(node.module)


def _show(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def _unused(allowed: dict[str, set[str]], used: dict[str, set[str]]) -> list[str]:
    return [f"{own} may import {other}, and does not" for own, all_ in allowed.items() for other in all_ - used[own]]


def test_every_part_has_its_place() -> None:
    parts = {file.relative_to(SOURCE / "gapless").parts[0].removesuffix(".py") for file in _files()}
    assert parts - {"__init__", "__main__"} == set(MAY_IMPORT)


def test_arrows_point_down() -> None:
    complaints = []
    used: dict[str, set[str]] = {part: set() for part in MAY_IMPORT}
    for file in _files():
        own = _part(_module(file))
        for line, module in _imports(file):
            if not module.startswith("gapless."):
                continue
            used.setdefault(own, set()).add(_part(module))
            allowed = {"__init__": PUBLIC, "__main__": {"cli"}}.get(own) or MAY_IMPORT.get(own, set())
            if _part(module) not in allowed | {own}:
                complaints.append(f"{file}:{line}: {own or 'gapless'} must not import {module}")
    _show(complaints + _unused(MAY_IMPORT, used))


def test_arrows_point_down_from_the_research() -> None:
    complaints = []
    used: dict[str, set[str]] = {part: set() for part in PAPERS_MAY_IMPORT}
    for file in sorted((SOURCE / "gapless_papers").rglob("*.py")):
        own = _part(_module(file))
        for line, module in _imports(file):
            if module.startswith("gapless.") and own in used:
                used[own].add(_part(module))
                if _part(module) not in PAPERS_MAY_IMPORT[own]:
                    complaints.append(f"{file}:{line}: {own} must not import {module}")
            elif module.startswith("gapless_papers.") and (own, _part(module)) == ("protocols", "lab"):
                complaints.append(f"{file}:{line}: protocols know nothing of the laboratory")
    _show(complaints + _unused(PAPERS_MAY_IMPORT, used))


def test_arrows_point_down_inside_the_default_protocol() -> None:
    house = "gapless.protocols.gapless"
    rows = {f"{house}.{module}": row for row, modules in enumerate(PROTOCOL_ROWS) for module in modules}
    complaints = []
    for file in sorted((SOURCE / "gapless/protocols/gapless").rglob("*.py")):
        own = _module(file).removesuffix(".__init__")
        if own == house:
            continue
        for line, module in _imports(file):
            if module in rows and module != own and rows[module] >= rows.get(own, -1):
                complaints.append(f"{file}:{line}: {own} must not import {module}")
    _show(complaints)


def _arrows() -> dict[str, set[str]]:
    """Return, for each file, the files that it imports: at the top, inside a function, or for types only."""
    names = {_module(file).removesuffix(".__init__") for file in _all_files()}
    arrows: dict[str, set[str]] = {name: set() for name in names}
    for file in _all_files():
        own = _module(file).removesuffix(".__init__")
        for node in _nodes(file):
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                wanted = {f"{node.module}.{alias.name}": str(node.module) for alias in node.names}
                found = {name if name in names else module for name, module in wanted.items()}
            else:
                continue
            arrows[own] |= (found & names) - {own}
    return arrows


def _circle(arrows: dict[str, set[str]]) -> list[str]:
    """Return files that form an import cycle, in order; an empty list if there is none."""
    arrows = {name: set(below) for name, below in arrows.items()}
    while arrows:
        lowest = {name for name, below in arrows.items() if not below & arrows.keys()}
        if not lowest:
            break
        for name in lowest:
            del arrows[name]
    way: list[str] = []
    name = min(arrows, default="")
    while name and name not in way:
        way.append(name)
        name = min(arrows[name] & arrows.keys())
    return way[way.index(name) :] if name else []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert " -> ".join(_circle(_arrows())) == ""


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": set()}) == ["b", "c"]


def test_packages_import_only_those_below_them() -> None:
    complaints = []
    for file in _all_files():
        own, place = file.relative_to(SOURCE).parts[0], file.relative_to(SOURCE).as_posix()
        allowed = PACKAGES[own] | {own} | ({"gapless_spark"} if place in SPARK_IMPORTERS else set())
        for line, module in _imports(file):
            package = module.split(".")[0]
            if _is_ours(module) and package not in allowed:
                complaints.append(f"{file}:{line}: {own} must not import {package}")
            if package in ("pyspark", "py4j") and own != "gapless_spark":
                complaints.append(f"{file}:{line}: only gapless_spark imports {package}")
    _show(complaints)


def _programs(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every string that is a program, because its imports are not visible otherwise."""
    for node in _nodes(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                inside = list(ast.walk(ast.parse(node.value)))
            except (SyntaxError, ValueError):
                continue
            if any(isinstance(each, ast.Import | ast.ImportFrom) for each in inside):
                yield node.lineno, node.value


def _commands(file: Path) -> Iterator[tuple[int, str, str]]:
    for node in _nodes(file):
        if isinstance(node, ast.List | ast.Tuple):
            words = [each.value if isinstance(each, ast.Constant) else ast.unparse(each) for each in node.elts]
            yield from (
                (node.lineno, switch, str(after)) for switch, after in pairwise(words) if switch in ("-c", "-m")
            )


def _called(file: Path) -> set[str]:
    calls = [node.func for node in _nodes(file) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else ast.unparse(call) for call in calls}


def test_no_import_hides_in_a_string() -> None:
    _show([f"{file}:{line}: give {text!r} a module" for file in _all_files() for line, text in _programs(file)])


def test_no_process_runs_a_string() -> None:
    _show([
        f"{file}:{line}: give {text} a module"
        for file in _all_files()
        for line, switch, text in _commands(file)
        if switch == "-c"
    ])  # fmt: skip
    _show([str(file) for file in _all_files() if _called(file) & {"exec", "eval", "compile_command", "run_module"}])


def test_one_place_starts_the_command_line_as_a_process() -> None:
    starters = {
        file for file in _all_files() for _, switch, name in _commands(file) if switch == "-m" and _is_ours(name)
    }
    assert {file.relative_to(SOURCE).as_posix() for file in starters} == {STARTER, IMPORTS_ELSEWHERE}


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in PACKAGES


def test_few_places_import_by_name() -> None:
    loaders = {file for file in _all_files() if _called(file) & {"import_module", "__import__"}}
    assert {file.relative_to(SOURCE).as_posix() for file in loaders} == LOADERS


def test_python_m_gapless_is_the_command_line() -> None:
    ran = subprocess.run([sys.executable, "-m", "gapless", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("gapless ")


@pytest.mark.parametrize("part", PURE_PARTS)
def test_state_machines_are_pure(part: str) -> None:
    _show([
        f"{file}:{line}: {module}"
        for file in sorted((SOURCE / part).rglob("*.py"))
        for line, module in _imports(file)
        if module.split(".")[0] in IMPURE
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import gapless", {"pyspark", "pyarrow", "click", "rich", "msgspec", "asyncio"}),
        ("import gapless.client, gapless.sync", {"pyspark", "pyarrow", "click", "rich", "prometheus_client"}),
        ("import gapless.filters, gapless.protocol", {"pyspark", "pyarrow", "click", "rich"}),
        ("import gapless.cli.main", {"pyspark", "pyarrow", "gapless.simulator"}),
        ("import gapless.simulator", {"pyspark", "py4j"}),
        ("import gapless; gapless.connect", {"gapless_papers", "importlib.metadata"}),
        (
            "import gapless.registry as found; found.find_protocol('gapless')",
            {"gapless_papers", "importlib.metadata"},
        ),
        (
            "import gapless.registry as found; found.find_protocol('srpt')",
            {"gapless.protocols.gapless", "gapless_papers.protocols.delta"},
        ),
    ],
)
def test_imports_stay_light(statement: str, unwanted: set[str]) -> None:
    program = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not unwanted & set(loaded)


BESIDE = {"bench", "deploy", "fuzz", "fuzz/targets", "model", "package", "pages"}


def _test_directories() -> list[Path]:
    here = Path(__file__).parent
    return sorted({file.parent for file in here.rglob("*.py")} - {here})


def _place_of_tests(directory: Path) -> str:
    name = directory.relative_to(SOURCE).as_posix()
    return name.removeprefix("gapless/") if name.startswith("gapless/") else name.removeprefix("gapless_")


def test_tests_mirror_the_source() -> None:
    here = Path(__file__).parent
    tests = {directory.relative_to(here).as_posix() for directory in _test_directories()}
    product = {_place_of_tests(file.parent) for file in _files()} - {"gapless"}
    tested = {name for name in product if any((here / name).rglob("test_*.py"))}
    _show([f"src/gapless/{name} has no tests in tests/{name}" for name in sorted(product - tested)])
    parts = {_place_of_tests(file.parent) for file in _all_files()}
    _show([f"tests/{name} mirrors no part of src" for name in sorted(tests - parts - BESIDE)])


def test_tests_are_packages() -> None:
    _show([f"{each} lacks an __init__.py" for each in _test_directories() if not (each / "__init__.py").exists()])

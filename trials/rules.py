"""Records the branches of a protocol's rules that runs take, with `coverage`.

A *branch* is a jump from one line of a rule to another: `routing/cuts.py:210 -> 214`. Each run is measured separately,
so the number of runs that took a branch is known. Branches that no run has taken are listed with their function and
line, so that the generator can be extended to reach them.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec
from coverage import Coverage

from gapless.registry import find_protocol

__all__ = ["Branch", "Branches", "RuleMeter", "Unreached", "fingerprint", "rules_of", "unreached"]

T = TypeVar("T")
Branch = tuple[str, int, int]
"""A file below the protocol's directory, and two line numbers. A negative one is the end of a function."""
Branches = Counter[Branch]
"""The number of runs that took each branch."""


class Unreached(msgspec.Struct, frozen=True):
    """A branch that no run has taken."""

    file: str
    line: int
    to: int
    rule: str
    """The function that contains the branch."""
    text: str
    """The text of the line."""


def rules_of(protocol: str) -> Path:
    """Return the directory of a protocol's rules: the package of its `PROTOCOL`."""
    module = find_protocol(protocol).broker.__module__.rpartition(".")[0]
    return Path(str(import_module(module).__file__)).resolve().parent


def fingerprint(rules: Path) -> str:
    """Return a hash of the rules' text; if it changes, line numbers change, too."""
    digest = hashlib.sha256()
    for file in sorted(rules.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class RuleMeter:
    """Measures runs in this process, one after the other."""

    def __init__(self, rules: Path) -> None:
        self._rules = rules
        self._coverage = Coverage(data_file=None, branch=True, include=[f"{rules}/*"], config_file=False)

    def measure(self, work: Callable[[], T]) -> tuple[T, Branches]:
        """Call the function; return its result, and the branches that it took, each once."""
        self._coverage.erase()
        self._coverage.start()
        try:
            outcome = work()
        finally:
            self._coverage.stop()
        data = self._coverage.get_data()
        taken: Branches = Counter()
        for file in data.measured_files():
            name = str(Path(file).relative_to(self._rules))
            taken.update((name, origin, to) for origin, to in set(data.arcs(file) or ()))
        return outcome, taken


def unreached(rules: Path, taken: Iterable[Branch]) -> tuple[int, list[Unreached]]:
    """Return the number of branches in files that some run reached, and the branches that are not among `taken`."""
    arcs: dict[str, list[tuple[int, int]]] = {}
    for name, origin, to in taken:
        arcs.setdefault(str(rules / name), []).append((origin, to))
    meter = Coverage(data_file=None, branch=True, config_file=False)
    meter.get_data().add_arcs(arcs)
    with TemporaryDirectory() as folder:
        report = Path(folder) / "rules.json"
        meter.json_report(morfs=sorted(arcs), outfile=str(report))
        found = msgspec.json.decode(report.read_bytes())["files"]
    count = 0
    missing: list[Unreached] = []
    for file, told in sorted(found.items(), key=lambda item: _below(rules, item[0])):
        count += told["summary"]["num_branches"]
        source = _below(rules, file).read_text(encoding="utf-8")
        functions, lines = _functions(source), source.splitlines()
        name = str(_below(rules, file).relative_to(rules))
        for line, to in told["missing_branches"]:
            missing.append(Unreached(name, line, to, functions.get(line, "the module"), lines[line - 1].strip()))
    return count, missing


def _below(rules: Path, file: str) -> Path:
    """Return the file's path relative to the rules; the given path may be relative to the working directory."""
    path = Path(file).resolve()
    assert path.is_relative_to(rules), f"{path} is no file of {rules}"
    return path


def _functions(source: str) -> Mapping[int, str]:
    """Return the name of the function of each line."""
    found: dict[int, str] = {}

    def visit(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = names
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = (*names, child.name)
                for line in range(child.lineno, (child.end_lineno or child.lineno) + 1):
                    found[line] = ".".join(inside)
            visit(child, inside)

    visit(ast.parse(source), ())
    return found

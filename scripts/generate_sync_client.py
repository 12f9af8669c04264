"""Writes the calls of the synchronous client from those of the asynchronous one: `python
scripts/generate_sync_client.py`.

Each public method and property of the asynchronous classes becomes one with the same name, parameters and
documentation, which runs the asynchronous one in the client's event loop and waits. What cannot be made so is listed in
`BY_HAND` and written in `sync_client.py` and `sync_subscription.py`. A test compares the files with what this writes.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "src" / "gapless" / "client"

CLASSES = {
    "subscribing_calls": {"SubscribingCalls": "SubscribingCalls"},
    "publishing_calls": {"PublishingCalls": "PublishingCalls"},
    "admin": {"Admin": "Admin"},
    "archive_reader": {"ArchiveReader": "ArchiveReader"},
    "advertisement": {"Advertisement": "Advertisement"},
}
"""By module, the classes whose methods are taken."""
BY_HAND = {"answer", "publish_many", "publish_nowait", "on_publications_lost"}
"""They have a part in the thread of their caller."""
WRAPPED = {"Subscription", "DurableSubscription", "Advertisement", "ArchiveReader"}
"""Results that have a synchronous class of their own."""
ATTRIBUTES = {
    "Admin": [],
    "ArchiveReader": [("directory", "Path")],
    "Advertisement": [("id", "str"), ("filter", "str")],
}
"""Plain attributes of the asynchronous classes, and their types."""
HEADER = '''"""Generated from `gapless.client.{module}` by `scripts/generate_sync_client.py`. Edit that file instead."""
'''


def main() -> None:
    """Write all files."""
    for module in CLASSES:
        target(module).write_text(generated(module), encoding="utf-8")


def target(module: str) -> Path:
    """Where the synchronous form of a module is."""
    return PLACE / f"sync_{module}.py"


def generated(module: str) -> str:
    """The text of the synchronous form of a module."""
    tree = ast.parse((PLACE / f"{module}.py").read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in CLASSES[module]]
    parts = [HEADER.format(module=module), *_imports(module, tree), f"__all__ = {[node.name for node in classes]!r}"]
    parts += [ast.unparse(node) for node in tree.body if _is_kept(node)]
    parts += [_class(module, node) for node in classes]
    return _formatted(ast.unparse(ast.parse("\n".join(parts))), target(module))


def _is_kept(node: ast.stmt) -> bool:
    """Whether it is a type that signatures name."""
    return _assigned(node) in ("T", "Durables")


def _assigned(node: ast.stmt) -> str:
    """The name that a statement assigns to; empty if it is no assignment."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _imports(module: str, tree: ast.Module) -> list[str]:
    """Those of the original, of which the linter removes what is not used, and those of the synchronous classes."""
    others = {"Subscription": "sync_subscription", "DurableSubscription": "sync_subscription"}
    others |= {name: f"sync_{where}" for where, names in CLASSES.items() for name in names.values()}
    found = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            node.names = [name for name in node.names if name.name not in WRAPPED]
            if node.names:
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Import):
            found.append(ast.unparse(node))
    found += [f"from gapless.client.{where} import {name}" for name, where in others.items() if name in WRAPPED]
    names = [name for name in map(_assigned, tree.body) if name.isupper() and len(name) > 1]
    found += [f"from gapless.client.{module} import {name}" for name in names]
    found += [
        "from typing import Any",
        "from gapless.client.loop_thread import LoopThread",
        "from gapless.client import " + module,
    ]
    return [line for line in found if f"sync_{module} import" not in line]


def _class(module: str, node: ast.ClassDef) -> str:
    lines = [f"class {node.name}:", f"    {_documentation(node)!r}"]
    lines += [f"    def __init__(self, loop: LoopThread, inner: {module}.{node.name}) -> None:"]
    lines += ["        self._loop = loop", "        self._inner = inner"]
    lines += [f"        self.{name}: {kind} = inner.{name}" for name, kind in ATTRIBUTES.get(node.name, [])]
    if node.name in ATTRIBUTES:
        lines += ["    def __repr__(self) -> str:", "        return repr(self._inner)"]
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and _is_taken(method):
            lines += ["    " + line for line in _method(method).splitlines()]
    return "\n".join(lines)


def _is_taken(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return not method.name.startswith("_") and method.name not in BY_HAND


def _method(method: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = [ast.unparse(each) for each in method.decorator_list]
    returns = _synchronous_type(ast.unparse(method.returns) if method.returns else "None")
    head = [f"@{each}" for each in decorators]
    head.append(f"def {method.name}({ast.unparse(method.args)}) -> {returns}:")
    if "overload" in decorators:
        return "\n".join([*head, "    ..."])
    body = [f"    {_documentation(method)!r}"]
    if "property" in decorators:
        return "\n".join([*head, *body, f"    return self._inner.{method.name}"])
    is_awaited = isinstance(method, ast.AsyncFunctionDef) or "Opening[" in ast.unparse(method.returns or method)
    call = f"self._inner.{method.name}({_arguments(method.args)})"
    body.append(f"    call: Any = self._inner.{method.name}")
    call = f"call({_arguments(method.args)})"
    found = f"self._loop.run({call})" if is_awaited else call
    wrapper = returns.partition("[")[0]
    if wrapper in WRAPPED:
        found = f"{wrapper}(self._loop, {found})"
    if returns == "None":
        body.append(f"    {found}")
    elif wrapper in WRAPPED:
        body.append(f"    return {found}")
    else:
        body += [f"    found: {returns} = {found}", "    return found"]
    return "\n".join([*head, *body])


def _synchronous_type(text: str) -> str:
    return re.sub(r"Opening\[(.*)\]", r"\1", text).strip("'\"")


def _arguments(arguments: ast.arguments) -> str:
    """They are handed over as they came: what has a synchronous class is given as its asynchronous one."""
    places = [_handed_over(each) for each in arguments.args[1:]]
    names = [f"{each.arg}={_handed_over(each)}" for each in arguments.kwonlyargs]
    return ", ".join([*places, *names])


def _handed_over(argument: ast.arg) -> str:
    kind = "" if argument.annotation is None else ast.unparse(argument.annotation).partition("[")[0]
    return f'getattr({argument.arg}, "_inner", {argument.arg})' if kind in WRAPPED else argument.arg


def _documentation(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.get_docstring(node, clean=False) or ""
    for asynchronous, synchronous in (("async with", "with"), ("async for", "for"), ("await ", "")):
        text = text.replace(asynchronous, synchronous)
    return text.replace("an asynchronous function", "a function").replace("`asyncio.timeout`", "a thread")


def _formatted(text: str, place: Path) -> str:
    for arguments in (["check", "--fix", "--quiet", "--select", "F401,I,UP"], ["format", "--quiet"]):
        command = [str(Path(sys.executable).with_name("ruff")), *arguments, "--stdin-filename", str(place), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


if __name__ == "__main__":
    main()

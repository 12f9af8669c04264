"""Generates the synchronous client from the asynchronous one: `python scripts/generate_sync_client.py`.

Each public class becomes one with the same methods, properties and attributes, with the same parameters and
documentation. A method runs the asynchronous one in the client's event loop and waits. Methods that also run code in
the caller's thread (`BY_HAND`) call a private method of the same name, which `caller_side` or `fetching` defines. `make
check` compares the files with what this writes (`--check`).
"""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "src" / "gapless" / "client"

Function = ast.FunctionDef | ast.AsyncFunctionDef

MODULES = {
    "durable_event": ["DurableEvent"],
    "subscription": ["Subscription", "DurableSubscription"],
    "archive_reader": ["ArchiveReader"],
    "answering": ["Answering"],
    "changes": ["ConnectionChanges"],
    "advertisement": ["Advertisement"],
    "admin": ["Admin"],
    "subscribing_calls": ["SubscribingCalls"],
    "publishing_calls": ["PublishingCalls"],
    "client": ["Client"],
    "connecting": ["connect"],
}
"""The classes and functions to convert, by module."""
PLACES = {name: module for module, names in MODULES.items() for name in names}

BASES = {
    "Deliveries": ("fetching", "Fetching"),
    "Answering": ("answering_side", "AnsweringSide"),
    "ClientBase": ("caller_side", "CallerSide"),
    "": ("synchronous", "Synchronous"),
}
"""The replacements of base classes, which are written by hand."""
ATTRIBUTES_OF = {"Subscription": "deliveries", "PublishingCalls": "client_base"}
"""The module of each base class that sets public attributes."""
BY_HAND = {
    "Subscription": {"backlog", "caught_up", "events_behind", "is_caught_up", "take"},
    "Answering": {"close"},
    "SubscribingCalls": {"answer"},
    "PublishingCalls": {"on_publications_lost", "publish_many"},
    "Client": {"close"},
}
IN_LOOP = {"connection_changes", "publish_nowait"}
"""Ordinary functions that need a running event loop."""

TYPES = {
    r"Opening\[(.*)\]": r"\1",
    r"^Handler$": "Callable[[Event], Answer]",
    r"Iterable\[Publication\] \| AsyncIterable\[Publication\]": "Iterable[Publication]",
}
WORDS = {
    "async with": "with",
    "async for": "for",
    "an asynchronous function": "a function",
    "`asyncio.timeout`": "a thread",
    "another task": "another thread",
    "await it, or use it in": "use it in",
    "or await `wait()`": "or call `wait()`",
    ": await the result, or use it in `with`.": ". Use the result in `with`.",
    r"live = asyncio.create_task\((.*)\)": r"\1",
    r"\(await (.*?)\)\.": r"\1.",
    "await ": "",
    "gapless.connect(": "gapless.sync.connect(",
    "An async iterable can be slow; a slow ordinary one blocks the event loop, which is logged.": (
        "The source runs in your thread, and can wait for events that this client receives."
    ),
    "It runs in the event loop and must not block.": (
        "It runs in its own thread: it can block, and make calls of this client."
    ),
    "The handler is cancelled when the caller stops waiting.": (
        "The reply of a handler that is still running when its caller stops waiting is dropped."
    ),
    "are handled at the same time": "are handled at the same time, each in a thread",
    "It belongs to the event loop in which it was connected. Calls can be made at any time; they": (
        "Calls can be made at any time and from any thread; they"
    ),
    ", so wrap them in a thread if you cannot wait": "",
}
"""Replacements in the documentation; a regular expression if it has a group."""
HEADER = '''"""Generated from `gapless.client.{module}` by `scripts/generate_sync_client.py`. Edit that file instead."""
'''


def main(*, is_check: bool) -> None:
    """Write all files, or exit with an error if one is out of date."""
    for module in MODULES:
        text = generated(module)
        if not is_check:
            target(module).write_text(text, encoding="utf-8")
        elif target(module).read_text(encoding="utf-8") != text:
            sys.exit(f"{target(module).name} is out of date: run python scripts/generate_sync_client.py")


def target(module: str) -> Path:
    """Return the path of a module's synchronous form."""
    return PLACE / f"sync_{module}.py"


def generated(module: str) -> str:
    """Return the text of a module's synchronous form."""
    tree = _tree(module)
    names = MODULES[module]
    parts = [HEADER.format(module=module), *_imports(module, tree), f"__all__ = {sorted(names)!r}"]
    parts += [ast.unparse(node) for node in tree.body if _is_of_types(node)]
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in names:
            parts.append(_class(module, node))
        elif isinstance(node, Function) and node.name in names:
            parts.append(_function(module, node))
    return _formatted("\n".join(parts), target(module))


def _tree(module: str) -> ast.Module:
    return ast.parse((PLACE / f"{module}.py").read_text(encoding="utf-8"))


def _is_of_types(node: ast.stmt) -> bool:
    """Return whether the statement defines types that signatures use."""
    return _assigned(node) in ("T", "Durables") or (
        isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )


def _is_public(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """Return whether the statement lists the public names of a module."""
    return isinstance(node, ast.Assign) and _assigned(node) == "__all__"


def _assigned(node: ast.stmt) -> str:
    """Return the name that a statement assigns to; empty if it is no assignment."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _imports(module: str, tree: ast.Module) -> list[str]:
    """Return the imports of the original and of the synchronous classes; the linter removes unused ones."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            node.names = [name for name in node.names if name.name not in PLACES]
        if isinstance(node, ast.Import | ast.ImportFrom) and node.names:
            found.append(ast.unparse(node))
    found += [f"from gapless.client.sync_{where} import {name}" for name, where in PLACES.items() if where != module]
    found += [f"from gapless.client.{where} import {name}" for where, name in BASES.values()]
    public = next(ast.literal_eval(node.value) for node in tree.body if _is_public(node))
    found += [f"from gapless.client.{module} import {name}" for name in public if name not in PLACES]
    return [
        *found,
        "from collections.abc import Callable, Iterable",
        "from typing import Any",
        f"from gapless.client import {module}",
        "from gapless.client.answering import Answer",
        "from gapless.client.caller_side import started",
    ]


def _class(module: str, node: ast.ClassDef) -> str:
    is_event = node.name == "DurableEvent"
    head = f"class {node.name}({_bases(node)}):"
    lines = [head, f"    {_documentation(node)!r}"]
    if is_event:
        fields = [each for each in node.body[1:] if not isinstance(each, Function)]
        lines += textwrap.indent("\n".join(map(ast.unparse, fields)), "    ").splitlines()
    members = [_attribute(each, text) for each, text in _attributes(node)]
    if node.name in ATTRIBUTES_OF:
        for each in _tree(ATTRIBUTES_OF[node.name]).body:
            if isinstance(each, ast.ClassDef):
                members += [_attribute(one, text) for one, text in _attributes(each)]
    members += [_method(module, node.name, each) for each in node.body if isinstance(each, Function)]
    text = "\n".join(each for each in members if each)
    return "\n".join([*lines, textwrap.indent(text, "    ")])


def _bases(node: ast.ClassDef) -> str:
    keywords = [ast.unparse(each) for each in node.keywords]
    bases = []
    for each in [*map(ast.unparse, node.bases)] or [node.name if node.name in BASES else ""]:
        bases.append(f"{BASES[each][1]}{'[T]' if each == 'Deliveries' else ''}" if each in BASES else each)
    return ", ".join([*bases, *keywords])


def _attributes(node: ast.ClassDef) -> list[tuple[ast.AnnAssign, str]]:
    """Return the public attributes that the constructor sets, with their documentation."""
    found = []
    for method in node.body:
        if isinstance(method, Function) and method.name == "__init__":
            for place, each in enumerate(method.body):
                if isinstance(each, ast.AnnAssign) and re.match(r"self\.[a-z]", ast.unparse(each.target)):
                    found.append((each, ast.literal_eval(ast.unparse(method.body[place + 1]))))
    return found


def _attribute(node: ast.AnnAssign, text: str) -> str:
    name, kind = ast.unparse(node.target).partition(".")[2], ast.unparse(node.annotation)
    return "\n".join(["@property", f"def {name}(self) -> {kind}:", f"    {text!r}", *_read(name, kind)])


def _read(name: str, kind: str) -> list[str]:
    """Return the code of a property that reads the asynchronous object; it copies values that the event loop may
    change.
    """
    if kind in PLACES:
        return [f"    return {kind}(self._loop, self._inner.{name})"]
    copied = re.match(r"(dict|list)\[[^|]*$", kind)
    value = f"{copied[1]}(self._inner.{name})" if copied else f"self._inner.{name}"
    return [f"    found: {kind} = {value}", "    return found"]


def _method(module: str, owner: str, method: Function) -> str:
    """Return the synchronous form of a method; empty if there is none."""
    decorators = [ast.unparse(each) for each in method.decorator_list]
    returns = _type(method.returns)
    name = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__", "__anext__": "__next__"}.get(
        method.name, method.name
    )
    if name == method.name and name.startswith("_") and not (owner == "DurableEvent" and name == "_taken"):
        return ""
    for each in (*method.args.args, *method.args.kwonlyargs):
        if each.annotation is not None:
            each.annotation = ast.parse(_type(each.annotation)).body[0].value  # type: ignore[attr-defined]
    head = [*(f"@{each}" for each in decorators), f"def {name}({ast.unparse(method.args)}) -> {returns}:"]
    if "overload" in decorators:
        return "\n".join([*head, "    ..."])
    if name in ("__enter__", "__iter__", "_taken"):  # they wait for nothing
        return "\n".join([*head, *(f"    {line}" for each in method.body for line in ast.unparse(each).splitlines())])
    text = _documentation(method)
    body = [f"    {text!r}"] if text else []
    return "\n".join([*head, *body, *(f"    {line}" for line in _call(module, owner, name, method, returns))])


def _call(module: str, owner: str, name: str, method: Function, returns: str) -> list[str]:
    """Return the statements of a method."""
    decorators = [ast.unparse(each) for each in method.decorator_list]
    arguments = _arguments(method.args)
    by_hand = BY_HAND.get(owner, set())
    if name == "__next__":
        return [f"found: {returns} = self._next()", "return found"]
    if name == "__exit__" and "close" in by_hand:
        return ["self.close()"]
    if name in by_hand:
        is_set = any(each.endswith(".setter") for each in decorators)
        call = f"self._{'set_' if is_set else ''}{name}({arguments})"
        return [call if returns == "None" else f"return {call}"]
    if "property" in decorators:
        return [line[4:] for line in _read(name, returns)]
    if owner == "DurableEvent":
        return [f"call: Any = {module}.DurableEvent.{method.name}", f"self._taken().run(call(self, {arguments}))"]
    found = f"self._inner.{method.name}({arguments})"
    if name in IN_LOOP:
        found = f"self._loop.call(lambda: {found})"
    elif isinstance(method, ast.AsyncFunctionDef) or "Opening[" in ast.unparse(method.returns or method):
        found = f"self._loop.run({found})"
    wrapper = returns.partition("[")[0]
    if returns == "None":
        return [found]
    if wrapper in PLACES or returns == "Self":
        return [f"return {'type(self)' if returns == 'Self' else wrapper}(self._loop, {found})"]
    return [f"found: {returns} = {found}", "return found"]


def _function(module: str, function: Function) -> str:
    returns = _type(function.returns)
    call = f"{module}.{function.name}({_arguments(function.args, first=0)})"
    head = f"def {function.name}({ast.unparse(function.args)}) -> {returns}:"
    return "\n".join([head, f"    {_documentation(function)!r}", f"    return started({returns}, {call})"])


def _type(node: ast.expr | None) -> str:
    text = "None" if node is None else ast.unparse(node)
    for pattern, synchronous in TYPES.items():
        text = re.sub(pattern, synchronous, text)
    return text


def _arguments(arguments: ast.arguments, *, first: int = 1) -> str:
    """Return the arguments of the call; synchronous objects are replaced by their asynchronous ones."""
    places = [_handed_over(each) for each in arguments.args[first:]]
    names = [f"{each.arg}={_handed_over(each)}" for each in arguments.kwonlyargs]
    return ", ".join([*places, *names])


def _handed_over(argument: ast.arg) -> str:
    kind = "" if argument.annotation is None else ast.unparse(argument.annotation).partition("[")[0]
    return f'getattr({argument.arg}, "_inner", {argument.arg})' if kind in PLACES else argument.arg


def _documentation(node: ast.ClassDef | Function) -> str:
    """Return the documentation with the changes for synchronous code; changed paragraphs are wrapped again."""
    is_outer = node.col_offset == 0
    paragraphs = []
    for before in (ast.get_docstring(node, clean=False) or "").split("\n\n"):
        after = before
        for asynchronous, synchronous in WORDS.items():
            pattern = asynchronous if "(.*" in asynchronous else re.escape(asynchronous)
            after = re.sub(pattern.replace(r"\ ", r"\s+"), synchronous, after)
        paragraphs.append(after if after == before else _wrapped(after, " " * (4 if is_outer else 8)))
    return "\n\n".join(paragraphs)


def _wrapped(text: str, indent: str) -> str:
    """Wrap lines at 120 characters, with their indentation."""
    lines: list[str] = []
    for line in text.split("\n"):
        begins = not lines or not line.strip() or line.strip().endswith(":") or re.match(r"\s+\w+: ", line)
        if begins or lines[-1].strip() == "Parameters:":
            lines.append(line)
        else:
            lines[-1] = f"{lines[-1]} {line.strip()}"
    wrapped = []
    for line in lines:
        own = line[: len(line) - len(line.lstrip())]
        deeper = own + "    " if re.match(r"\s+\w+: ", line) else indent
        first = own or " " * (len(indent) + 3)  # after the quotes
        filled = textwrap.fill(line.strip(), 120, initial_indent=first, subsequent_indent=deeper)
        wrapped.append(own + filled.lstrip() if line.strip() else line)
    return "\n".join(wrapped)


def _formatted(text: str, place: Path) -> str:
    text = re.sub(r"^ +['\"].*['\"]$", _shown, ast.unparse(ast.parse(text)), flags=re.MULTILINE)
    for arguments in (["check", "--fix", "--quiet", "--select", "F401,I,UP"], ["format", "--quiet"]):
        command = [str(Path(sys.executable).with_name("ruff")), *arguments, "--stdin-filename", str(place), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def _shown(line: re.Match[str]) -> str:
    """Return the documentation of an attribute in the form for a function."""
    if line[0].lstrip().startswith('"""'):
        return line[0]
    indent = line[0][: len(line[0]) - len(line[0].lstrip())]
    return f'{indent}"""{ast.literal_eval(line[0].strip())}"""'


if __name__ == "__main__":
    main(is_check="--check" in sys.argv)

"""Checks that documents and code use plain English and the field's terms.

    python -m scripts.language                  # all findings; exit code 1 if there are any
    python -m scripts.language FILE ...         # those in these files
    python -m scripts.language --sample SEED    # 100 docstrings and 100 sentences of documents, for a reader to judge

The check reads documents, sources, and the comments and texts of scenarios and settings. A finding is a word or
construction that newcomers do not understand, a sentence of more than 35 words or a line of more than 100 characters in
a document, American spelling (the project uses British spelling with -ize), a file name that says nothing to newcomers,
or a name of a function, class, variable or argument in `src` or `tests` with such a word.
"""

import argparse
import ast
import inspect
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "trials", "scripts", "examples")
OTHERS = ("*.md", "*.toml", "*.sh", "*.service", "*.yaml", "*.yml", "*Dockerfile")
SENTENCE_MAX = 35
WIDTH_MAX = 100
WORDS = {
    "gone round": "bypassed",
    "go|goes|going round": "bypass",
    "taken in": "joined, rejoined",
    "let|lets|letting out": "release, forward",
    "let|lets|letting in": "accept",
    "put off": "deferred, asked to retry",
    "stand|stands|stood still": "is paused",
    "lie|lies|lay|lying behind": "lags",
    "is|are|was|were told": "is notified, is reported to",
    "told loss|losses": "reported loss",
    "lights go out": "full outage",
    "estate|estates": "orphaned state",
    "heir|heirs": "successor",
    "going|goes home": "moves back to its preferred broker",
    "keeper|keepers of names": "registry replica",
    "dealer|dealers": "coordinator",
    "given again": "redelivered",
    "named subscription|subscriptions": "durable subscription",
    "rubbish": "malformed input",
    "parting|partings": "split brain",
    "the judge|judges": "the checker",
    "hand-over|hand-overs": "handover",
    "standing": "identity, status",
    "desk": "client service",
    "foreseeing": "precompute",
    "owing": "pending",
    "has reached everyone": "is globally delivered",
    "mended": "repaired, fixed",
    "by heart": "permanently",
    "for ever": "forever",
    "say|says it again": "repeats",
    "said again": "repeated",
    "door|doors": "network security, admission",
    "crowd": "pending connections",
    "farewell|farewells": "refused connection, goodbye",
    "untaken": "pending events",
    "way|ways round": "bypass",
    "turned down": "refuse, reject",
    "turn|turns down": "refuse, reject",
    "more than may": "more than f",
    "in good order": "gracefully",
    "bug of ours": "bug in Gapless",
    "in its place": "instead of it, takes over",
    "without a word": "silently, without a reason",
    "under way": "in progress, in flight",
    "now and then": "sometimes",
    "for good": "permanently",
    "anew": "again",
    "given back": "returned, redelivered",
    "take|takes|taken back": "withdraw",
    "cope|copes with": "tolerate",
    "in silence": "quietly, silently",
    "stay|stays away": "remain down",
    "speak|speaks of": "name",
}
"""Phrases of the old dialect, each with what to write instead. A place can have alternatives, separated by |."""
PHRASES: dict[str, list[tuple[list[set[str]], str]]] = {}
"""The phrases by each of their first words: the alternatives at each place, and what to write instead."""
for _phrase, _advice in WORDS.items():
    _places = [set(place.split("|")) for place in _phrase.split()]
    for _first in _places[0]:
        PHRASES.setdefault(_first, []).append((_places, _advice))
WORD = re.compile(r"[a-z0-9]+(?:[-'’][a-z0-9]+)*")
OPENINGS = re.compile(
    r"(?:^|(?<=[.!?] )|(?<=[.!?]\n))(?:Who(?:ever)?|Those (?:who|that)|What(?:ever)?(?! happens)|So it is)\b"
    r"[^.!?\n]*+(?!\?)"
)
"""Sentences that begin with a pronoun for a subject; questions may."""
FILE_NAMES = re.compile(
    r"(?:^|_)(?:ways_round|going_home|what|who|untaken|crowd|doors|farewell|foreseeing|told|desk)(?:_|$)"
)
"""Parts of file names that say nothing to a reader who looks for the field's terms."""
IDENTIFIERS = re.compile(
    r"(?:^|_)(?:un)?(?:told|heard|heed|heirs?|estates?|partings?|liars?|strangers?|spoken|cheat(?:ed|s)?"
    r"|gone_round|goes_round|desks?|doors?|crowd)(?:_|$)"
)
"""Words of the old dialect in names. Fields of structs that appear in files are exempt: see `identifiers`."""
NAME = re.compile(r"[A-Za-z_]\w+")
SPELLING = re.compile(
    r"\b(?<!\.)(?:neighbor|behavior|color|center(?! left)|favor|honor|labor(?!ator)|catalog"
    r"|license[ds]?(?= under))\w*\b"
)
LITERAL = re.compile(
    r"""#[^\n]*|\"{3}[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*\"{3}|'{3}[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*'{3}"""
    r"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'""",
    re.DOTALL,
)
"""A comment or a string of Python or TOML, without its prefix."""


PREFIX = re.compile(r"(?:(?<!\w)[a-zA-Z]{0,2})?$")


def prose_of_document(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, list items and table rows outside code blocks, each with its line number."""
    is_code = False
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith(("```", "~~~")):
            is_code = not is_code
            line = ""
        if line.startswith("    ") and not block:  # preformatted
            continue
        if is_code or not line.strip() or line.lstrip().startswith(("- ", "| ", "#", "* ", "> ")):
            if block:
                yield begin, " ".join(block)
            block = []
            if is_code or not line.strip():
                continue
            begin = number
            if line.lstrip().startswith(("|", "#")):
                yield number, line
                continue
        if not block:
            begin = number
        block.append(line.strip())


def long_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a document that are too long, except code, tables, links and pictures."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= line.startswith(("```", "~~~"))
        if len(line) > WIDTH_MAX and not is_code and not line.startswith(("|", "    ", "  |", "![", "`", "<")):
            yield number, line


def prose_of_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings, messages and comments, each with its line number.

    Adjacent strings and the lines of a comment are one text. An expression in a formatted string becomes an ellipsis.
    """
    parts: list[str] = []
    end = counted = 0
    line = 1
    is_comment = False
    for match in LITERAL.finditer(text):
        begin, part = match.start(), match[0]
        was_comment, is_comment = is_comment, part.startswith("#")
        if is_comment:
            part, prefix = part.lstrip("# "), ""
        else:
            part = part.strip("\"'").replace("\\n", " ")
            prefix = PREFIX.search(text, max(0, begin - 2), begin)[0].lower()  # type: ignore[index]
            if "b" in prefix:
                continue
            if "f" in prefix:
                part = re.sub(r"\{[^{}]*\}", "…", part)
        if was_comment != is_comment or text[end : begin - len(prefix)].strip():
            if was_comment or " " in "".join(parts):
                yield line, ("\n" if was_comment else "").join(parts)
            parts = []
            line += text.count("\n", counted, begin)
            counted = begin
        parts.append(part)
        end = match.end()
    if is_comment or " " in "".join(parts):
        yield line, ("\n" if is_comment else "").join(parts)


def prose_of_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a shell script, Dockerfile, unit or YAML file, each with its line number."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(r"(?:^|\s)#+\s+(.*)", line):
            yield number, match[1]


@cache
def is_old(name: str) -> bool:
    """Return whether a name contains a word of the old dialect."""
    return IDENTIFIERS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) is not None


def identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Yield each name that the code defines, with its line number, except annotated fields of classes.

    Such fields are keys of files and messages, which a renaming would break.
    """
    tree = ast.parse(text)
    fields = {
        id(child.target)
        for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
        for child in node.body if isinstance(child, ast.AnnAssign)
    }  # fmt: skip
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def phrases(text: str) -> Iterator[tuple[str, str]]:
    """Yield each phrase of the old dialect in a text, with what to write instead."""
    words = WORD.findall(text.lower())
    if PHRASES.keys().isdisjoint(words):
        return
    for place, word in enumerate(words):
        for places, advice in PHRASES.get(word, ()):
            found = words[place : place + len(places)]
            if len(found) == len(places) and all(map(set.__contains__, places, found)):
                yield " ".join(found), advice


def prose_of(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file, by its kind, with line numbers."""
    if path.suffix == ".md":
        return prose_of_document(text)
    return prose_of_code(text) if path.suffix in (".py", ".toml") else prose_of_comments(text)


def findings(path: Path) -> list[tuple[int, str]]:
    """Return line numbers, each with the reason of the finding."""
    text = path.read_text(encoding="utf-8")
    is_document = path.suffix == ".md"
    found: list[tuple[int, str]] = []
    if FILE_NAMES.search(path.stem.removeprefix("test_")):
        found.append((1, f"the file name {path.stem!r}"))
    is_code = path.suffix == ".py" and (ROOT / "src" in path.parents or ROOT / "tests" in path.parents)
    if is_code and any(map(is_old, set(NAME.findall(LITERAL.sub("", text))))):
        found += [(line, f"the name {name!r}") for line, name in identifiers(text) if is_old(name)]
    if is_document:
        found += [(line, f"a line of {len(content)} characters") for line, content in long_lines(text)]
    for line, prose in prose_of(path, text):
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
        found += [(line, f"{phrase!r}: write {advice!r}") for phrase, advice in phrases(plain)]
        found += [(line, f"a sentence begins {match.group()[:30]!r}") for match in OPENINGS.finditer(plain)]
        found += [(line, f"American spelling: {match.group()!r}") for match in SPELLING.finditer(plain)]
        if is_document and not prose.startswith("|"):
            for sentence in re.split(r"(?<=[.!?:;])\s+", plain):
                words = len(sentence.split())
                if words > SENTENCE_MAX and " · " not in sentence:
                    found.append((line, f"a sentence of {words} words: {sentence[:40]!r}…"))
    return found


def files() -> list[Path]:
    """Return everything that is checked: documents, sources, scenarios and settings under version control."""
    listed = subprocess.run(
        ["git", "ls-files", *OTHERS, *(f"{folder}/*.py" for folder in FOLDERS)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return [ROOT / name for name in listed if (ROOT / name).exists()]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, including those of attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for child in ast.iter_child_nodes(node):
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                yield child.lineno, inspect.cleandoc(child.value.value)


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each sentence of a document, outside code, headings and tables."""
    for line, prose in prose_of_document(path.read_text(encoding="utf-8")):
        if not prose.startswith(("|", "#", "!", "<")):
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z*`\[])", prose):
                if len(sentence.split()) > 3:
                    yield line, sentence


def sample(seed: int, count: int = 100) -> Iterator[str]:
    """Yield random docstrings of `src` and random sentences of the documents, the same for the same seed."""
    draw = random.Random(seed)
    for kind, folder, ending, parts in (
        ("docstrings", "src", ".py", docstrings),
        ("sentences", "docs", ".md", sentences),
    ):
        paths = [path for path in files() if path.suffix == ending and ROOT / folder in path.parents]
        units = [(path.relative_to(ROOT), line, text) for path in paths for line, text in parts(path)]
        yield f"# {count} of {len(units)} {kind}, seed {seed}"
        for path, line, text in draw.sample(units, count):
            yield f"{path}:{line}: {text}"


def main() -> int:
    """Print findings, or a sample; return 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sample", type=int, metavar="SEED", help="print random docstrings and sentences instead")
    arguments = parser.parse_args()
    if arguments.sample is not None:
        print("\n".join(sample(arguments.sample)))
        return 0
    paths = [path.resolve() for path in arguments.files] or files()
    own = Path(__file__).resolve()
    rows = [(path.relative_to(ROOT), line, text) for path in paths if path != own for line, text in findings(path)]
    for path, line, text in rows:
        print(f"{path}:{line}: {text}")
    return int(bool(rows))


if __name__ == "__main__":
    sys.exit(main())

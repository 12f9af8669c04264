"""Checks that documents and code use plain English and the field's terms.

    python -m scripts.language                  # all findings; exit code 1 if there are any
    python -m scripts.language FILE ...         # those in these files
    python -m scripts.language --sample SEED    # 100 docstrings and 100 sentences of documents, for a reader to judge

A finding is a word or construction that newcomers do not understand, a sentence of more than 35 words in a document,
American spelling (the project uses British spelling with -ize), a file name that says nothing to newcomers, or a name
of a function, class, variable or argument in `src` or `tests` with such a word.
"""

import argparse
import ast
import inspect
import io
import random
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "trials", "scripts", "examples")
SENTENCE_MAX = 35
WORDS = {
    r"gone round": "bypassed",
    r"go(?:es|ing)? round": "bypass",
    r"taken in": "joined, rejoined",
    r"let(?:s|ting)? out": "release, forward",
    r"let(?:s|ting)? in": "accept",
    r"put off": "deferred, asked to retry",
    r"stands? still|stood still": "is paused",
    r"lie(?:s)? behind|lay behind|lying behind": "lags",
    r"(?:is|are|was|were) told(?! exactly)": "is notified, is reported to",
    r"told loss(?:es)?": "reported loss",
    r"lights go out": "full outage",
    r"estates?": "orphaned state",
    r"heirs?": "successor",
    r"going home|goes home": "moves back to its preferred broker",
    r"keepers? of names": "registry replica",
    r"dealers?": "coordinator",
    r"given again": "redelivered",
    r"named subscriptions?": "durable subscription",
    r"rubbish": "malformed input",
    r"partings?": "split brain",
    r"the judges?": "the checker",
    r"hand-overs?": "handover",
    r"standing": "identity, status",
    r"desk": "client service",
    r"foreseeing": "precompute",
    r"owing": "pending",
    r"has reached everyone": "is globally delivered",
    r"mended": "repaired, fixed",
    r"by heart|for ever": "permanently, forever",
    r"says? it again|said again": "repeats",
    r"doors?(?!bell)": "network security, admission",
    r"crowd(?!ed)": "pending connections",
    r"farewells?": "refused connection, goodbye",
    r"untaken": "pending events",
    r"ways? round": "bypass",
    r"turned down|turns? down": "refuse, reject",
    r"no more than may|more than may": "more than f",
    r"in good order": "gracefully",
    r"bug of ours": "bug in Gapless",
}
"""Words of the old dialect, each with what to write instead."""
OPENINGS = re.compile(
    r"(?:^|(?<=[.!?] )|(?<=[.!?]\n))(?:Who(?:ever)?|Those (?:who|that)|What(?:ever)?(?! happens)|So it is)\b[^?\n]*"
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
SPELLING = re.compile(
    r"\b(?:neighbor|behavior|color|center(?! left)|favor|honor|labor(?!ator)|catalog|license[ds]?(?= under))\w*\b"
)
LISTED = re.compile("|".join(rf"(?P<w{place}>\b(?:{pattern})\b)" for place, pattern in enumerate(WORDS)), re.IGNORECASE)
ADVICE = list(WORDS.values())


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


def prose_of_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings, messages and comments, each with its line number."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type == tokenize.STRING and not token.string.lstrip("rRuU").startswith(("b", "B", "f", "F")):
            value = ast.literal_eval(token.string)
            if isinstance(value, str) and " " in value:
                yield token.start[0], value


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


def findings(path: Path) -> list[tuple[int, str]]:
    """Return line numbers, each with the reason of the finding."""
    text = path.read_text(encoding="utf-8")
    is_document = path.suffix == ".md"
    found: list[tuple[int, str]] = []
    if FILE_NAMES.search(path.stem.removeprefix("test_")):
        found.append((1, f"the file name {path.stem!r}"))
    if ROOT / "src" in path.parents or ROOT / "tests" in path.parents:
        for line, name in identifiers(text) if path.suffix == ".py" else ():
            parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            if IDENTIFIERS.search(parts):
                found.append((line, f"the name {name!r}"))
    for line, prose in prose_of_document(text) if is_document else prose_of_code(text):
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
        for match in LISTED.finditer(plain):
            number = int(str(match.lastgroup)[1:])
            found.append((line, f"{match.group()!r}: write {ADVICE[number]!r}"))
        found += [(line, f"a sentence begins {match.group()[:30]!r}") for match in OPENINGS.finditer(plain)]
        found += [(line, f"American spelling: {match.group()!r}") for match in SPELLING.finditer(plain)]
        if is_document and not prose.startswith("|"):
            for sentence in re.split(r"(?<=[.!?:;])\s+", plain):
                words = len(sentence.split())
                if words > SENTENCE_MAX and " · " not in sentence:
                    found.append((line, f"a sentence of {words} words: {sentence[:40]!r}…"))
    return found


def files() -> list[Path]:
    """Return everything that is checked: documents and sources under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", *(f"{folder}/*.py" for folder in FOLDERS)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    own = Path(__file__).relative_to(ROOT).as_posix()
    return [ROOT / name for name in listed if name != own and (ROOT / name).exists()]


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
    rows = [(path.relative_to(ROOT), line, text) for path in paths for line, text in findings(path)]
    for path, line, text in rows:
        print(f"{path}:{line}: {text}")
    return int(bool(rows))


if __name__ == "__main__":
    sys.exit(main())

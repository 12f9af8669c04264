"""Checks that documents and code use plain English and the field's terms.

    python -m scripts.language            # what is new against the baseline; exit code 1 if anything is
    python -m scripts.language FILE ...   # every finding in these files
    python -m scripts.language --update   # lower the baseline to what is left (it never rises)
    python -m scripts.language --reset    # write the baseline anew, after a rule was added

A finding is a word or construction that newcomers do not understand, a sentence of more than 35 words in a document, or
American spelling (the project uses British spelling with -ize), or a file name of the old dialect.
`language_baseline.json` has the number of findings that older files still have. A new file has none, and no file may
get more.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASELINE = Path(__file__).with_name("language_baseline.json")
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
SPELLING = re.compile(
    r"\b(?:neighbor|behavior|color|center(?! left)|favor|honor|labor(?!ator)|catalog|license[ds]?(?= under))\w*\b"
)
LISTED = re.compile("|".join(rf"(?P<w{place}>\b(?:{pattern})\b)" for place, pattern in enumerate(WORDS)), re.IGNORECASE)
ADVICE = list(WORDS.values())


def prose_of_document(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table rows outside code blocks, each with its line number."""
    is_code = False
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith(("```", "~~~")):
            is_code = not is_code
            line = ""
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
    """Docstrings, messages and comments."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type == tokenize.STRING and not token.string.lstrip("rRuU").startswith(("b", "B", "f", "F")):
            value = ast.literal_eval(token.string)
            if isinstance(value, str) and " " in value:
                yield token.start[0], value


def findings(path: Path) -> list[tuple[int, str]]:
    """Line numbers and what is wrong there."""
    text = path.read_text(encoding="utf-8")
    is_document = path.suffix == ".md"
    found: list[tuple[int, str]] = []
    if FILE_NAMES.search(path.stem.removeprefix("test_")):
        found.append((1, f"the file name {path.stem!r}"))
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
    """Everything that is checked: documents and sources under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", *(f"{folder}/*.py" for folder in FOLDERS)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    own = Path(__file__).relative_to(ROOT).as_posix()
    return [ROOT / name for name in listed if name != own and (ROOT / name).exists()]


def main() -> int:
    """Compare with the baseline, or list findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--update", action="store_true", help="lower the baseline to what is left")
    parser.add_argument("--reset", action="store_true", help="write the baseline anew, after a rule was added")
    arguments = parser.parse_args()
    if arguments.files:
        rows = [(path, line, text) for path in arguments.files for line, text in findings(path.resolve())]
        for path, line, text in rows:
            print(f"{path}:{line}: {text}")
        return int(bool(rows))
    allowed: dict[str, int] = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    now = {path.relative_to(ROOT).as_posix(): findings(path) for path in files()}
    if arguments.update or arguments.reset:
        is_first = arguments.reset or not BASELINE.exists()
        kept = {
            name: len(found) if is_first else min(len(found), allowed.get(name, 0))
            for name, found in now.items()
            if found
        }
        BASELINE.write_text(json.dumps({name: count for name, count in kept.items() if count}, indent=1) + "\n")
        print(f"{sum(kept.values())} findings are left, in {sum(map(bool, kept.values()))} files")
        return 0
    worse = {name: found for name, found in now.items() if len(found) > allowed.get(name, 0)}
    for name, found in worse.items():
        print(f"{name}: {len(found)} findings, {allowed.get(name, 0)} are allowed (see scripts/language.py)")
        for line, text in found:
            print(f"  {name}:{line}: {text}")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())

"""Options, parameters, classes, metrics, files and keys that the documents mention exist."""

import re
import subprocess
from functools import cache

import pytest

from tests.pages.page import PAGES, ROOT, read

HISTORY = {"CHANGELOG.md", "docs/COMING_FROM.md"}
FOREIGN = {"AvailableNow", "AWS_ACCESS_KEY_ID", "JMSType", "process_", "python_gc_"}
SOURCES = ("*.py", "*.toml", "*.js", "*.ts", "*.html", "*.css", "*.yml", "*.yaml", "*.json", "*.service", "Makefile")
CODE = re.compile(r"--[a-z][a-z-]+|[A-Za-z_]\w*")


def _words(span: str) -> set[str]:
    found = set(CODE.findall(span))
    return {word for word in found if word.startswith("--") or re.search(r"[a-z0-9][A-Z]|\w_|_\w", word)}


@cache
def _known() -> frozenset[str]:
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    own = "tests/pages/test_names_shown.py"
    files = [ROOT / name for name in listed.split() if name != own]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files if file.exists()]
    return frozenset(CODE.findall("\n".join([listed, *texts])))


def _is_metric(word: str) -> bool:
    metrics = (ROOT / "src/gapless/runtime/metrics.py").read_text(encoding="utf-8")
    name = re.sub(r"_(total|bucket)$", "", word)
    return word.startswith("gapless_") and bool({name, name.removeprefix("gapless_")} & set(CODE.findall(metrics)))


def _exists(word: str) -> bool:
    return word in FOREIGN or word in _known() or _is_metric(word)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in HISTORY])
def test_every_name_exists(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    named = {word for span in re.findall(r"`([^`\n]+)`", text) for word in _words(span)}
    assert sorted(word for word in named if not _exists(word)) == []


@pytest.mark.parametrize(
    "word", ["lag_ms", "history_keeps_names", "journal_bytes", "--no-such-option", "gapless_readings"]
)
def test_a_removed_name_is_noticed(word: str) -> None:
    assert _words(word) == {word}
    assert not _exists(word)

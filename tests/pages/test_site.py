"""The site is built without a warning or a dead link, the API page has every name, and searches find the right page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from sphinx.search.en import SearchEnglish

import gapless
import gapless.sync
from tests.pages.page import ROOT

EDIT = {"DOCS_EDIT_URL": "https://forge.example/edit/{filename}", "DOCS_VERSIONS": "0.0=https://docs.example/0.0/"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(place / "doctrees")]
    built = subprocess.run(
        [*build, str(ROOT / "docs"), str(place / "html")],
        env={**os.environ, **EDIT}, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return place / "html"


def _names(file: Path) -> set[str]:
    return set(re.findall(r'\sid="([^"]+)"', file.read_text(encoding="utf-8")))


def test_no_link_is_dead(site: Path) -> None:
    pages = {file: _names(file) for file in site.rglob("*.html")}
    assert len(pages) > 25
    dead = []
    for file in pages:
        for link in re.findall(r'(?:href|src)="([^"]*)"', file.read_text(encoding="utf-8")):
            place, _, anchor = unquote(link).partition("#")
            place = place.partition("?")[0]
            target = (file.parent / place).resolve() if place else file
            if not re.match(r"[a-z+]+:", link) and (
                not target.exists() or (anchor and target in pages and anchor not in pages[target])
            ):
                dead.append(f"{file.name}: {link}")
    assert not dead


def test_no_page_needs_another_host(site: Path) -> None:
    for file in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]*)"', file.read_text(encoding="utf-8"))
        assert not loaded, file


def test_the_reference_has_every_name(site: Path) -> None:
    named = _names(site / "API.html")
    wanted = {f"gapless.{name}" for name in gapless.__all__ if name not in ("errors", "sync")}
    own = [
        name for name in gapless.sync.__all__ if getattr(gapless.sync, name) is not getattr(gapless.client, name, None)
    ]
    wanted |= {f"gapless.sync.{name}" for name in own}
    errors = {name.replace("gapless.errors.", "gapless.") for name in named}
    assert not wanted - named - errors
    inner = re.compile(r"(?<!Admin)\.(begin_in|confirmations|end|holds_back|oldest|put|reach|release|skip|withdraw)$")
    assert not [name for name in named if inner.search(name)]


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("durable", "CLIENT"), ("consumer group", "CLIENT"), ("exactly-once", "RECIPES"), ("idempotent", "RECIPES"),
        ("dead letter", "RECIPES"), ("retry", "RECIPES"), ("ordering", "CONCEPTS"), ("backpressure", "WHAT_HAPPENS"),
        ("partition", "WHAT_HAPPENS"), ("split brain", "WHAT_HAPPENS"), ("Jupyter", "RECIPES"), ("pydantic", "CLIENT"),
        ("OpenTelemetry", "RECIPES"),
    ],
)  # fmt: skip
def test_a_search_finds_the_page(site: Path, query: str, page: str) -> None:
    index = json.loads((site / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(")[:-1])
    in_titles, in_text = (_matches(index, kind, query) for kind in ("titleterms", "terms"))
    assert page in (in_titles or in_text)
    assert len(in_titles or in_text) < 8


def _matches(index: Any, kind: str, query: str) -> set[str]:
    stem = SearchEnglish({}).stem
    found = [index[kind].get(stem(word.lower()), []) for word in re.findall(r"\w+", query)]
    numbers = [{each} if isinstance(each, int) else set(each) for each in found]
    return {index["docnames"][number] for number in set.intersection(*numbers)}


def test_pages_have_edit_links_and_versions(site: Path) -> None:
    page = (site / "protocols/gapless.html").read_text(encoding="utf-8")
    assert 'href="https://forge.example/edit/protocols/gapless.md"' in page
    assert 'href="https://docs.example/0.0/"' in page
    assert f"Gapless {gapless.__version__}" in page
    assert 'rel="next"' in page
    assert 'rel="prev"' in page

"""The site is built without a warning, no link in it is dead, and the API page has every name."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import gapless
import gapless.sync
from tests.pages.page import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(place / "doctrees")]
    told = subprocess.run(
        [*build, str(ROOT / "docs"), str(place / "html")], capture_output=True, text=True, timeout=250, check=False
    )
    assert (told.returncode, told.stdout + told.stderr) == (0, "")
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

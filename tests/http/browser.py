"""A real browser for tests of the console: the system's chromium, driven by playwright.

Pictures of the documentation are made by the same test: `GAPLESS_PICTURES=docs/images pytest -n 0
tests/http/test_console_browser.py`.
"""

import importlib.util
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

__all__ = ["AXE", "browser", "needs_axe", "needs_browser", "new_page", "problems_of", "take_picture"]

AXE = Path(__file__).parents[2] / "clients" / "js" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="the console is tested in a browser: apt-get install chromium, pip install playwright",
)
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is an npm package: npm ci --prefix clients/js")

PATIENCE_MS = 40_000
COMPLAINTS = "(result) => result.violations.map((one) => `${one.impact}: ${one.id} ${one.nodes.map((n) => n.html)}`)"


@asynccontextmanager
async def browser() -> "AsyncIterator[Browser]":
    """A browser without windows."""
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield made
        finally:
            await made.close()


async def new_page(where: "Browser", **options: Any) -> "tuple[Page, list[str]]":
    """A page, and what goes wrong on it: errors of scripts, and what the content security policy blocks."""
    context = await where.new_context(**{"viewport": {"width": 1280, "height": 860}, "locale": "en-GB", **options})
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
    return page, wrong


@cache
def _axe() -> str:
    return AXE.read_text(encoding="utf-8")


async def problems_of(page: "Page") -> list[str]:
    """What axe finds: every violation of WCAG 2.2 AA, and of its own advice that is serious."""
    await page.evaluate(_axe())
    found: list[str] = await page.evaluate(f"axe.run(document, {{resultTypes: ['violations']}}).then({COMPLAINTS})")
    return found


async def take_picture(page: "Page", name: str, directory: Path) -> None:
    """A picture of what is seen, into the documentation if that is asked for."""
    chosen = os.environ.get("GAPLESS_PICTURES", "")
    place = Path(chosen) if chosen else directory
    await page.screenshot(path=place / f"console-{name}.png", animations="disabled")
    assert (place / f"console-{name}.png").stat().st_size > 10_000

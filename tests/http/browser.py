"""A real browser for tests of the console: the system's chromium, driven by playwright.

Pictures of the documentation are made by the same test: `GAPLESS_PICTURES=docs/images pytest -n 0
tests/http/test_console_browser.py`.
"""

import asyncio
import importlib.util
import os
import shutil
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from gapless.overlay import Overlay
from gapless.runtime.fleet import Fleet, free_ports, local_network
from gapless.runtime.settings import RuntimeSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright

T = TypeVar("T")

__all__ = ["AXE", "Site", "needs_axe", "needs_browser", "new_page", "problems_of", "take_picture", "visited"]

AXE = Path(__file__).parents[2] / "clients" / "js" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="the console is tested in a browser: apt-get install chromium, pip install playwright",
)
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is an npm package: npm ci --prefix clients/js")

PATIENCE_MS = 40_000
COMPLAINTS = "(result) => result.violations.map((one) => `${one.impact}: ${one.id} ${one.nodes.map((n) => n.html)}`)"


class Site:
    """A network whose brokers are processes with HTTP, and the browser that visits it, for all tests of a file.

    All tests run in one event loop, because the browser belongs to it. Each test restores the network's initial state.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._runner = asyncio.Runner()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    @property
    def browser(self) -> "Browser":
        assert self._browser is not None
        return self._browser

    def url(self, name: str) -> str:
        return f"http://{next(entry.http for entry in self.fleet.config.brokers if entry.name == name)}"

    def at(self, name: str) -> str:
        return f"gapless://{self.fleet.config.addresses[name]}"

    async def open(self) -> None:
        from playwright.async_api import async_playwright, expect

        expect.set_options(timeout=PATIENCE_MS)
        self.fleet.start_all()
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        await self.fleet.until_whole(60)

    async def _close(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()

    def close(self) -> None:
        self.run(self._close())
        self._runner.close()


@contextmanager
def visited(overlay: Overlay, directory: Path, runtime: RuntimeSettings) -> Iterator[Site]:
    """Start a network of processes and a browser."""
    count = len(overlay.brokers)
    config = local_network(overlay, http_ports=list(free_ports(count)), runtime=runtime)
    with Fleet(config, directory) as fleet:
        site = Site(fleet)
        try:
            site.run(site.open())
            yield site
        finally:
            site.close()


async def new_page(where: "Browser", **options: Any) -> "tuple[Page, list[str]]":
    """Open a page; return it with a list of its errors: of scripts, and of the content security policy."""
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
    """Return the findings of axe: every violation of WCAG 2.2 AA, and its serious recommendations."""
    await page.evaluate(_axe())
    found: list[str] = await page.evaluate(f"axe.run(document, {{resultTypes: ['violations']}}).then({COMPLAINTS})")
    return found


async def take_picture(page: "Page", name: str, directory: Path) -> None:
    """Save a picture of the page, if pictures for the documentation are requested."""
    chosen = os.environ.get("GAPLESS_PICTURES", "")
    place = Path(chosen) if chosen else directory
    await page.screenshot(path=place / f"console-{name}.png", animations="disabled")
    assert (place / f"console-{name}.png").stat().st_size > 10_000

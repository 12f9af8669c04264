"""Every program that a document shows is run by a test: the one of the concepts here, the others elsewhere."""

import asyncio
import textwrap
from typing import Any

import pytest

from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.pages.page import PAGES, ROOT, blocks
from tests.runtime.local import local

RUN_BY = {
    "CONTRIBUTING.md": "tests/pages/test_commands_shown.py",
    "README.md": "tests/client/test_client_calls.py",
    "docs/CLIENT.md": "tests/client/test_client_document.py",
    "docs/CONCEPTS.md": "tests/pages/test_programs_shown.py",
    "docs/FIRST_CHANGE.md": "tests/pages/test_first_change.py",
    "docs/PROGRAMS.md": "tests/client/test_programs_document.py",
    "docs/RECIPES.md": "tests/pages/test_recipes.py",
    "docs/SPARK.md": "tests/spark/test_spark_page.py",
    "docs/TRACE_FORMAT.md": "tests/trace/test_trace_format_document.py",
    "docs/TUTORIAL.md": "tests/pages/test_tutorial.py",
}


def test_every_page_with_programs_has_a_test_that_runs_them() -> None:
    assert set(RUN_BY) == {page for page in PAGES if blocks(page, "python")}
    assert all((ROOT / test).exists() for test in RUN_BY.values())


def test_a_subscription_shows_its_cut_as_the_concepts_say(capsys: pytest.CaptureFixture[str]) -> None:
    [shown] = blocks("docs/CONCEPTS.md", "python")
    found: dict[str, Any] = {}
    exec(f"async def show(client):\n{textwrap.indent(shown, '    ')}", found)

    async def main() -> None:
        async with (
            local(chain(2)) as network,
            asyncio.timeout(60),
            connect(network.at("b0"), name="ann") as ann,
            connect(network.at("b1")) as bob,
        ):
            await ann.advertise("topic = 'price'")
            await ann.publish({"topic": "price"})
            await found["show"](bob)
            assert capsys.readouterr().out == f"{{'{ann.name}': 2}}\n"

    run(main())

"""The stored pictures are those that the code draws."""

import re
from pathlib import Path

import pytest
from docs.pictures.gallery import PICTURES
from docs.pictures.layers import WORDS
from docs.pictures.space_time import SCENARIOS

from gapless.simulator import load_scenario, try_scenario
from tests.pages.page import PAGES, ROOT, read
from tests.test_layers import MAY_IMPORT

IMAGES = ROOT / "docs" / "images"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_is_so(name: str) -> None:
    drawn = PICTURES[name]()
    assert drawn == (IMAGES / name).read_text(encoding="utf-8"), "draw it again: python -m docs.pictures"


@pytest.mark.parametrize("file", sorted(SCENARIOS.iterdir()), ids=lambda file: file.stem)
def test_drawn_runs_are_valid(file: Path) -> None:
    assert try_scenario(load_scenario(file)).status == "valid"


def test_every_picture_is_shown_somewhere() -> None:
    shown = {name for page in PAGES for name in re.findall(r"images/([\w.-]+\.(?:svg|png))", read(page))}
    assert shown == {path.name for path in IMAGES.iterdir()}


def test_every_part_is_in_the_picture_of_the_architecture() -> None:
    assert set(WORDS) == {*MAY_IMPORT, "gapless_papers", "gapless_spark"}

"""The long description contains the README without the parts that need a checkout."""

import re
from typing import Any

import pytest
from hatch_build import LongDescription, long_description

from tests.pages.page import ROOT, read

TEXT = long_description(read("README.md"))


@pytest.mark.parametrize("gone", ["![", "A simulated run", "Read on", "](docs/"])
def test_pictures_relative_links_and_the_list_of_pages_are_left_out(gone: str) -> None:
    assert gone in read("README.md")
    assert gone not in TEXT


def test_everything_else_stays() -> None:
    assert re.findall(r"^## .*", read("README.md"), re.MULTILINE) == [
        *re.findall(r"^## .*", TEXT, re.MULTILINE),
        "## Read on",
    ]
    assert "receives every event that was not acknowledged.\n\n## Try it" in TEXT
    assert "the project is young" in TEXT
    assert TEXT.endswith("version 0.1.\n")


def test_a_link_that_names_its_host_stays() -> None:
    assert (
        long_description("See [it](https://a.org/b) and [that](docs/B.md).") == "See [it](https://a.org/b) and that.\n"
    )


def test_with_an_address_of_the_files_every_link_leads_there() -> None:
    metadata: dict[str, Any] = {"urls": {"Files": "https://a.org/gapless/blob/main/"}}
    LongDescription(str(ROOT), {}).update(metadata)
    text = metadata["readme"]["text"]
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) == len(re.findall(r"\]\(([^)]*)\)", read("README.md")))
    assert all(link.startswith(("https://a.org/gapless/blob/main/", "https://github.com/")) for link in links)
    assert "(https://a.org/gapless/blob/main/docs/CLIENT.md#history)" in text
    assert "(https://a.org/gapless/blob/main/docs/images/cut.svg?raw=true)" in text
    assert "## Read on" in text

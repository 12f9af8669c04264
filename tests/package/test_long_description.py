"""The page of the package says nothing that has no sense without links, and keeps all else."""

import re
from typing import Any

import pytest
from hatch_build import LongDescription, long_description

from tests.pages.page import ROOT, read

TEXT = long_description(read("README.md"))


@pytest.mark.parametrize(
    "gone", ["![", "A run of the simulator", "Read on", " · ", "what it prints", "The tutorial goes on"]
)  # fmt: skip
def test_what_only_leads_elsewhere_is_left_out(gone: str) -> None:
    assert gone not in TEXT


def test_all_else_stays() -> None:
    assert re.findall(r"^## .*", read("README.md"), re.MULTILINE) == [
        *re.findall(r"^## .*", TEXT, re.MULTILINE),
        "## Read on",
    ]
    assert "judge what each client saw. Spark wants Java\n17; without it," in TEXT
    assert "for\nprograms without an event loop.\n\n## What happens in a partition" in TEXT
    assert "behind their causes, also while a broker dies.\n\n## Two commands" in TEXT
    assert "There is a client for Python only; the wire format is written down." in TEXT
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
    assert all(link.startswith("https://a.org/gapless/blob/main/") for link in links)
    assert "(https://a.org/gapless/blob/main/docs/CLIENT.md#history)" in text
    assert "(https://a.org/gapless/blob/main/docs/images/cut.svg?raw=true)" in text
    assert "## Read on" in text

"""docs/WORDS.md is true: its words are in the code, and words that had several meanings have one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "WORDS.md").read_text(encoding="utf-8")
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "src").rglob("*.py")))

RENAMED = [
    (r"ghost", "src/gapless_spark", "a ghost is a representative that has ended"),
    (r"[cC]hannel", "src/gapless/client", "channels are between brokers"),
    (r"\b(class Keeper|_?keeper\b)", "src/gapless/protocols/gapless/recovery", "keepers keep names"),
    (r"\bdef confirmed\b|\bconfirmed[:=(]", "src/gapless/protocols/gapless/clients", "deliveries are taken"),
    (r"\bconfirmed\b", "src/gapless/protocols/gapless/retention", "deliveries are taken"),
    (r"is_leaving|keep_leaving", "src/gapless/protocols/gapless/clients", "sessions stand still"),
    (r"\bHeld\b", "src/gapless/protocols/delta", "a client holds subscriptions"),
    (r"\b[hH]ubs?\b", "docs", "who stands in is a stand-in"),
]
"""What had a second meaning somewhere, and must not get it there again."""

HOUSE = ("client", "runtime", "cli", "protocols/gapless")


def test_every_word_is_used() -> None:
    words = {word for bold in re.findall(r"\*\*(.+?)\*\*", TEXT) for word in re.split(r",\s*", bold)}
    assert len(words) > 50
    used = SOURCE.lower().replace("_", "").replace("-", "").replace(" ", "")
    assert not [word for word in words if word.lower().replace("-", "").replace(" ", "") not in used]


def test_every_word_is_explained_once() -> None:
    words = [word.lower() for bold in re.findall(r"\*\*(.+?)\*\*", TEXT) for word in re.split(r",\s*", bold)]
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(("pattern", "place", "why"), RENAMED)
def test_no_word_gets_its_second_meaning_again(pattern: str, place: str, why: str) -> None:
    files = [file for kind in ("*.py", "*.md") for file in (ROOT / place).rglob(kind)]
    assert files
    assert not [file for file in files if re.search(pattern, file.read_text(encoding="utf-8"))], why


def test_only_lives_are_settled() -> None:
    places = {
        file.relative_to(ROOT / "src" / "gapless").as_posix()
        for part in HOUSE
        for file in sorted((ROOT / "src" / "gapless" / part).rglob("*.py"))
        if re.search(r"\bdef \w*settle", file.read_text(encoding="utf-8"))
    }
    assert places == {
        "protocols/gapless/members/contraction.py",
        "protocols/gapless/members/status.py",
        "protocols/gapless/recovery/handovers.py",
    }

"""docs/WORDS.md is true: its words are in the code, and words that had several meanings have one."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "WORDS.md").read_text(encoding="utf-8")
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "src").rglob("*.py")))

HOUSE = ("client", "runtime", "cli", "protocols/gapless")


def test_every_word_is_used() -> None:
    words = {word for bold in re.findall(r"\*\*(.+?)\*\*", TEXT) for word in re.split(r",\s*", bold)}
    assert len(words) > 50
    used = SOURCE.lower().replace("_", "").replace("-", "").replace(" ", "")
    assert not [word for word in words if word.lower().replace("-", "").replace(" ", "") not in used]


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

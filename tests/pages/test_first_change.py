"""The page for first-time contributors is correct: its patch applies, its seed fails, and its test passes."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.pages.page import ROOT, blocks, endless, read

PAGE = "docs/FIRST_CHANGE.md"


def test_the_change_can_be_made_and_the_seed_proves_it(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "gapless_spark"))
    [patch] = blocks(PAGE, "diff")
    apply = ["git", "apply", "--unidiff-zero", "--verbose", "-"]
    subprocess.run(apply, cwd=tmp_path, input=patch, text=True, check=True, capture_output=True, timeout=60)
    [search] = [words for words in endless(PAGE) if words[:3] == ["gapless", "sim", "search"] and "--save" in words]
    env = {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"}
    found = subprocess.run(
        [sys.executable, "-m", *search], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
    )
    assert found.returncode == 1, found.stderr
    [shown] = blocks(PAGE, "text")
    assert shown.split() == found.stdout.partition("\n\nrepeat")[0].split()
    assert (tmp_path / "small.toml").exists()
    test = blocks(PAGE, "python")[-1]
    assert test.startswith("from gapless.simulator import")
    program = f"{test}\n\ntest_events_for_a_former_membership_are_ignored()\n"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, check=True, timeout=200)


def test_the_condition_that_is_shown_is_in_the_code() -> None:
    condition = blocks(PAGE, "python")[0].strip()
    assert condition in (ROOT / "src/gapless_papers/protocols/srpt/broker.py").read_text(encoding="utf-8")
    assert "`src/gapless_papers/protocols/srpt/broker.py`" in read(PAGE)

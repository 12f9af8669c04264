"""The lock file pins every package with the hashes of its files, and set-up installs nothing else."""

import re
from importlib.metadata import distribution
from pathlib import Path

from scripts.locked import locked, needed

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_every_package_has_a_version_and_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.rstrip("\n"))
    assert len(entries) > 100
    for entry in entries:
        first, *others = entry.split("\n")
        assert re.fullmatch(r"[a-z0-9-]+==\S+( ; .+)? \\", first), entry
        assert others, entry
        assert all(re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?", other) for other in others), entry


def test_the_lock_names_no_host() -> None:
    assert "://" not in LOCK


def test_set_up_checks_hashes_and_fetches_no_build_tools() -> None:
    setup = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8")
    for line in (line for line in setup.splitlines() if line.lstrip().startswith("install --")):
        assert "--require-hashes" in line or "--no-build-isolation -e ." in line, line


def test_the_packages_of_a_broker_are_found_in_the_lock() -> None:
    names = needed(distribution("gapless"), ["broker"])
    assert {"msgspec", "cryptography", "pyjwt", "cffi"} <= names
    assert "pyspark" not in names
    text = locked(names)
    assert set(re.findall(r"^(\S+)==", text, re.MULTILINE)) == names
    assert text.count("--hash=") >= len(names)

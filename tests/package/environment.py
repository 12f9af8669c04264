"""Fresh virtual environments with only the wheel and its dependencies, created without a network."""

import re
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple

from scripts.locked import needed

__all__ = ["Environment", "make_environment"]


class Environment(NamedTuple):
    """One virtual environment."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, in a directory outside any checkout."""
        return subprocess.run(
            [self.program(words[0]), *words[1:]], cwd=cwd or self.folder, env={"PATH": "/usr/bin:/bin"},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip


def make_environment(folder: Path, wheel: Path, extras: frozenset[str] = frozenset()) -> Environment:
    """Create an environment with the wheel and the packages of these extras, linked from this environment."""
    venv.create(folder, symlinks=True, with_pip=False)
    made = Environment(folder)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", made.program("python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True, timeout=100)
    [site] = folder.glob("lib/python*/site-packages")
    [metadata] = site.glob("gapless-*.dist-info")
    for name in needed(Distribution.at(metadata), extras):
        _link(distribution(name), site)
    return made


def _link(package: Distribution, site: Path) -> None:
    for top in {file.parts[0] for file in package.files or () if not re.match(r"\.\.|__pycache__", file.parts[0])}:
        if not (site / top).exists():
            (site / top).symlink_to(str(package.locate_file(top)))

"""Prints the entries of `requirements.lock` for an extra: `python -m scripts.locked broker`.

pip checks hashes only if each requirement has one, and a directory has none. So `make wheels` builds our own wheel, and
then gets those of the packages that it needs, with the hashes of the lock.
"""

import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["locked", "needed"]

LOCK = Path(__file__).parents[1] / "requirements.lock"


def needed(package: Distribution, extras: Iterable[str]) -> set[str]:
    """Return the names of all direct and indirect requirements of a package with these extras on this machine."""
    own = canonicalize_name(package.metadata["Name"])
    found: set[str] = set()
    todo = [(package, extra) for extra in ("", *extras)]
    asked = {(own, extra) for _, extra in todo}
    while todo:
        each, extra = todo.pop()
        for line in each.requires or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                name = canonicalize_name(need.name)
                found.add(name)
                for further in ("", *need.extras):
                    if (name, further) not in asked:
                        asked.add((name, further))
                        todo.append((package if name == own else distribution(name), further))
    return found - {own}


def locked(names: Iterable[str]) -> str:
    """Return the entries of the lock file for these packages, with their hashes."""
    wanted = set(names)
    entries = re.findall(r"^\S+==.*(?:\n .*)*\n", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0] in wanted)


if __name__ == "__main__":
    print(locked(needed(distribution("gapless"), sys.argv[1:])), end="")

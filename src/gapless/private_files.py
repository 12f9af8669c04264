"""Files that only their owner should read: those that a broker writes, and those that it reads.

A broker restricts its own files and logs that. It refuses a private key that others can read, by the rule of OpenSSH
and PostgreSQL: only the owner can read it, or, if root owns the file, its group as well (so that a secret can be
mounted into a container). For other files, such as those of users or credentials, it only logs a warning. Each message
contains the command that repairs it. Where file modes have no meaning (outside POSIX), every file counts as private.
"""

import os
import shlex
import stat
from pathlib import Path

__all__ = ["create_private", "exposure", "exposure_of_key", "restrict"]

OTHERS = stat.S_IRWXG | stat.S_IRWXO
WRITERS = stat.S_IWGRP | stat.S_IWOTH
IS_POSIX = os.name == "posix"


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read from the beginning, unless the file exists."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def restrict(path: Path) -> str:
    """Remove the rights of everyone but the owner from the file or directory; return what was done, if anything."""
    about = _about(path)
    if about is None or not about.st_mode & OTHERS or not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        return ""
    mode = stat.S_IMODE(about.st_mode)
    try:
        path.chmod(mode & ~OTHERS)
    except OSError as error:
        why = f"others can use it (mode {mode:04o}), and that cannot be changed: {error.strerror}"
        return f"{path}: {why}; {_remedy(path)}"
    return f"{path}: others could use it (mode {mode:04o}); now only its owner can"


def exposure_of_key(path: Path) -> str:
    """Return why a private key must not be used; an empty string if it can be used, or if the mode of its file cannot
    be read."""
    about = _about(path)
    if about is None:
        return ""
    forbidden = stat.S_IRWXO | stat.S_IWGRP | stat.S_IXGRP if about.st_uid == 0 else OTHERS
    if not about.st_mode & forbidden:
        return ""
    return f"{path}: this private key can be used by others (mode {_mode(about)}); {_remedy(path)}"


def exposure(path: Path, *, is_secret: bool) -> str:
    """Return a warning if others can write the file or, with `is_secret`, read it. Otherwise return an empty string."""
    about = _about(path)
    if about is None:
        return ""
    readers = stat.S_IROTH if about.st_uid == 0 else stat.S_IRGRP | stat.S_IROTH
    if about.st_mode & WRITERS:
        return f"{path}: others can change it (mode {_mode(about)}); {_remedy(path)}"
    if is_secret and about.st_mode & readers:
        return f"{path}: others can read it (mode {_mode(about)}); {_remedy(path)}"
    return ""


def _about(path: Path) -> os.stat_result | None:
    try:
        return path.stat() if IS_POSIX else None
    except OSError:
        return None


def _mode(about: os.stat_result) -> str:
    return f"{stat.S_IMODE(about.st_mode):04o}"


def _remedy(path: Path) -> str:
    return f"run: chmod {'700' if path.is_dir() else '600'} {shlex.quote(str(path))}"

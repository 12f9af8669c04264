"""Checks the address of Spark before Spark uses it, so that a wrong address is a one-sentence error.

Spark itself would retry an unreachable server for minutes, and would print a stack trace for an unknown kind of master.
"""

import re
import socket

from gapless.errors import SparkError
from gapless.runtime.address import redacted

__all__ = ["require_address"]

PATIENCE_S = 10.0
"""The timeout for one connection attempt."""

_CONNECT_PORT = 15002
_MASTERS = re.compile(r"local(-cluster)?(\[.*\])?|yarn|k8s://.+|spark://.+")


def require_address(master: str | None, remote: str | None) -> None:
    """Raise a `SparkError` unless this is a valid address of Spark and a server answers there."""
    if master is not None and remote is not None:
        raise SparkError("a session has a master or a remote address, not both: drop --master or --remote")
    if master is not None:
        if not _MASTERS.fullmatch(master):
            raise SparkError(
                f"unknown master {redacted(master)!r}; write local[2], spark://HOST:PORT, yarn or k8s://URL"
            )
        if master.startswith("spark://"):
            _require_answer(master, master.removeprefix("spark://").split(","), 7077)
    if remote is not None and not remote.startswith("local"):
        if not remote.startswith("sc://"):
            raise SparkError(f"{redacted(remote)!r} is not an address of Spark Connect; write sc://HOST:PORT")
        _require_answer(remote, [re.split("[/;]", remote.removeprefix("sc://"))[0]], _CONNECT_PORT)


def _require_answer(shown: str, places: list[str], port: int) -> None:
    for place in places:
        host, _, number = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", str(port))
        try:
            with socket.create_connection((host.strip("[]"), int(number)), PATIENCE_S):
                return
        except (OSError, ValueError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    raise SparkError(f"Spark does not answer at {redacted(shown)}: {reason}")

"""The exit codes of `gapless`.

A verdict is 0, 1 or 2, so that a script can distinguish a violation from a run that could not be
checked. All other codes are far from these and follow sysexits.h.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the checkers import Parquet libraries, which `--help` does not need
    from gapless.checkers import Status

__all__ = [
    "BAD_INPUT",
    "BUG",
    "EPILOG",
    "INTERRUPTED",
    "INVALID",
    "NETWORK_EPILOG",
    "PIPE_CLOSED",
    "UNKNOWN",
    "VALID",
    "code_of",
    "worst",
]

VALID = 0
INVALID = 1
UNKNOWN = 2
BAD_INPUT = 64
BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141
"""The exit code if the reader of the output has closed the pipe; shells report the same code."""

EPILOG = (
    "Exit codes: 0 valid, 1 invalid, 2 unknown (nothing could be checked), 64 bad input, 70 a "
    "bug in Gapless, 130 interrupted."
)

NETWORK_EPILOG = "Exit codes: 0 done, 64 bad input or no broker, 70 a bug in Gapless, 130 interrupted."

_CODES: "dict[Status, int]" = {"valid": VALID, "invalid": INVALID, "unknown": UNKNOWN}


def code_of(status: "Status") -> int:
    """Return the exit code of a verdict."""
    return _CODES[status]


def worst(statuses: "Iterable[Status]") -> "Status":
    """Return the combined verdict on several runs: invalid if any run is; otherwise unknown if any run is, or if there
    are none."""
    found = set(statuses)
    if "invalid" in found:
        return "invalid"
    return "unknown" if "unknown" in found or not found else "valid"

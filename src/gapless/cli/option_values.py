"""`--option key=value`: converts arguments to values of the types that a protocol declares, and back."""

import json
import shlex
from collections.abc import Iterable
from typing import Any, get_origin

import msgspec

from gapless.errors import ProtocolError
from gapless.protocol import ProtocolSpec
from gapless.simulator.generator_scales import MIXED

__all__ = ["parse_options", "search_line"]


def parse_options(spec: ProtocolSpec, words: Iterable[str]) -> dict[str, Any]:
    """Return the options by name. A list is written with commas: `switched_off=pivots,hand-over`."""
    types = {field.name: field.type for field in msgspec.structs.fields(spec.options)}
    options = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise ProtocolError(f"--option {word}: write it as key=value")
        options[key] = _value(types.get(key), text)
    return options


def _value(wanted: Any, text: str) -> Any:
    if wanted is str:
        return text
    if (get_origin(wanted) or wanted) in (tuple, list, frozenset, set):
        return [_scalar(part.strip()) for part in text.split(",")] if text else []
    return _scalar(text)


def _scalar(text: str) -> Any:
    """Return a number or a boolean if the text is one; otherwise the text itself."""
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def search_line(
    protocol: str,
    faults: str,
    seed: int,
    words: Iterable[str],
    f: int | None = None,
    scale: str = MIXED,
    schedule: str = "latency",
) -> str:
    """Return the command that reproduces the violation found with this seed."""
    line = ["gapless", "sim", "search", "--protocol", protocol, "--faults", faults]
    line += ["--first-seed", str(seed), "--runs", "1"]
    if scale != MIXED:
        line += ["--scale", scale]
    if schedule != "latency":
        line += ["--schedule", schedule]
    if f is not None:
        line += ["--f", str(f)]
    for word in words:
        line += ["--option", word]
    return shlex.join(line)

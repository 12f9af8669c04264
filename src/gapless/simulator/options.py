"""From the options that a user wrote to the struct that a protocol declares."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from gapless.errors import ProtocolError
from gapless.protocol import ProtocolSpec

__all__ = ["convert_options"]


def convert_options(spec: ProtocolSpec, options: Mapping[str, Any]) -> msgspec.Struct:
    """The options struct of the protocol with these fields set."""
    known = spec.options.__struct_encode_fields__
    for key in options:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known) or 'none'}"
            raise ProtocolError(f"protocol {spec.name!r} has no option {key!r}; {hint}")
    try:
        return msgspec.convert(dict(options), spec.options)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"options of protocol {spec.name!r}: {error}") from None

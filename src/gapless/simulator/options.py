"""What a protocol takes: from the options that a user wrote to the struct that it declares, and no fault too many."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from gapless.errors import ProtocolError
from gapless.protocol import ProtocolSpec, protocols

__all__ = ["convert_options", "refusal"]


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


def refusal(spec: ProtocolSpec, fault: str) -> str:
    """Why a scenario with this fault is not for this protocol."""
    able = [other.name for other in protocols().values() if fault in other.copes_with]
    way_out = f"choose a protocol that does ({', '.join(able)})" if able else "leave it out"
    return f"protocol {spec.name!r} does not claim to cope with {fault}; {way_out}"

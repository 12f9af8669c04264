"""What a protocol takes: from the options that a user wrote to the struct that it declares, and no fault too many."""

from gapless.protocol import ProtocolSpec, convert_options
from gapless.registry import protocols

__all__ = ["convert_options", "refusal"]


def refusal(spec: ProtocolSpec, fault: str) -> str:
    """Why a scenario with this fault is not for this protocol."""
    able = [other.name for other in protocols().values() if fault in other.copes_with]
    way_out = f"choose a protocol that does ({', '.join(able)})" if able else "leave it out"
    return f"protocol {spec.name!r} does not claim to cope with {fault}; {way_out}"

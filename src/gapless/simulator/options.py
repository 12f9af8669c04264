"""Checks whether a protocol supports the faults of a scenario."""

from gapless.protocol import ProtocolSpec, convert_options
from gapless.registry import protocols

__all__ = ["convert_options", "refusal"]


def refusal(spec: ProtocolSpec, fault: str) -> str:
    """Return a message which says that the protocol does not support this fault."""
    able = [other.name for other in protocols().values() if fault in other.copes_with]
    way_out = f"choose a protocol that does ({', '.join(able)})" if able else "leave it out"
    return f"protocol {spec.name!r} does not claim to tolerate {fault}; {way_out}"

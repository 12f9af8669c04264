"""All protocols there are, found by looking into their package: whoever adds one has nothing else to touch."""

import importlib
import pkgutil
from functools import cache

import gapless.protocols as package
from gapless.errors import ProtocolError
from gapless.protocol import ProtocolSpec

__all__ = ["find_protocol", "protocols"]


@cache
def protocols() -> dict[str, ProtocolSpec]:
    """All protocols by name, sorted."""
    found = {}
    for module_info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        spec = getattr(importlib.import_module(module_info.name), "PROTOCOL", None)
        if spec is not None:
            found[spec.name] = spec
    return dict(sorted(found.items()))


def find_protocol(name: str) -> ProtocolSpec:
    """The protocol of that name, or an error that lists those there are."""
    try:
        return protocols()[name]
    except KeyError:
        raise ProtocolError(f"there is no protocol {name!r}; choose one of: {', '.join(protocols())}") from None

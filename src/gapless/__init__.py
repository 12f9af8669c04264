"""Gapless: content-based publish/subscribe that misses nothing and keeps effects behind their causes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gapless.client import connect
    from gapless.errors import GaplessError
    from gapless.events import Event

__all__ = ["Event", "GaplessError", "connect"]

_PLACES = {"connect": "gapless.client", "Event": "gapless.events", "GaplessError": "gapless.errors"}


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: `import gapless` alone costs next to nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'gapless' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)

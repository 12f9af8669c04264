"""The exception tree: everything that is the outside world's fault.

Bugs of ours are assertions. Whoever catches a `GaplessError` can print it as it is: it says in a sentence
what is wrong, where, and what to do about it.
"""

__all__ = ["GaplessError", "OverlayError", "ProtocolError", "ScenarioError", "TraceError"]


class GaplessError(Exception):
    """Base of every error that is the outside world's fault: one sentence and a way out."""


class OverlayError(GaplessError):
    """The brokers and edges given do not form a tree."""


class ProtocolError(GaplessError):
    """A protocol, or an option of one, that does not exist or does not fit."""


class ScenarioError(GaplessError):
    """A scenario that cannot be run: the message names the place in the file."""


class TraceError(GaplessError):
    """A trace that cannot be read: a missing table, a wrong version, a damaged file."""

"""The exception tree: everything that is the outside world's fault.

Bugs of ours are assertions. Whoever catches a `GaplessError` can print it as it is: it says in a sentence
what is wrong, where, and what to do about it.
"""

from gapless.events import Event, PublishedEvent
from gapless.positions import Position

__all__ = [
    "ArchiveError",
    "CallError",
    "ClosedError",
    "ConfigError",
    "ConnectError",
    "DeniedError",
    "EventError",
    "ExperimentError",
    "FilterError",
    "GaplessError",
    "GivenAwayError",
    "MisfitError",
    "NoEventError",
    "NoReplyError",
    "OverlayError",
    "ProtocolError",
    "ScenarioError",
    "SkippedError",
    "SlowConsumerError",
    "SparkError",
    "StorageError",
    "SubscriptionEndedError",
    "TraceError",
    "WireError",
]


class GaplessError(Exception):
    """Base of every error that is the outside world's fault: one sentence and a way out."""


class OverlayError(GaplessError):
    """The brokers and edges given do not form a tree."""


class ProtocolError(GaplessError):
    """A protocol, or an option of one, that does not exist or does not fit."""


class ScenarioError(GaplessError):
    """A scenario that cannot be run: the message names the place in the file."""


class ExperimentError(GaplessError):
    """An experiment that cannot be run: the message names the file and the place in it."""


class TraceError(GaplessError):
    """A trace that cannot be read: a missing table, a wrong version, a damaged file."""


class ConfigError(GaplessError):
    """A network that cannot be run as it is described: the message names the file and the place in it."""


class WireError(GaplessError):
    """A peer that does not speak as agreed: a frame too large, malformed or out of place, another version.

    `code` is the word for it that the peer is told.
    """

    def __init__(self, message: str, code: str = "malformed") -> None:
        super().__init__(message)
        self.code = code


class ConnectError(GaplessError):
    """No broker could be reached, or none wants us."""


class ClosedError(GaplessError):
    """The client, or the subscription, is closed."""


class CallError(GaplessError):
    """A client's call that the network refused."""


class DeniedError(CallError, ConnectError):
    """Who is not let in, or a call that this user may not make: the message says what is allowed."""


class EventError(CallError):
    """An event that cannot be published: an attribute of a type that there is not, too large, not advertised."""


class MisfitError(GaplessError):
    """An event that does not fit the type it is asked for as; `event` is the event."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.event = event


Event._misfit = MisfitError


class NoEventError(GaplessError, TimeoutError):
    """No event came in the time that `take` was to wait. The subscription goes on."""


class NoReplyError(GaplessError, TimeoutError):
    """A request that nobody answered in time; `event` is the request, if it was published."""

    def __init__(self, message: str, event: PublishedEvent | None = None) -> None:
        super().__init__(message)
        self.event = event


class SubscriptionEndedError(GaplessError):
    """A subscription that is over without its application's wish; `resubscribe` begins it anew, after a gap.

    `last` is its ending cut: for each publisher, the number up to which everything was delivered.
    """

    def __init__(self, message: str, last: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.last = last or {}


class SlowConsumerError(SubscriptionEndedError):
    """A subscription that ended because its events were not taken in time, as its policy says."""


class SkippedError(GaplessError):
    """Some of the history that was asked for is gone. It is raised in its place; the next call goes on after it.

    `lost` says what is missing: for each publisher, ranges of numbers. (Not all of them may have matched, and some may
    have come just before the position that was asked for.) Of what was published between the two positions of `gap`,
    not even that is known: nobody has it any more, or two halves of the network had gone on without each other.
    """

    def __init__(
        self, message: str, lost: dict[str, list[tuple[int, int]]], gap: tuple[Position, Position] | None = None
    ) -> None:
        super().__init__(message)
        self.lost = lost
        self.gap = gap


class GivenAwayError(GaplessError):
    """What was to be confirmed of a named subscription that a group shares is another's by now: it was not confirmed in
    time, or this client was out of sight. All else that was to be confirmed with it is.

    `events` names it: `publisher:number`.
    """

    def __init__(self, message: str, events: list[str]) -> None:
        super().__init__(message)
        self.events = events


class StorageError(GaplessError):
    """A directory of a broker's data that cannot be used, or a disk that does not do its work."""


class ArchiveError(GaplessError):
    """An archive that cannot be written, or read: the message names the directory."""


class SparkError(GaplessError):
    """Spark cannot be started, cannot be reached, or failed at its work."""


class FilterError(GaplessError):
    """A filter that cannot be read: what is wrong, the text, and a caret under the place."""

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(message, text, position)
        self.message = message
        self.text = text
        self.position = position

    def __str__(self) -> str:
        shown, column = _excerpt(self.text, self.position)
        return f"{self.message}\n  {shown}\n  {' ' * column}^"


def _excerpt(text: str, position: int) -> tuple[str, int]:
    """The part of a long text around a place, on one line, and where the place is in it."""
    start = max(0, position - 60)
    # A line end would break the line, half of a character cannot be printed.
    shown = "".join(" " if character.isspace() else character for character in text[start : position + 40])
    shown = shown.encode(errors="replace").decode()
    before, after = "…" if start else "", "…" if position + 40 < len(text) else ""
    return before + shown + after, position - start + len(before)

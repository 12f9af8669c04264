"""The exception tree: everything that is the outside world's fault.

Bugs in Gapless are assertions. A program can print a `GaplessError` as it is: one sentence says what is wrong, where,
and what to do about it.
"""

from gapless.events import Event, PublishedEvent
from gapless.positions import Position

__all__ = [
    "AckTooLateError",
    "ArchiveError",
    "CallError",
    "ClosedError",
    "ConfigError",
    "ConnectError",
    "ConversionError",
    "DeniedError",
    "EventError",
    "ExperimentError",
    "FilterError",
    "GaplessError",
    "NoEventError",
    "NoReplyError",
    "OverlayError",
    "ProtocolError",
    "RequestFailedError",
    "ScenarioError",
    "SkippedError",
    "SlowConsumerError",
    "SparkError",
    "StorageError",
    "SubscriptionEndedError",
    "TraceError",
    "WindowFullError",
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

    `code` is the code of the refusal that the peer receives.
    """

    def __init__(self, message: str, code: str = "malformed") -> None:
        super().__init__(message)
        self.code = code


class ConnectError(GaplessError):
    """No broker could be reached, or all refused the connection."""


class ClosedError(GaplessError):
    """The client, or the subscription, is closed."""


class CallError(GaplessError):
    """A client's call that the network refused."""


class DeniedError(CallError, ConnectError):
    """Authentication failed, or the user lacks permission for the call: the message says what is allowed."""


class EventError(CallError):
    """An event that cannot be published: an attribute of an unsupported type, too large, or not advertised."""


class ConversionError(GaplessError):
    """An event that does not fit the type it is read as, or an attribute of another type; `event` is the event."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.event = event


Event._misfit = ConversionError


class NoEventError(GaplessError, TimeoutError):
    """No event came within the timeout of `take`. The subscription continues."""


class NoReplyError(GaplessError, TimeoutError):
    """A request that nobody answered in time; `event` is the request, if it was published."""

    def __init__(self, message: str, event: PublishedEvent | None = None) -> None:
        super().__init__(message)
        self.event = event


class RequestFailedError(GaplessError):
    """The handler of a request failed: the message has its error. `event` is the reply that carried it."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.event = event


class SubscriptionEndedError(GaplessError):
    """The network ended the subscription; `resubscribe` begins it anew, after a gap.

    `ending_cut` is its ending cut: for each publisher, the number up to which everything was delivered.
    """

    def __init__(self, message: str, ending_cut: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.ending_cut = ending_cut or {}


class SlowConsumerError(SubscriptionEndedError):
    """A subscription with `max_pending` that ended because the application was too slow."""


class SkippedError(GaplessError):
    """Some of the history that was asked for is gone. It is raised in its place; the next call goes on after it.

    `lost` says what is missing: for each publisher, ranges of numbers. (Not all of them may have matched, and some may
    have come just before the position that was asked for.) Of what was published between the two positions of `gap`,
    brokers have discarded the history, so not even the numbers are known.
    """

    def __init__(
        self, message: str, lost: dict[str, list[tuple[int, int]]], gap: tuple[Position, Position] | None = None
    ) -> None:
        super().__init__(message)
        self.lost = lost
        self.gap = gap


class AckTooLateError(GaplessError):
    """An acknowledgement in a shared subscription that came too late: the events were redelivered to another member,
    because they were not acknowledged in time, or this client was unreachable. Everything else that was to be
    acknowledged with them is.

    `events` names them: `publisher:number`.
    """

    def __init__(self, message: str, events: list[str]) -> None:
        super().__init__(message)
        self.events = events


class WindowFullError(GaplessError):
    """`publish_nowait` found as many events waiting to be confirmed as may wait. Nothing was published."""


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

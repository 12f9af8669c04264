"""The exceptions of Gapless: errors whose cause is outside Gapless.

Bugs in Gapless are assertions. A program can print a `GaplessError` as it is: it says what is wrong, where, and what to
do about it.
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
    """Base of all errors. The message says what is wrong and what to do about it."""


class OverlayError(GaplessError):
    """The brokers and edges given do not form a tree."""


class ProtocolError(GaplessError):
    """A protocol or a protocol option does not exist, or is not valid here."""


class ScenarioError(GaplessError):
    """A scenario cannot be run; the message names the place in the file."""


class ExperimentError(GaplessError):
    """An experiment cannot be run; the message names the file and the place in it."""


class TraceError(GaplessError):
    """A trace cannot be read: a missing table, a wrong version, a damaged file."""


class ConfigError(GaplessError):
    """A network cannot be run as described; the message names the file and the place in it."""


class WireError(GaplessError):
    """A peer violated the wire protocol: a frame is too large, malformed or unexpected, or has another version.

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
    """The network refused a client's call."""


class DeniedError(CallError, ConnectError):
    """Authentication failed, or the user lacks permission for the call: the message says what is allowed."""


class EventError(CallError):
    """An event cannot be published: an attribute has an unsupported type, the event is too large, or it is not
    advertised."""


class ConversionError(GaplessError):
    """An event cannot be converted to the requested type, or an attribute has another type; `event` is the event."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.event = event


Event._misfit = ConversionError


class NoEventError(GaplessError, TimeoutError):
    """No event arrived within the timeout of `take`. The subscription continues."""


class NoReplyError(GaplessError, TimeoutError):
    """No reply to a request arrived in time; `event` is the request, if it was published."""

    def __init__(self, message: str, event: PublishedEvent | None = None) -> None:
        super().__init__(message)
        self.event = event


class RequestFailedError(GaplessError):
    """The handler of a request failed; the message contains its error. `event` is the reply with the error."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.event = event


class SubscriptionEndedError(GaplessError):
    """The network ended the subscription; `resubscribe` starts it again, after a gap.

    `ending_cut` is its ending cut: for each publisher, the number up to which everything was delivered.
    """

    def __init__(self, message: str, ending_cut: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.ending_cut = ending_cut or {}


class SlowConsumerError(SubscriptionEndedError):
    """A subscription with `max_pending` ended because the application was too slow."""


class SkippedError(GaplessError):
    """Some of the requested history is gone. It is raised in place of the missing events; the next call continues after
    them.

    `lost` lists the missing events: for each publisher, ranges of numbers. (Not all of them need match the filter, and
    some may be just before the requested position.) If brokers have discarded the history between the two positions of
    `gap`, even the numbers of its events are unknown.
    """

    def __init__(
        self, message: str, lost: dict[str, list[tuple[int, int]]], gap: tuple[Position, Position] | None = None
    ) -> None:
        super().__init__(message)
        self.lost = lost
        self.gap = gap


class AckTooLateError(GaplessError):
    """An acknowledgement in a shared subscription came too late: the events were redelivered to another member, because
    they were not acknowledged in time, or this client was unreachable. All other events of the call are acknowledged.

    `events` names them: `publisher:number`.
    """

    def __init__(self, message: str, events: list[str]) -> None:
        super().__init__(message)
        self.events = events


class WindowFullError(GaplessError):
    """`publish_nowait` published nothing, because the maximum number of events are waiting to be confirmed."""


class StorageError(GaplessError):
    """A broker's data directory cannot be used, or a disk operation failed."""


class ArchiveError(GaplessError):
    """An archive cannot be written or read; the message names the directory."""


class SparkError(GaplessError):
    """Spark cannot be started or reached, or failed."""


class FilterError(GaplessError):
    """A filter cannot be parsed: the message has the reason, the text, and a caret under the place."""

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(message, text, position)
        self.message = message
        self.text = text
        self.position = position

    def __str__(self) -> str:
        shown, column = _excerpt(self.text, self.position)
        return f"{self.message}\n  {shown}\n  {' ' * column}^"


def _excerpt(text: str, position: int) -> tuple[str, int]:
    """Return the part of a long text around a position, on one line, and the position within that part."""
    start = max(0, position - 60)
    # A line end would break the line, and half a surrogate pair cannot be printed.
    shown = "".join(" " if character.isspace() else character for character in text[start : position + 40])
    shown = shown.encode(errors="replace").decode()
    before, after = "…" if start else "", "…" if position + 40 < len(text) else ""
    return before + shown + after, position - start + len(before)

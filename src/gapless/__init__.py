"""Gapless: content-based publish/subscribe that misses nothing and keeps effects behind their causes.

`connect` is where programs with an event loop begin; `gapless.sync` has the same names for all others. Everything that
may be used is in `__all__`. It is loaded when it is asked for, so `import gapless` alone costs next to nothing; type
checkers see plain imports, and know a name that does not exist from one that does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapless import sync
    from gapless.causes import caused_by
    from gapless.client import (
        Advertisement,
        Change,
        Changes,
        Client,
        ConfirmableEvent,
        ConfirmableSubscription,
        Connecting,
        Credentials,
        DurableInfo,
        Milestones,
        Request,
        Requests,
        Since,
        Standing,
        Subscription,
        TypedSubscription,
        connect,
    )
    from gapless.errors import (
        ArchiveError,
        CallError,
        ClosedError,
        ConfigError,
        ConnectError,
        DeniedError,
        EventError,
        ExperimentError,
        FilterError,
        GaplessError,
        GivenAwayError,
        MisfitError,
        NoEventError,
        NoReplyError,
        OverlayError,
        ProtocolError,
        ScenarioError,
        SkippedError,
        SlowConsumerError,
        SparkError,
        StorageError,
        SubscriptionEndedError,
        TraceError,
        WireError,
    )
    from gapless.events import Event, PublishedEvent
    from gapless.positions import Position

__all__ = [
    "Advertisement",
    "ArchiveError",
    "CallError",
    "Change",
    "Changes",
    "Client",
    "ClosedError",
    "ConfigError",
    "ConfirmableEvent",
    "ConfirmableSubscription",
    "ConnectError",
    "Connecting",
    "Credentials",
    "DeniedError",
    "DurableInfo",
    "Event",
    "EventError",
    "ExperimentError",
    "FilterError",
    "GaplessError",
    "GivenAwayError",
    "Milestones",
    "MisfitError",
    "NoEventError",
    "NoReplyError",
    "OverlayError",
    "Position",
    "ProtocolError",
    "PublishedEvent",
    "Request",
    "Requests",
    "ScenarioError",
    "Since",
    "SkippedError",
    "SlowConsumerError",
    "SparkError",
    "Standing",
    "StorageError",
    "Subscription",
    "SubscriptionEndedError",
    "TraceError",
    "TypedSubscription",
    "WireError",
    "__version__",
    "caused_by",
    "connect",
    "sync",
]

__version__ = "0.1.0"

_PLACES = {"caused_by": "causes", "Event": "events", "PublishedEvent": "events", "Position": "positions"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load what is asked for."""
        if name not in __all__:
            raise AttributeError(f"module 'gapless' has no attribute {name!r}", name=name, obj=__import__("gapless"))
        from importlib import import_module

        if name == "sync":
            return import_module("gapless.sync")
        place = "errors" if name.endswith("Error") else _PLACES.get(name, "client")
        found = globals()[name] = getattr(import_module(f"gapless.{place}"), name)
        return found

    def __dir__() -> list[str]:
        """What may be asked for, loaded or not."""
        return sorted({*globals(), *__all__})

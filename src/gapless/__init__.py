"""Gapless: content-based publish/subscribe with gap-free subscriptions and causal ordering.

Programs with an event loop begin with `connect`; `gapless.sync` has the same names for all others. `__all__` lists the
names that most programs use; further types are in `gapless.client` and further errors in `gapless.errors`. Each name is
loaded on first use, so `import gapless` alone is fast; type checkers see plain imports and report names that do not
exist.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapless import errors, sync
    from gapless.causes import caused_by
    from gapless.client import (
        Advertisement,
        Answer,
        Client,
        Credentials,
        DurableEvent,
        DurableInfo,
        DurableSubscription,
        Middleware,
        Since,
        Subscription,
        connect,
    )
    from gapless.errors import (
        CallError,
        ClosedError,
        ConnectError,
        DeniedError,
        EventError,
        FilterError,
        GaplessError,
        NoReplyError,
        RequestFailedError,
        SkippedError,
        SubscriptionEndedError,
    )
    from gapless.events import Event, PublishedEvent
    from gapless.positions import Position

__all__ = [
    "Advertisement",
    "Answer",
    "CallError",
    "Client",
    "ClosedError",
    "ConnectError",
    "Credentials",
    "DeniedError",
    "DurableEvent",
    "DurableInfo",
    "DurableSubscription",
    "Event",
    "EventError",
    "FilterError",
    "GaplessError",
    "Middleware",
    "NoReplyError",
    "Position",
    "PublishedEvent",
    "RequestFailedError",
    "Since",
    "SkippedError",
    "Subscription",
    "SubscriptionEndedError",
    "__version__",
    "caused_by",
    "connect",
    "errors",
    "sync",
]

__version__ = "0.1.0"

_PLACES = {"caused_by": "causes", "Event": "events", "PublishedEvent": "events", "Position": "positions"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in ("errors", "sync"):
            return import_module(f"gapless.{name}")
        if name not in __all__:
            raise AttributeError(_absent(name), name=name, obj=import_module("gapless"))
        place = "errors" if name.endswith("Error") else _PLACES.get(name, "client")
        found = globals()[name] = getattr(import_module(f"gapless.{place}"), name)
        return found

    def _absent(name: str) -> str:
        """Return the message for a name that the package does not have."""
        from importlib import import_module

        for place in ("errors", "client"):
            if name in import_module(f"gapless.{place}").__all__:
                return f"module 'gapless' has no attribute {name!r}; it is gapless.{place}.{name}"
        return f"module 'gapless' has no attribute {name!r}"

    def __dir__() -> list[str]:
        """Return all names, loaded or not."""
        return sorted({*globals(), *__all__})
